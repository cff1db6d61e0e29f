# SPDX-License-Identifier: Apache-2.0
"""Runs, checks, dry runs, batches and detached runs over REST."""
import base64
import json
import socket
import threading
import time

import pytest

from harness.daemon import configuration
from harness.host import SLOW
from harness.rest import Client, read_events
from harness.web import Server

MIB = 1 << 20


# -- what comes back ---------------------------------------------------------------------------


def test_a_run_gives_its_result(client):
    result = client.run("print(55)\n6 * 7")
    assert (result["status"], result["stdout"]) == ("ok", "55\n")
    assert result["value"] == {"text/plain": "42"} and result["session"] is None


def test_all_that_a_run_takes(client):
    result = client.run(
        "import sys\nprint(sys.argv[1:], input(), open('d/a.txt').read(), open('b').read())\n"
        "import os\nprint(os.environ['WHO'])\nopen('out.bin', 'wb').write(b'\\x00\\xff')",
        policy="open", args=["one", "zwei ä"], stdin="asked\n", env={"WHO": "me=you"},
        files=[{"path": "d/a.txt", "content": "Ä"},
               {"path": "b", "content_base64": base64.b64encode(b"bytes").decode()}],
        limits={"time_ms": 20000}, template="bare", return_files=True)
    assert result["stdout"] == "['one', 'zwei ä'] asked Ä bytes\nme=you\n"
    assert [f["content_base64"] for f in result["files"]] == ["AP8="]
    assert result["limits"]["time_ms"] == result["limits"]["cpu_ms"] == 20000


@pytest.mark.parametrize("code, status", [
    ("1/0", "error"), ("import os; os.system('x')", "blocked"), ("def", "blocked"),
    ("raise SystemExit(3)", "error"), ("while True: pass", "timeout"),
    ("print('x' * 2_000_000)", "output_limit"), ("a = bytearray(10**9)", "memory_limit")])
def test_code_that_does_not_end_well_is_no_error_of_http(client, code, status):
    result = client.run(code, limits={"time_ms": 1000, "cpu_ms": 30000})
    assert result["status"] == status


def test_output_that_is_too_much_is_cut_when_asked(client):
    result = client.run("print('x' * 3_000_000)", output="truncate")
    assert result["status"] == "ok" and result["output"]["truncated"]
    assert result["output"]["stdout_bytes"] == 3_000_001


def test_output_of_megabytes_comes_whole(client):
    """Long texts are converted piece by piece, also where a piece ends inside a character."""
    code = ("s = ''.join(chr(0xe9 + i % 7) + '\\x01\"\\n' for i in range(70_000))\n"
            "for i in range(28):\n    print(s, end='')\nprint(s[:160_000], end='')")
    result = client.run(code, limits={"output_bytes": 64 * MIB, "time_ms": 30000})
    text = "".join(chr(0xe9 + i % 7) + "\x01\"\n" for i in range(7))
    assert result["status"] == "ok" and len(result["stdout"]) == 8_000_000
    assert result["stdout"] == (text * 300_000)[:8_000_000]
    assert "lossy" not in result["output"]


def test_output_of_any_bytes_is_text(client):
    code = ("import sys\nsys.stdout.buffer.write((b'\\xe2\\x82' + b'a' * 70000) * 3 + b'\\xf0\\x9f')")
    result = client.run(code, policy="open")
    # Each of the two bytes is no character, as everywhere else in results.
    assert result["stdout"] == ("��" + "a" * 70000) * 3 + "��"
    assert result["output"]["lossy"]


def test_large_files_come_back_whole(client):
    result = client.run("open('f', 'wb').write(bytes(range(256)) * 4000)", return_files=True)
    assert base64.b64decode(result["files"][0]["content_base64"]) == bytes(range(256)) * 4000


def test_what_comes_back_is_bounded_in_sum(client):
    """Holes take no room in the workspace, but in a result."""
    result = client.run("for i in range(3):\n    open(f'f{i}', 'wb').truncate(20 << 20)",
                        return_files=True, policy="open")
    assert result["status"] == "ok"
    refused = [file["refused"] for file in result["files"] if "refused" in file]
    assert len(result["files"]) == 3 and len(refused) == 2
    assert all("too large to be returned" in text for text in refused), refused


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize("document, words", [
    ({}, "code is missing"),
    ({"code": 1}, "code must be a text"),
    ({"code": "1", "cod": 2}, '"cod" is no key'),
    ({"code": "1", "stdin": 5}, "stdin must be"),
    ({"code": "1", "args": "x"}, "args must be a list"),
    ({"code": "1", "args": [1]}, "args[0] must be a text"),
    ({"code": "1", "args": ["\0"]}, "args[0] must be a text"),
    ({"code": "1", "args": ["x"] * 257}, "args must be a list of at most 256"),
    ({"code": "1", "env": []}, "env must be an object"),
    ({"code": "1", "env": {"A": 1}}, "env.A must be a text"),
    ({"code": "1", "env": {"A=B": "1"}}, "env.A=B"),
    ({"code": "1", "env": {"": "1"}}, "env."),
    ({"code": "1", "files": {}}, "files must be a list"),
    ({"code": "1", "files": [5]}, "files[0]"),
    ({"code": "1", "files": [{"path": "a", "content": "x", "mode": 1}]}, '"mode" is no key'),
    ({"code": "1", "files": [{"content": "x"}]}, "files[0]: path is missing"),
    ({"code": "1", "files": [{"path": "a"}]}, "either content or content_base64"),
    ({"code": "1", "files": [{"path": "a", "content": "", "content_base64": ""}]}, "either"),
    ({"code": "1", "files": [{"path": "a", "content_base64": "?"}]}, "is not base64"),
    ({"code": "1", "files": [{"path": "../a", "content": ""}]}, "must stay in the workspace"),
    ({"code": "1", "files": [{"path": "/a", "content": ""}]}, "must be relative"),
    ({"code": "1", "files": [{"path": "main.py", "content": ""}]}, "the code's own"),
    ({"code": "1", "limits": []}, "limits must be an object"),
    ({"code": "1", "limits": {"time": 1}}, '"limits.time" is no key'),
    ({"code": "1", "limits": {"time_ms": 1}}, "limits.time_ms must be an integer from 10 to"),
    ({"code": "1", "limits": {"time_ms": "5s"}}, "limits.time_ms must be an integer"),
    ({"code": "1", "limits": {"time_ms": 5.5}}, "limits.time_ms must be an integer"),
    ({"code": "1", "limits": {"memory_bytes": 1 << 60}}, "limits.memory_bytes must be"),
    ({"code": "1", "limits": {"processes": -1}}, "limits.processes must be"),
    ({"code": "1", "policy": "lax"}, 'policy: "lax"'),
    ({"code": "1", "policy": "/etc/passwd"}, 'policy: "/etc/passwd"'),
    ({"code": "1", "policy": 1}, "policy must be a text"),
    ({"code": "1", "template": "none"}, "none"),
    ({"code": "1", "template": 1}, "template must be a text"),
    ({"code": "1", "output": "cut"}, "output must be"),
    ({"code": "1", "return_files": 1}, "return_files must be true or false"),
    ({"code": "1", "detach": "no"}, "detach must be true or false"),
    ({"code": "x" * (MIB + 1)}, "code"),
], ids=lambda value: json.dumps(value)[:50] if isinstance(value, dict) else None)
def test_a_request_that_is_wrong_names_the_key(client, document, words):
    status = 413 if len(str(document.get("code"))) > MIB else 400
    assert words in client.refused("/v1/run", document, status)
    assert client.run("1")["status"] == "ok"


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b"5", b"\"x\"", b'{"code": "1", "code": "2"}', b'{"code": "\xff"}',
    b'{"code": "1"} {}', b"[" * 5000, b'{"code": "\\ud800"}', b'{"a\\u0000": 1}'])
def test_what_is_no_object_is_refused(client, body):
    answer = client.post("/v1/run", body=body, headers={"Content-Type": "application/json"})
    assert answer.status in (400, 415), answer


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded",
                                  "application/jsonx"])
def test_a_body_says_that_it_is_json(client, kind):
    answer = client.post("/v1/run", body=b'{"code": "1"}',
                         headers={"Content-Type": kind} if kind else {})
    assert answer.status == 415
    assert client.post("/v1/run", body=b'{"code": "1"}',
                       headers={"Content-Type": "application/json; charset=utf-8"}).status == 200


def test_a_body_that_is_too_large_is_refused(client):
    answer = client.post("/v1/check", {"code": "x" * 9 * MIB})
    assert answer.status == 413


def test_a_body_of_too_many_values_is_refused(client):
    """Each takes a hundred times its bytes: counted before any is made."""
    answer = client.post("/v1/run", body=b'{"code": "1", "args": [' + b"[],"*200000 + b"[]]}",
                         headers={"Content-Type": "application/json"})
    assert answer.status == 400 and "more than 200000 values" in answer.json["detail"]
    many = '"[{,' * 50000
    assert client.post("/v1/run", {"code": f"print(len({many!r}))"}).json["stdout"] == "200000\n"


# -- check and probe -----------------------------------------------------------------------------


def test_check_gives_the_verdict(client):
    blocked = client.post("/v1/check", {"code": "import os\nos.system('x')"}).json
    assert blocked["decision"] == "block" and blocked["findings"][0]["line"] == 2
    assert client.post("/v1/check", {"code": "print(1)"}).json == {"decision": "allow",
                                                                  "findings": []}
    allowed = client.post("/v1/check", {"code": "import os\nos.system('x')", "policy": "open"})
    assert allowed.json["decision"] == "allow"
    assert '"stdin" is no key' in client.refused("/v1/check", {"code": "1", "stdin": ""})


def test_probe_tells_what_was_seen(client):
    seen = client.post("/v1/probe", {"code": "import json\nopen('a', 'w').write('x')"}).json
    assert seen["decision"] == "allow" and seen["status"] == "ok"
    assert [r["detail"] for r in seen["files_written"]] == ["a"]


# -- detached ------------------------------------------------------------------------------------


def wait_for(client, place):
    deadline = time.monotonic() + 60 * SLOW
    while True:
        found = client.get(place).json
        if found["state"] != "running":
            return found
        assert time.monotonic() < deadline, f"it goes on: {found}"
        time.sleep(0.02)


def test_a_detached_run_outlives_its_request(connect):
    first = connect()
    answer = first.post("/v1/run", {"code": "import time; time.sleep(0.5); print(7)",
                                    "detach": True})
    assert answer.status == 202 and answer.json["state"] == "running"
    place = answer.headers["Location"]
    first.close()
    other = connect()
    assert other.get(place).json["result"] is None
    found = wait_for(other, place)
    assert found["state"] == "done" and found["result"]["stdout"] == "7\n"
    assert found["result"]["id"] == found["id"]
    assert other.delete(place).status == 204
    assert other.get(place).status == other.delete(place).status == 404


def test_a_detached_run_can_be_cancelled(client, server):
    place = client.post("/v1/run", {"code": "while True: pass", "detach": True,
                                    "limits": {"time_ms": 60000}}).headers["Location"]
    assert client.delete(place).status == 204
    assert wait_for(client, place)["result"]["status"] == "cancelled"
    server.quiet()


def test_a_detached_run_has_no_events(client):
    answer = client.post("/v1/run", {"code": "1", "detach": True},
                         headers={"Accept": "text/event-stream"})
    assert answer.status == 400 and "detach" in answer.json["detail"]


# -- batches ---------------------------------------------------------------------------------------


def test_a_batch_answers_each_run_as_it_ends(client):
    runs = [{"code": "import time; time.sleep(2); print('slow')"}] + [
        {"code": f"print({n})"} for n in range(20)] + [{"code": "1/0"}, {"cod": 1}, 5,
        {"code": "1", "detach": True}, {"code": "1", "template": "none"}]
    answer = client.post("/v1/batch", {"runs": runs})
    assert answer.status == 200
    lines = {line["index"]: line for line in answer.lines}
    assert len(answer.lines) == len(runs) and sorted(lines) == list(range(len(runs)))
    assert answer.lines[0]["index"] != 0 and lines[0]["result"]["stdout"] == "slow\n"
    assert [lines[n + 1]["result"]["stdout"] for n in range(20)] == [f"{n}\n" for n in range(20)]
    assert lines[21]["result"]["status"] == "error"
    assert [lines[n]["problem"]["status"] for n in range(22, 26)] == [400] * 4


def test_a_batch_of_a_thousand(client):
    answer = client.post("/v1/batch", {"runs": [{"cod": 1}] * 990 + [{"code": "1"}] * 10})
    assert len(answer.lines) == 1000
    assert sum("result" in line for line in answer.lines) == 10
    assert "1 to 1000" in client.refused("/v1/batch", {"runs": [{"code": "1"}] * 1001})
    assert "1 to 1000" in client.refused("/v1/batch", {"runs": []})
    assert "1 to 1000" in client.refused("/v1/batch", {"runs": {"code": "1"}})
    assert '"run" is no key' in client.refused("/v1/batch", {"runs": [{"code": "1"}], "run": 1})


def test_a_batch_with_much_output_is_whole(client):
    runs = [{"code": f"print('{n}' * 900_000)"} for n in range(10)]
    lines = client.post("/v1/batch", {"runs": runs}).lines
    assert {line["result"]["stdout"][0] for line in lines} == set("0123456789")
    assert {len(line["result"]["stdout"]) for line in lines} == {900_001}


# -- events ----------------------------------------------------------------------------------------


def test_events_come_in_their_order(client):
    events = client.events("import sys\nprint(1)\nprint(2, file=sys.stderr)\ndisplay('three')\n4")
    names = [event["event"] for event in events]
    assert names[0] == "started" and names[-1] == "result"
    assert [e["data"]["text"] for e in events if e["event"] == "stdout"] == ["1\n"]
    assert [e["data"]["text"] for e in events if e["event"] == "stderr"] == ["2\n"]
    assert [e["data"]["text/plain"] for e in events if e["event"] == "display"] == ["'three'"]
    assert events[0]["data"]["id"] == events[-1]["data"]["id"]
    assert events[-1]["data"]["stdout"] == "1\n" and events[-1]["data"]["value"]


def stream(client, code, **keys):
    """(event, when it came) of each."""
    response = client.send("POST", "/v1/run", {"code": code, **keys},
                           headers={"Accept": "text/event-stream"})
    assert response.status == 200
    while True:
        line = response.readline().decode()
        if line.startswith("event: "):
            yield line[7:-1], time.monotonic()
        if not line:
            return


def test_events_come_while_the_code_runs(client):
    code = ("import os\nif 0: os.getcwd()\nprint('a', flush=True)\ndisplay(1)\nimport time\n"
            "time.sleep(1.5)\nprint('b')")
    seen = list(stream(client, code, policy="open"))
    when = dict(reversed(seen))
    assert when["result"] - when["started"] >= 1.4
    for name in ("stdout", "display", "finding"):
        if name in when:
            assert when["result"] - when[name] >= 0.9, name
    assert {"stdout", "display"} <= set(when)


def test_text_of_events_is_never_cut_inside_a_character(client):
    code = ("import sys, time\nfor b in '€😀'.encode():\n    sys.stdout.buffer.write(bytes([b]))\n"
            "    sys.stdout.flush()\n    time.sleep(0.05)")
    events = client.events(code, policy="open")
    assert "".join(e["data"]["text"] for e in events if e["event"] == "stdout") == "€😀"


def test_events_of_refused_code(client):
    events = client.events("import os\nos.system('x')")
    assert [e["event"] for e in events if e["event"] != "started"] == ["finding", "result"]
    assert events[-1]["data"]["status"] == "blocked"
    answer = client.post("/v1/run", {"code": "1", "template": "none"},
                         headers={"Accept": "text/event-stream"})
    assert answer.status == 400


def test_much_output_of_events_is_whole_also_when_it_is_not_kept(client):
    """The client reads slowly, so the code has to wait; nothing of it is lost."""
    code = "for n in range(300):\n    print(str(n % 10) * 9999)"
    response = client.send("POST", "/v1/run", {"code": code, "output": "truncate",
                                               "limits": {"time_ms": 30000}},
                           headers={"Accept": "text/event-stream"})
    time.sleep(0.5)
    events = read_events(response.read().decode())
    text = "".join(e["data"]["text"] for e in events if e["event"] == "stdout")
    assert text == "".join(str(n % 10) * 9999 + "\n" for n in range(300))
    assert events[-1]["data"]["output"]["truncated"]


# -- clients that go away --------------------------------------------------------------------------


@pytest.mark.parametrize("events", [False, True])
def test_a_client_that_goes_away_ends_its_run(connect, server, events):
    client = connect()
    code = "import time\nprint('on', flush=True)\nwhile True: time.sleep(0.01)"
    body = json.dumps({"code": code, "limits": {"time_ms": 60000}}).encode()
    accept = b"Accept: text/event-stream\r\n" if events else b""
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.sendall(b"POST /v1/run HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                    + accept + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        deadline = time.monotonic() + 20 * server.daemon.product.SLOW
        while server.cells() == 0:
            assert time.monotonic() < deadline, "it does not run"
            time.sleep(0.02)
    server.quiet(5)
    assert client.run("1")["status"] == "ok"


def test_a_batch_whose_client_goes_away_ends(connect, server):
    client = connect()
    response = client.send("POST", "/v1/batch", {"runs": [{"code": "1"}] + [
        {"code": "while True: pass", "limits": {"time_ms": 60000}}] * 20})
    assert json.loads(response.readline())["index"] == 0
    response.close()
    client.close()
    server.quiet(5)


def test_a_client_that_does_not_read_holds_up_only_its_own_code(connect, server):
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        body = json.dumps({"code": "while True: print('x' * 9999)", "output": "truncate",
                           "limits": {"time_ms": 60000}}).encode()
        raw.sendall(b"POST /v1/run HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n"
                    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
                    + body)
        client = connect()
        for _ in range(20):
            assert client.run("print(1)")["stdout"] == "1\n"
        with open(f"/proc/{server.pid}/status") as status:
            kib = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        assert kib < 64 * 1024
    server.quiet(5)


def test_many_clients_at_once(connect):
    failed = []

    def work(number):
        try:
            client = connect()
            for turn in range(5):
                assert client.run(f"print({number} * 100 + {turn})")["stdout"] == \
                    f"{number * 100 + turn}\n"
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_burst_of_runs_gets_its_cells(product, contract):
    """More than the template and the keeper can be told of at once."""
    place = product.directory("serve-burst")
    server = Server(product, place, configuration({"bare": (2, 4)}, runs=300, queue_wait="300s"))
    client = Client(contract, server.port)
    places = [client.post("/v1/run", {"code": f"print({n})", "detach": True}).headers["Location"]
              for n in range(150)]
    for number, place in enumerate(places):
        assert wait_for(client, place)["result"]["stdout"] == f"{number}\n"
    client.close()
    server.close()


# -- info ----------------------------------------------------------------------------------------


def test_info(client):
    info = client.get("/v1/info").json
    assert {t["name"] for t in info["templates"]} >= {"bare", "plot"}
    assert info["policies"] == ["strict", "standard", "open"]
    assert info["limits"]["time_ms"]["default"] == 5000
    assert any(p["name"] == "numpy" for p in info["packages"])
    assert client.get("/v1/info").json["python"] == info["python"]
