# SPDX-License-Identifier: Apache-2.0
"""Piston's API: by a client that others wrote, and what that cannot ask."""
import json

import jsonschema
import pytest

from harness import node
from harness.compat import CompatClient

STAGE = {"stdout": {"type": "string"}, "stderr": {"type": "string"}, "output": {"type": "string"},
         "code": {"type": ["integer", "null"]}, "signal": {"type": ["string", "null"]},
         "message": {"type": ["string", "null"]},
         "status": {"enum": [None, "RE", "SG", "TO", "OL", "EL", "XX"]},
         "memory": {"type": "integer"}, "cpu_time": {"type": "integer"},
         "wall_time": {"type": "integer"}}
ANSWER = {
    "type": "object", "additionalProperties": False, "required": ["run", "language", "version"],
    "properties": {"language": {"const": "python"},
                   "version": {"type": "string", "pattern": r"^3\.\d+\.\d+$"},
                   "run": {"type": "object", "additionalProperties": False,
                           "required": list(STAGE), "properties": STAGE}}}


@pytest.fixture(scope="module")
def said(compat):
    return json.loads(node.run("compat.mjs", "piston", f"http://127.0.0.1:{compat.port}",
                               seconds=120 * compat.daemon.product.SLOW))


@pytest.fixture
def client(compat):
    client = CompatClient(compat.port)
    yield client
    client.close()


@pytest.fixture
def run(client):
    def run(content, **more):
        answer = client.post("/api/v2/execute", {
            "language": "python", "version": "*", "files": [{"content": content}], **more})
        assert answer.status == 200, answer
        jsonschema.validate(answer.json, ANSWER)
        return answer.json["run"]
    return run


def test_its_client(said):
    runtime, = said["runtimes"]["data"]
    assert runtime["language"] == "python" and "py3" in runtime["aliases"]
    for name in ("ok", "files", "error", "slow"):
        jsonschema.validate(said[name]["data"], ANSWER)
        assert said[name]["data"]["version"] == runtime["version"]
    ok = said["ok"]["data"]["run"]
    assert (ok["stdout"], ok["stderr"], ok["code"]) == ("['a', 'b'] line\n", "e\n", 0)
    assert ok["signal"] is ok["status"] is ok["message"] is None
    assert said["files"]["data"]["run"]["stdout"] == "ä hex\n"
    error = said["error"]["data"]["run"]
    assert (error["code"], error["status"]) == (1, "RE") and "ZeroDivisionError" in error["stderr"]
    slow = said["slow"]["data"]["run"]
    assert (slow["code"], slow["signal"], slow["status"]) == (None, "SIGKILL", "TO")
    assert slow["stdout"] == "1\n" and slow["output"].startswith("1\nexecpy: the time limit")
    assert said["unknown"]["data"] == {"message": "rust-* runtime is unknown"}


@pytest.mark.parametrize("version, known", [
    ("*", True), ("3", True), ("3.x", True), ("x", True), (">=3.8 <4", True), ("^3.2", True),
    ("v3", True), ("2", False), ("<3", False), ("~3.2", False), ("4.x", False), ("", False),
    ("3.x.y", False), ("three", False), ("^3.99", False), ("3..1", False),
])
def test_versions(client, version, known):
    answer = client.post("/api/v2/execute",
                         {"language": "py", "version": version, "files": [{"content": ""}]})
    assert answer.status == (200 if known else 400), answer
    if not known:
        assert answer.json == {"message": f"py-{version} runtime is unknown"}


@pytest.mark.parametrize("code, code_, signal, status", [
    ("raise SystemExit(7)", 7, None, "RE"),
    ("import os; os.abort()", None, "SIGABRT", "SG"),
    ("x = bytearray(1 << 33)", None, "SIGKILL", "SG"),
    ("print('x' * (2 << 20))", None, "SIGKILL", "OL"),
    ("import sys; sys.stderr.write('x' * (2 << 20))", None, "SIGKILL", "EL"),
    ("import socket; socket.create_connection(('1.1.1.1', 80))", None, "SIGKILL", "SG"),
    ("def", 126, None, "RE"),
    ("open('/etc/passwd', 'w')", 126, None, "RE"),
])
def test_endings(run, code, code_, signal, status):
    found = run(code, run_memory_limit=64 << 20, run_timeout=20000)
    assert (found["code"], found["signal"], found["status"]) == (code_, signal, status), found
    if status != "RE" or code_ == 126:
        assert found["message"] and found["message"] in found["stderr"]


def test_output_is_in_the_order_of_writing(run):
    found = run("import sys, time\nfor i in range(3):\n    print(i, flush=True)\n"
                "    time.sleep(0.05)\n    print(-i, file=sys.stderr)\n    time.sleep(0.05)")
    assert found["output"] == "0\n0\n1\n-1\n2\n-2\n"


def test_limits(run, client):
    assert run("while True: pass", run_cpu_time=100)["status"] == "TO"
    assert run("print(1)", run_timeout=-1, run_memory_limit=-1, compile_timeout=1,
               compile_memory_limit=-1)["stdout"] == "1\n"
    assert run("print(1)", run_timeout=None, stdin=None, args=None)["stdout"] == "1\n"
    answer = client.post("/api/v2/execute", {"language": "python", "version": "*",
                                             "files": [{"content": ""}], "run_timeout": 10 ** 9})
    assert answer.status == 400 and "run_timeout cannot exceed" in answer.json["message"]


@pytest.mark.parametrize("change, word", [
    ({"language": None}, "language is required"), ({"version": 3}, "version must be a text"),
    ({"files": None}, "files is required"), ({"files": [{"content": 1}]}, "files[0]"),
    ({"files": [{"content": "YQ==", "encoding": "base64"}]}, "encoding utf8"),
    ({"files": [{"content": ""}, {"content": "a", "encoding": "base64"}]}, "files[1]"),
    ({"files": [{"content": ""}, {"content": "0x", "encoding": "hex"}]}, "files[1]"),
    ({"files": [{"content": "", "encoding": "latin1"}]}, "encoding must be"),
    ({"files": [{"content": "", "name": "../up"}]}, "../up"),
    ({"stdin": 1}, "stdin"), ({"args": "a"}, "args"), ({"run_timeout": "1"}, "run_timeout"),
])
def test_wrong_requests(client, change, word):
    request = {"language": "python", "version": "*", "files": [{"content": ""}], **change}
    answer = client.post("/api/v2/execute", request)
    assert answer.status == 400 and word in answer.json["message"], answer
    assert list(answer.json) == ["message"]


def test_what_is_no_json(client):
    answer = client.post("/api/v2/execute", body=b"{}", headers={"Content-Type": "text/plain"})
    assert answer.status == 415 and "application/json" in answer.json["message"]
    answer = client.post("/api/v2/execute", body=b"{",
                         headers={"Content-Type": "application/json"})
    assert answer.status == 400 and "JSON" in answer.json["message"]
