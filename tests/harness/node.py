# SPDX-License-Identifier: Apache-2.0
"""npm's packages for tests, from tests/node/package-lock.json and from nothing else, and the Node
that is one of them."""
import fcntl
import functools
import os
import platform
import subprocess
from pathlib import Path

import pytest

PLACE = Path(__file__).resolve().parent.parent / "node"
INSTALL_S = 600


@functools.cache
def packages():
    """Installs what is missing; the directory with package.json. Suites may ask at once."""
    with open(PLACE / "package-lock.json") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = subprocess.run([PLACE.parent.parent / "tools/node.sh", "install"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=INSTALL_S)
    if done.returncode != 0:
        assert not os.environ.get("CI"), f"{done.stdout}{done.stderr}"
        pytest.skip(f"this host has no packages of npm: {done.stderr[-200:]}")
    return PLACE


def program():
    """Node itself, of the version that all of them take."""
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return str(packages() / f"node_modules/node-linux-{machine}/bin/node")


def start(script, *words, env=None, **options):
    """A script below tests/node (of a package: node_modules/…), with both outputs read."""
    return subprocess.Popen([program(), str(PLACE / script), *map(str, words)],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, encoding="utf-8",
                            env={**os.environ, "NO_COLOR": "1", **(env or {})}, **options)


def finish(process, seconds):
    """Its outputs; that it ended well is the test's to say."""
    try:
        return process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"it does not end: {out[-2000:]}{err[-2000:]}") from None


def run(script, *words, seconds=60, **options):
    process = start(script, *words, **options)
    out, err = finish(process, seconds)
    assert process.returncode == 0, f"{process.returncode}: {out[-3000:]}{err[-3000:]}"
    return out
