# SPDX-License-Identifier: Apache-2.0
"""Sessions and their files over REST."""
import io
import json
import subprocess
import tarfile
import threading
import time

import pytest

from harness import node

MIB = 1 << 20


@pytest.fixture
def session(client):
    place = client.open()
    yield place
    client.delete(place)


def test_variables_stay_from_run_to_run_and_over_connections(client, connect, session):
    assert client.run("x = 41", session + "/run")["session"]["run"] == 1
    result = connect().run("x + 1", session + "/run")
    assert result["value"] == {"text/plain": "42"} and result["session"]["run"] == 2


def test_a_session_has_a_life(client):
    place = client.open(idle_ttl_ms=60000, template="bare", policy="open",
                        limits={"memory_bytes": 200 * MIB, "time_ms": 7000})
    found = client.get(place).json
    assert found["idle_ms"] == 60000 and found["state"] == "idle"
    assert found["limits"]["memory_bytes"] == 200 * MIB
    assert client.run("import os; 1", place + "/run")["limits"]["time_ms"] == 7000
    assert found["id"] in [s["id"] for s in client.get("/v1/sessions").json["sessions"]]
    assert client.delete(place).status == 204
    assert client.get(place).json["state"] == "ended"
    assert found["id"] not in [s["id"] for s in client.get("/v1/sessions").json["sessions"]]
    answer = client.post(place + "/run", {"code": "1"})
    assert answer.status == 410 and "has ended" in answer.json["detail"]
    assert client.delete(place).status == 410


@pytest.mark.parametrize("document, words", [
    ({"idle_ttl": 1}, '"idle_ttl" is no key'),
    ({"idle_ttl_ms": 5}, "idle_ttl_ms must be an integer from 1000"),
    ({"limits": {"disk": 1}}, '"limits.disk" is no key'),
    ({"template": "none"}, "none"), ({"policy": "lax"}, "policy"), ({"limits": 5}, "limits")])
def test_a_session_that_cannot_be(client, document, words):
    assert words in client.refused("/v1/sessions", document)


@pytest.mark.parametrize("keys, words", [
    ({"template": "bare"}, "template is the session's own"),
    ({"limits": {"memory_bytes": 100 * MIB}}, "limits.memory_bytes is the session's own"),
    ({"limits": {"disk_bytes": 100 * MIB}}, "limits.disk_bytes is the session's own"),
    ({"limits": {"processes": 8}}, "limits.processes is the session's own")])
def test_what_is_the_sessions_own(client, session, keys, words):
    assert words in client.refused(session + "/run", {"code": "1", **keys})
    assert client.run("1", session + "/run", limits={"time_ms": 9000})["status"] == "ok"


def test_checkpoint_rollback_undo(client, session):
    client.run("x = 1\nopen('f', 'w').write('one')", session + "/run")
    assert client.post(session + "/checkpoint", {"name": "one"}).json["checkpoints"] == ["one"]
    client.run("x = 2\nopen('f', 'w').write('two')", session + "/run")
    assert client.post(session + "/rollback", {"name": "one"}).status == 200
    assert client.run("print(x, open('f').read())", session + "/run")["stdout"] == "1 one\n"
    client.run("x = 3", session + "/run")
    assert client.post(session + "/undo").status == 200
    assert client.run("print(x)", session + "/run")["stdout"] == "1\n"
    client.run("1", session + "/run")
    assert client.post(session + "/undo", {}).status == 200
    again = client.post(session + "/undo")
    assert again.status == 409 and "nothing to undo" in again.json["detail"]
    assert client.delete(session + "/checkpoints/one").json["checkpoints"] == []
    gone = client.post(session + "/rollback", {"name": "one"})
    assert gone.status in (404, 409), gone


@pytest.mark.parametrize("document, words", [
    ({}, "name is missing"), ({"name": 5}, "name must be"), ({"name": ""}, "1 to 63"),
    ({"name": "x" * 64}, "1 to 63"), ({"name": "a", "x": 1}, '"x" is no key')])
def test_a_checkpoint_needs_a_name(client, session, document, words):
    assert words in client.refused(session + "/checkpoint", document)
    assert words in client.refused(session + "/rollback", document)


def test_branches_of_a_session(client, session):
    client.run("x = [1]\nopen('f', 'w').write('one')", session + "/run")
    answer = client.post(session + "/fork", {"n": 2})
    assert answer.status == 201 and len(answer.json["sessions"]) == 2
    first, second = (f"/v1/sessions/{found['id']}" for found in answer.json["sessions"])
    client.run("x.append(2)\nopen('f', 'w').write('two')", first + "/run")
    assert client.run("print(x, open('f').read())", first + "/run")["stdout"] == "[1, 2] two\n"
    for place in (session, second):
        assert client.run("print(x, open('f').read())", place + "/run")["stdout"] == "[1] one\n"
    assert len(client.post(session + "/fork").json["sessions"]) == 1
    for document, words in (({"n": 0}, "n must be"), ({"n": 129}, "n must be"),
                            ({"n": 1, "m": 1}, '"m" is no key'), ({"same_random": 1}, "true")):
        assert words in client.refused(session + "/fork", document)
    for found in answer.json["sessions"]:
        client.delete(f"/v1/sessions/{found['id']}")


def test_a_run_that_goes_on(client, connect, session, server):
    """It can be interrupted, holds the session, and what waits for it goes on afterwards."""
    results = []
    code = ("import time\ntry:\n    while True: time.sleep(0.05)\n"
            "except KeyboardInterrupt:\n    print('interrupted')")
    thread = threading.Thread(target=lambda: results.append(
        connect().run(code, session + "/run", limits={"time_ms": 60000})))
    thread.start()
    while client.get(session).json["state"] != "busy":
        time.sleep(0.02)
    assert client.post(session + "/checkpoint", {"name": "a"}).status == 409
    time.sleep(0.3)  # for the code to be in its try
    assert client.post(session + "/interrupt").status == 204
    thread.join()
    assert results[0]["stdout"] == "interrupted\n"
    idle = client.post(session + "/interrupt")
    assert idle.status == 409 and "no run goes on" in idle.json["detail"]


def test_a_slow_session_holds_up_no_other(client, connect, server):
    """Also in the first request to it, for which the daemon is asked."""
    slow, other = client.open(), client.open()
    thread = threading.Thread(target=lambda: connect().run("import time; time.sleep(3)",
                                                           slow + "/run"))
    thread.start()
    while client.get(slow).json["state"] != "busy":
        time.sleep(0.02)
    waiting = threading.Thread(target=lambda: connect().get(slow + "/files"))
    waiting.start()
    before = time.monotonic()
    assert connect().run("5", other + "/run")["value"] == {"text/plain": "5"}
    assert client.run("5")["value"] == {"text/plain": "5"}
    assert thread.is_alive() or time.monotonic() - before > 2
    thread.join()
    waiting.join()
    client.delete(slow)
    client.delete(other)


def test_events_of_a_session(client, session):
    events = client.events("print(1)\ndisplay(2)\n3", session + "/run")
    assert [e["event"] for e in events] == ["started", "stdout", "display", "result"]
    assert events[-1]["data"]["session"]["run"] == 1
    events = client.events("print(4)", session + "/run")
    assert [e["event"] for e in events] == ["started", "stdout", "result"]


def test_a_detached_run_of_a_session(client, session):
    place = client.post(session + "/run", {"code": "y = 5", "detach": True}).headers["Location"]
    assert client.run("print(y)", session + "/run")["stdout"] == "5\n"
    assert client.get(place).json["result"]["session"]["run"] == 1


def test_a_client_that_goes_away_leaves_its_session(client, connect, session, server):
    client.run("x = 'kept'", session + "/run")
    other = connect()
    body = {"code": "while True: pass", "limits": {"time_ms": 60000}}
    other.connection.request("POST", session + "/run", json.dumps(body),
                             {"Content-Type": "application/json"})
    while client.get(session).json["state"] != "busy":
        time.sleep(0.02)
    other.close()
    server.quiet()
    result = client.run("print(x)", session + "/run")
    assert result["stdout"] == "kept\n", result


@pytest.mark.parametrize("id", ["ses_none", "x" * 200, "a%20b"])
def test_a_session_that_is_not_there(client, id):
    place = f"/v1/sessions/{id}"
    assert client.get(place).status == client.delete(place).status == 404
    for action in ("run", "fork", "checkpoint", "rollback", "undo", "interrupt"):
        document = {"code": "1"} if action == "run" else {"name": "a"} if action in (
            "checkpoint", "rollback") else {}
        assert client.post(f"{place}/{action}", document).status == 404, action
    for part in ("files", "files/a", "files.tar"):
        assert client.get(f"{place}/{part}").status == 404, part
    assert client.put(place + "/files/a", b"").status == 404
    assert client.put(place + "/files.tar", b"").status == 404
    assert client.delete(place + "/files/a").status == 404


# -- files -----------------------------------------------------------------------------------------


def test_files_come_and_go(client, session):
    content = bytes(range(256)) * 5000
    assert client.put(session + "/files/d/e/a.bin", content).status == 204
    assert client.put(session + "/files/empty", b"").status == 204
    assert client.run("print(len(open('d/e/a.bin', 'rb').read()))",
                      session + "/run")["stdout"] == "1280000\n"
    listed = {f["path"]: f for f in client.get(session + "/files").json["files"]}
    assert set(listed) == {"d", "d/e", "d/e/a.bin", "empty"}
    assert listed["d/e/a.bin"]["size"] == len(content)
    answer = client.get(session + "/files/d/e/a.bin")
    assert answer.body == content and answer.headers["Accept-Ranges"] == "bytes"
    assert answer.headers["Content-Disposition"] == "attachment"
    head = client.ask("HEAD", session + "/files/d/e/a.bin")
    assert head.status == 200 and head.headers["Content-Length"] == str(len(content))
    assert client.get(session + "/files/empty").body == b""
    assert client.delete(session + "/files/empty").status == 204
    assert client.get(session + "/files/empty").status == 404
    assert client.delete(session + "/files/d").status == 409
    assert client.get(session + "/files/d").status == 400


@pytest.mark.parametrize("range, status, part", [
    ("bytes=0-0", 206, slice(0, 1)), ("bytes=2-4", 206, slice(2, 5)),
    ("bytes=5-", 206, slice(5, 10)), ("bytes=-3", 206, slice(7, 10)),
    ("bytes=-100", 206, slice(0, 10)), ("bytes=9-100", 206, slice(9, 10)),
    ("bytes=10-", 416, None), ("bytes=-0", 416, None), ("bytes=100-200", 416, None),
    ("bytes=4-2", 200, slice(0, 10)), ("bytes=1-2,4-5", 200, slice(0, 10)),
    ("lines=1-2", 200, slice(0, 10)), ("bytes=x", 200, slice(0, 10)),
    ("bytes=99999999999999999999-", 200, slice(0, 10))])
def test_ranges(client, session, range, status, part):
    content = b"0123456789"
    client.put(session + "/files/a", content)
    answer = client.get(session + "/files/a", headers={"Range": range})
    assert answer.status == status
    if part is None:
        assert answer.headers["Content-Range"] == "bytes */10"
    else:
        assert answer.body == content[part]
    if status == 206:
        assert answer.headers["Content-Range"] == f"bytes {part.start}-{part.stop - 1}/10"


def test_names_of_files(client, session):
    assert client.put(session + "/files/%C3%A4%20b%2Bc%25", b"x").status == 204
    assert [f["path"] for f in client.get(session + "/files").json["files"]] == ["ä b+c%"]
    assert client.get(session + "/files/%C3%A4%20b%2Bc%25").body == b"x"
    for name in ("../a", "a/../../b", "%2e%2e/a", "a/%2e%2e/b", "a//b", "./a"):
        assert client.put(f"{session}/files/{name}", b"").status in (400, 404), name
    client.run("import os\nos.symlink('/etc/passwd', 'link')\nos.mkfifo('fifo')",
               session + "/run", policy="open")
    assert client.get(session + "/files/link").status == 400
    assert client.get(session + "/files/fifo").status == 400


def test_a_file_that_is_beyond_the_disk(client):
    place = client.open(limits={"disk_bytes": 1 * MIB})
    answer = client.put(place + "/files/a", b"x" * 2 * MIB)
    assert answer.status == 413, answer
    assert client.get(place + "/files/a").status == 404
    assert client.put(place + "/files/a", b"x" * 1000).status == 204
    client.delete(place)


def test_an_archive_goes_both_ways(client, session):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in (("a.txt", b"one"), ("d/b.txt", b"two" * 1000)):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    assert client.put(session + "/files.tar", out.getvalue()).status == 204
    answer = client.get(session + "/files.tar")
    assert answer.headers["Content-Type"] == "application/x-tar"
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as archive:
        names = {m.name: archive.extractfile(m).read() for m in archive if m.isfile()}
    assert names == {"a.txt": b"one", "d/b.txt": b"two" * 1000}


@pytest.mark.parametrize("name, kind", [("../x", tarfile.REGTYPE), ("/x", tarfile.REGTYPE),
                                        ("l", tarfile.SYMTYPE), ("f", tarfile.FIFOTYPE)])
def test_an_archive_that_is_refused(client, session, name, kind):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = kind, "/etc/passwd"
        archive.addfile(entry)
    answer = client.put(session + "/files.tar", out.getvalue())
    assert answer.status == 400 and f"{name}" in answer.json["detail"]
    assert client.put(session + "/files.tar", b"no archive at all" * 100).status == 400


@pytest.mark.full
def test_holes_do_not_make_an_archive_of_any_size(client, session):
    """They take no room in the workspace, but in an archive."""
    client.post(session + "/run", {"policy": "open", "code":
        "for i in range(40):\n    open(f'f{i}', 'wb').truncate(60 << 20)"})
    answer = client.get(session + "/files.tar")
    assert answer.status in (400, 413) and "larger than" in answer.json["detail"]


# -- the contract ------------------------------------------------------------------------------------


def test_the_contract_is_linted():
    place = node.packages()
    done = subprocess.run([node.program(), "node_modules/@redocly/cli/bin/cli.js", "lint",
                           "--config", "redocly.yaml", "../../docs/openapi.yaml"], cwd=place,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_operation_was_asked(contract):
    """The last: all of the contract was answered well at least once by the tests here."""
    asked = {(method if method != "HEAD" else "GET", path) for method, path, status in contract.seen
             if status < 300}
    wanted = {(method.upper(), path) for path, item in contract.document["paths"].items()
              for method in item if method in ("get", "put", "post", "delete")}
    assert not wanted - asked, sorted(wanted - asked)
