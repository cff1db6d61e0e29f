# SPDX-License-Identifier: Apache-2.0
"""What one key may have of what the server keeps for all: bodies, archives."""
import contextlib
import json
import re
import shutil
import socket

import pytest

from harness.daemon import configuration
from harness.product import SLOW
from harness.rest import Client
from harness.web import SECONDS, Server, keyed_server, listen_to, request, responses, wait_until

MIB = 1 << 20
SECRETS = {"ada": "execpy_" + "a" * 43, "bob": "execpy_" + "b" * 43}
SHARE = 4 * MIB
FILE = "/v1/sessions/ses_" + "0" * 26 + "/files/a"  # the body comes before anybody looks


@pytest.fixture(scope="module")
def keyed(product):
    with keyed_server(product, "serve-shares", SECRETS, {}, "bodies: 16M\nunread_time: 10m\n") as server:
        yield server


@pytest.fixture
def tenant(contract, keyed):
    """tenant(name) -> Client with its key."""
    with contextlib.ExitStack() as ends:
        def tenant(name):
            client = Client(contract, keyed.port, SECRETS[name])
            ends.callback(client.close)
            return client
        yield tenant


@contextlib.contextmanager
def body_without_end(server, sent, key=None):
    """A connection that has sent so much of a body that is larger."""
    fields = {"Authorization": f"Bearer {key}"} if key else {}
    head = request("PUT", FILE, headers={**fields, "Content-Length": 1 << 30})
    with contextlib.closing(socket.create_connection(server.address, SECONDS * SLOW)) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(head + bytes(sent))
        yield connection


def metrics(client):
    client.connection.request("GET", "/metrics", headers=client.headers(None, None))
    return client.connection.getresponse().read()


def kept(client):
    """Bytes of bodies, by the server's own word."""
    return int(re.search(rb"^execpy_http_body_bytes (\d+)$", metrics(client), re.MULTILINE)[1])


def heard(connection):
    return [(r.status, r.json["detail"]) for r in responses(listen_to(connection).raw)]


# -- bodies -------------------------------------------------------------------------------------

def test_one_key_does_not_have_all_bodies_refused(keyed, tenant):
    ada, bob = tenant("ada"), tenant("bob")
    with contextlib.ExitStack() as open_ones:
        open_ones.enter_context(body_without_end(keyed, SHARE - MIB // 2, SECRETS["ada"]))
        wait_until(lambda: kept(bob) == SHARE - MIB // 2)
        for _ in range(2):
            with body_without_end(keyed, MIB, SECRETS["ada"]) as more:
                assert heard(more) == [(429, "your requests that are under way have too much in "
                                             "their bodies together")]
        # What was refused is not kept, and what is small has room.
        wait_until(lambda: kept(bob) == SHARE - MIB // 2)
        assert ada.run("1")["status"] == "ok"
        answer = ada.post("/v1/run", {"code": "1", "stdin": "a" * (MIB // 2)})
        assert answer.status == 429 and "bodies" in answer.json["detail"], answer
        # The others' share is theirs.
        much = "a" * (SHARE - MIB // 4)
        assert bob.run("1", stdin=much)["status"] == "ok"
    wait_until(lambda: kept(bob) == 0)
    assert tenant("ada").run("1", stdin=much)["status"] == "ok"


def test_a_body_that_is_larger_than_a_share(keyed, tenant):
    with body_without_end(keyed, SHARE + 1, SECRETS["ada"]) as connection:
        assert heard(connection) == [(413, "the body is larger than all that may be kept for one "
                                           "client")]
    wait_until(lambda: kept(tenant("bob")) == 0)




def test_without_keys_there_is_one_share(product, contract):
    place = product.directory("serve-one-share")
    server = Server(product, place, "bodies: 8M\n" + configuration({"bare": (1, 2)}))
    client = Client(contract, server.port)
    try:
        with body_without_end(server, 6 * MIB):
            wait_until(lambda: kept(client) == 6 * MIB)
            with body_without_end(server, 2 * MIB + 1) as more:
                assert [status for status, _ in heard(more)] == [503]
    finally:
        client.close()
        server.close()
        shutil.rmtree(place, ignore_errors=True)


# -- what outlives its request ------------------------------------------------------------------

SLEEP = {"code": "import time; time.sleep(600)", "stdin": "a" * (SHARE - MIB),
         "limits": {"time_ms": 900000}, "policy": "open"}


def test_a_detached_run_keeps_its_part(keyed, tenant):
    ada, bob = tenant("ada"), tenant("bob")
    answer = ada.post("/v1/run", {**SLEEP, "detach": True})
    assert answer.status == 202
    assert SHARE - MIB < kept(bob) < SHARE
    for keys in ({"detach": True}, {}):
        assert ada.post("/v1/run", {**SLEEP, **keys}).status == 429
    assert ada.run("1")["status"] == "ok"
    assert bob.run("1", stdin=SLEEP["stdin"])["status"] == "ok"
    place = answer.headers["Location"]
    assert ada.delete(place).status == 204
    wait_until(lambda: ada.get(place).json["state"] == "done")
    assert kept(bob) == 0
    assert ada.run("1", stdin=SLEEP["stdin"])["status"] == "ok"
    # One that never begins has no part either.
    place = ada.post("/v1/run", {**SLEEP, "detach": True, "template": "none"}).headers["Location"]
    wait_until(lambda: ada.get(place).json["state"] == "refused")
    assert kept(bob) == 0


def post_message(client, message, headers=()):
    """Sends it over the client's connection, and does not wait."""
    client.connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}), {
        **client.headers(None, {}), "Accept": "application/json, text/event-stream",
        **dict(headers)})


def test_a_message_whose_client_is_gone_keeps_its_part(keyed, tenant):
    """Its call goes on, as revisions before the stateless one want it."""
    ada, bob = tenant("ada"), tenant("bob")
    post_message(ada, {"id": 1, "method": "initialize",
                       "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                                  "clientInfo": {"name": "test", "version": "1"}}})
    opened = ada.connection.getresponse()
    opened.read()
    session = {"Mcp-Session-Id": opened.headers["Mcp-Session-Id"]}
    arguments = {"code": "import time; time.sleep(100)", "stdin": SLEEP["stdin"],
                 "time_ms": 120000}
    post_message(ada, {"id": 2, "method": "tools/call",
                       "params": {"name": "execute_python", "arguments": arguments}}, session)
    wait_until(lambda: keyed.cells() == 1)
    ada.close()
    wait_until(lambda: b"execpy_http_connections 1\n" in metrics(bob))
    assert SHARE - MIB < kept(bob) < SHARE and keyed.cells() == 1
    assert ada.post("/v1/run", SLEEP).status == 429
    # The end of the MCP session is the end of its calls.
    ada.connection.request("DELETE", "/mcp", headers={**ada.headers(None, None), **session})
    assert ada.connection.getresponse().status == 204
    wait_until(lambda: kept(bob) == 0)
    keyed.quiet()


# -- archives -----------------------------------------------------------------------------------

def test_as_many_archives_as_it_may(keyed, tenant):
    """Each is held until its reader has taken all of it, or is gone."""
    ada, bob = tenant("ada"), tenant("bob")
    place = ada.open()
    assert ada.put(place + "/files/large", bytes(3 * MIB)).status == 204
    for name in "abcd":  # more than all buffers on the way take
        ada.run(f"import shutil; _ = shutil.copy('large', '{name}')", place + "/run", policy="open")
    ask = request("GET", place + "/files.tar", headers={
        "Authorization": f"Bearer {SECRETS['ada']}", "Connection": "close"})
    with contextlib.ExitStack() as open_ones:
        slow = []
        for _ in range(4):
            connection = open_ones.enter_context(contextlib.closing(socket.socket()))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(SECONDS * SLOW)
            connection.connect(keyed.address)
            connection.sendall(ask)
            assert connection.recv(12) == b"HTTP/1.1 200"
            slow.append(connection)
        answer = ada.get(place + "/files.tar")
        assert answer.status == 429 and "as many archives" in answer.json["detail"], answer
        assert answer.headers["Retry-After"]
        assert ada.get(place + "/files/large").status == 200
        # They are counted for each key, and what fails is over.
        other = bob.open()
        for _ in range(6):
            assert bob.get(place + "/files.tar").status == 404
        assert bob.get(other + "/files.tar").status == 200
        bob.delete(other)
        slow[0].close()
        wait_until(lambda: ada.get(place + "/files.tar").status == 200)
        # One that is read to its end makes room, too.
        with contextlib.closing(slow[1]):
            assert listen_to(slow[1], 60).closed
        for _ in range(3):
            assert ada.get(place + "/files.tar").status == 200
    ada.delete(place)
