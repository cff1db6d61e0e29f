# SPDX-License-Identifier: Apache-2.0
"""Daemons that serve HTTP, and their clients."""
import contextlib
import shutil

import pytest

from harness.daemon import configuration
from harness.rest import Client, Contract
from harness.web import Server

TEMPLATES = {"bare": (4, 4), "plot": (1, 1)}


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
