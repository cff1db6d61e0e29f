# SPDX-License-Identifier: Apache-2.0
"""Daemons that serve HTTP, and their clients."""
import contextlib
import hashlib
import re
import shutil
import time

import pytest

from harness.daemon import Daemon, configuration
from harness.rest import Client, Contract

TEMPLATES = {"bare": (4, 4), "plot": (1, 1)}


class Server:
    """A daemon that serves HTTP on a free port of loopback."""

    def __init__(self, product, place, text):
        self.daemon = Daemon(product, place, text, listen=("127.0.0.1:0",))
        said = self.daemon.says("serving HTTP on")
        assert said, self.daemon.lines
        self.port = int(re.search(r"http://\S+:(\d+)", said)[1])

    def cells(self):
        """How many runs go on, by the daemon's own word."""
        return self.daemon.status()["running"]

    def quiet(self, seconds=10):
        """Waits until nothing runs any more."""
        deadline = time.monotonic() + seconds * self.daemon.product.SLOW
        while self.cells() > 0:
            assert time.monotonic() < deadline, "runs go on"
            time.sleep(0.02)

    @property
    def process(self):
        """Of the server itself."""
        pid, = self.daemon.roles()["server"]
        return pid

    def close(self):
        self.daemon.close()


@contextlib.contextmanager
def keyed_server(product, name, secrets, limits, text=""):
    """A server with a key for each name of `secrets`, and what `limits` says of it."""
    place = product.directory(name)
    lines = ["keys:\n"]
    for tenant, secret in secrets.items():
        hashed = hashlib.sha256(secret.encode()).hexdigest()
        lines.append(f"  - name: {tenant}\n    sha256: {hashed}\n{limits[tenant]}")
    keys = place / "keys.yaml"
    keys.write_text("".join(lines))
    keys.chmod(0o600)
    server = Server(product, place, f"keys: {keys}\n{text}" + configuration({"bare": (2, 4)}))
    yield server
    server.close()
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="session")
def contract():
    return Contract()


@pytest.fixture(scope="session")
def server(product):
    place = product.directory("serve-rest")
    server = Server(product, place, configuration(TEMPLATES, clients=300))
    yield server
    server.close()
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="session")
def compat(product):
    """A server that also speaks the APIs of others; without keys."""
    place = product.directory("serve-compat")
    server = Server(product, place, "compat: [e2b, piston, fusion]\ncompat_memory: 192M\n"
                    + configuration(TEMPLATES))
    yield server
    server.close()
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def connect(contract, server):
    """connect() -> another Client of the server, closed at the end."""
    with contextlib.ExitStack() as ends:
        def connect(port=None, **more):
            client = Client(contract, port or server.port, **more)
            ends.callback(client.close)
            return client
        yield connect


@pytest.fixture
def client(connect):
    return connect()
