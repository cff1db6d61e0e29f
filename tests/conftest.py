# SPDX-License-Identifier: Apache-2.0
"""Shared fixtures: one product, one canary, and a witness around every test that runs code."""
import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import host, witness                      # noqa: E402
from harness.daemon import Daemon, configuration        # noqa: E402
from harness.product import Product                     # noqa: E402
from harness.web import Web                             # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="also the long parts of the suite")
    parser.addoption("--no-controls", action="store_true",
                     help="do not show again that each attack works unconfined")


def pytest_configure(config):
    config.pluginmanager.register(NameFailures(config.pluginmanager))
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin:" + os.environ.get("PATH", "")
    witness.become_subreaper()


def pytest_collection_modifyitems(config, items):
    if os.environ.get("EXECPY_MODE", "").startswith("daemon"):
        cold = [item for item in items if item.get_closest_marker("cold")]
        config.hook.pytest_deselected(items=cold)
        items[:] = [item for item in items if item not in cold]
    if config.getoption("--full"):
        return
    for item in items:
        if item.get_closest_marker("full"):
            item.add_marker(pytest.mark.skip(reason="only with --full"))


class NameFailures:
    """Names each at once: a suite that takes too long never comes to its summary."""

    def __init__(self, plugins):
        self.plugins = plugins

    def pytest_runtest_logreport(self, report):
        if report.failed:
            reporter = self.plugins.get_plugin("terminalreporter")
            reporter.write(f"\nFAILED: {report.nodeid} ({report.when})\n", flush=True)


@pytest.fixture(scope="session")
def full(pytestconfig):
    return pytestconfig.getoption("--full")


@pytest.fixture(scope="session")
def base():
    """Where everything of this session is; readable by every user, so that modes can differ."""
    os.umask(0o022)
    directory = Path(tempfile.mkdtemp(prefix="suite-", dir="/tmp"))
    os.chmod(directory, 0o755)
    previous, tempfile.tempdir = tempfile.tempdir, str(directory)
    yield directory
    tempfile.tempdir = previous
    host.forget_helpers()
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def canary(base):
    canary = witness.Canary()
    os.environ["EXECPY_TEST_SECRET"] = canary.secret
    yield canary
    canary.close()


@pytest.fixture(scope="session")
def unchecked_product(base, canary):
    product = Product(base, canary)
    yield product
    product.close()


@pytest.fixture(scope="session")
def product(unchecked_product):
    """The product, known to run `print(1)` right: no test of a refusal can pass without that."""
    unchecked_product.answers()
    return unchecked_product


@pytest.fixture
def watch(product, canary):
    """A witness of the host from before the test; checked again when the test has ended."""
    seen = witness.Witness(canary)
    if product.daemon:
        seen.daemon_check, seen.patience = product.daemon.differences, 10 * product.SLOW
    yield seen
    seen.check()


_serial = iter(range(1 << 30))


@pytest.fixture
def place(product, request):
    """A fresh directory of the user of the mode, gone after the test."""
    directory = product.directory(f"place-{next(_serial)}")
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def run(product, watch, place):
    """run(code, *options) -> Completed with a validated result, policy open, in `place`."""
    def run(code, *options, **more):
        return product.run(code, "--policy", "open", *options, cwd=place, **more)
    return run


@pytest.fixture
def plain(product, watch, place):
    """plain(*args) -> Completed of `execpy run --policy open ARGS…` without --json."""
    def plain(*args, **more):
        return product.execute("run", "--policy", "open", *args, cwd=place, **more)
    return plain


@pytest.fixture
def serve(product, watch, place):
    """serve({template: (min, max)}, number=…) -> Daemon; without templates only `bare` is there."""
    with contextlib.ExitStack() as ends:
        def serve(templates=None, *options, text=None, **more):
            numbers = {k: more.pop(k) for k in list(more)
                       if k not in ("socket", "env", "wait", "launcher")}
            text = text or configuration(templates or {"bare": (2, 2)}, **numbers)
            daemon = Daemon(product, place, text, *options, **more)
            ends.callback(daemon.close)
            return daemon
        yield serve


@pytest.fixture(scope="module")
def shared(product):
    """One daemon for the tests of a module that do it no harm."""
    place = product.directory(f"daemon-{next(_serial)}")
    daemon = Daemon(product, place, configuration({"bare": (2, 2), "numpy": (1, 1)}))
    daemon.settle(3)
    yield daemon
    daemon.close()


@pytest.fixture(scope="module")
def web(product):
    """An HTTP server without keys, for the tests of a module that do it no harm."""
    place = product.directory(f"web-{next(_serial)}")
    server = Web(product, place, configuration({"bare": (1, 2)}))
    yield server
    server.close()


@pytest.fixture
def serve_web(product, watch, place):
    """serve_web(*options, key=value, …) -> Web with these keys in its configuration."""
    with contextlib.ExitStack() as ends:
        def start(*options, text="", listen=("127.0.0.1:0",), tls=None, **numbers):
            server = Web(product, place, configuration({"bare": (1, 2)}, **numbers) + text,
                         *options, listen=listen, tls=tls)
            ends.callback(server.close)
            return server
        yield start
