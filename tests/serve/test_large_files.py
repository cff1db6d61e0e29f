# SPDX-License-Identifier: Apache-2.0
"""Files that take long to read hold up nobody else, and are told as small ones are.

No time is measured: others are answered, again and again, before what takes long is over."""
import contextlib
import hashlib
import json
import pathlib
import select
import socket

import pytest

from harness.web import request, wait_until

LARGE = 700 << 20  # a hole, which takes no room in the workspace
MAKE = f"with open('large', 'wb') as file: file.truncate({LARGE})\nprint('made', flush=True)"
LIMITS = {"disk_bytes": 1 << 30}
OTHERS = 15  # more than are answered before it begins
SOME = """
for i in range(30):
    with open(f'file{i:02}', 'w') as file: file.write(str(i))
with open('large', 'wb') as file:
    for _ in range(40): file.write(bytes(1 << 20))
"""
HASHES = {f"file{i:02}": hashlib.sha256(str(i).encode()).hexdigest() for i in range(30)}
HASHES["large"] = hashlib.sha256(bytes(40 << 20)).hexdigest()


@pytest.fixture
def ask(server):
    """ask(method, path, …) -> a connection of which the answer is not read yet."""
    with contextlib.ExitStack() as ends:
        def ask(*words):
            connection = ends.enter_context(socket.create_connection(("127.0.0.1", server.port), 60))
            connection.sendall(request(*words))
            return connection
        yield ask


@pytest.fixture
def large(client):
    """The place of a session with a large file."""
    place = client.open(limits=LIMITS)
    assert client.run("import os\nos.truncate(os.open('large', os.O_CREAT | os.O_WRONLY), "
                      f"{LARGE})", place + "/run", policy="open")["status"] == "ok"
    yield place
    client.delete(place)


def others_before(client, connection):
    """How many others are answered before anything comes, if not all."""
    for count in range(OTHERS):
        if select.select([connection], [], [], 0)[0]:
            return count
        assert client.get("/v1/sessions").status == 200
    return OTHERS


def threads(server):
    return len(list(pathlib.Path(f"/proc/{server.pid}/task").iterdir()))


def test_of_a_run(client, ask):
    body = json.dumps({"code": MAKE, "limits": LIMITS, "policy": "open"}).encode()
    connection = ask("POST", "/v1/run", body,
                     {"Content-Type": "application/json", "Accept": "text/event-stream"})
    heard = b""
    while b'"made' not in heard:
        heard += connection.recv(4096)
    assert b"event: result" not in heard
    assert others_before(client, connection) == OTHERS


def test_in_an_archive(client, ask, large):
    connection = ask("GET", large + "/files.tar")
    assert others_before(client, connection) == OTHERS
    assert connection.recv(15) == b"HTTP/1.1 200 OK"


def test_the_client_goes_away_meanwhile(client, server, ask, large):
    for _ in range(3):
        ask("GET", large + "/files.tar").close()
    assert client.run("1 + 1", large + "/run")["value"] == {"text/plain": "2"}
    wait_until(lambda: threads(server) == 1)


def test_the_session_ends_meanwhile(client, server, ask, large):
    connection = ask("GET", large + "/files.tar")
    assert others_before(client, connection) == OTHERS
    assert client.delete(large).status == 204
    assert connection.recv(12) in (b"HTTP/1.1 200", b"HTTP/1.1 404", b"HTTP/1.1 410")
    wait_until(lambda: threads(server) == 1)


@pytest.mark.parametrize("turn", range(3))
def test_are_told_as_small_ones_are(client, turn):
    result = client.run(SOME, policy="open", limits=LIMITS)
    assert {file["path"]: file["sha256"] for file in result["files"]} == HASHES
    assert len(result["files"]) == len(HASHES)


def test_are_told_in_a_session_as_small_ones_are(client):
    place = client.open(limits=LIMITS)
    run = lambda code: client.run(code, place + "/run", policy="open")
    result = run(SOME)
    assert {file["path"]: file["sha256"] for file in result["files"]} == HASHES
    result = run("import os\nos.remove('file03')\n"
                 "with open('large', 'r+b') as file: file.write(b'x')")
    assert [file["path"] for file in result["files"]] == ["large"]
    assert result["session"]["deleted"] == ["file03"]
    assert run("1")["files"] == []
    client.delete(place)
