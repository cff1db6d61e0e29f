# SPDX-License-Identifier: Apache-2.0
"""SandboxFusion's /run_code, against a schema of its public shape: it has no client in npm."""
import base64

import jsonschema
import pytest

from harness.compat import CompatClient

RUN = {"status": {"enum": ["Finished", "Error", "TimeLimitExceeded"]},
       "execution_time": {"type": "number"}, "return_code": {"type": ["integer", "null"]},
       "stdout": {"type": "string"}, "stderr": {"type": "string"}}
ANSWER = {
    "type": "object", "additionalProperties": False,
    "required": ["status", "message", "compile_result", "run_result", "executor_pod_name",
                 "files"],
    "properties": {
        "status": {"enum": ["Success", "Failed", "SandboxError"]}, "message": {"type": "string"},
        "compile_result": {"type": "null"}, "executor_pod_name": {"type": "null"},
        "files": {"type": "object", "additionalProperties": {"type": "string"}},
        "run_result": {"type": "object", "additionalProperties": False, "required": list(RUN),
                       "properties": RUN}}}


@pytest.fixture
def client(compat):
    client = CompatClient(compat.port)
    yield client
    client.close()


@pytest.fixture
def run(client):
    def run(code, **more):
        answer = client.post("/run_code", {"code": code, "language": "python", **more})
        assert answer.status == 200, answer
        jsonschema.validate(answer.json, ANSWER)
        return answer.json
    return run


def test_success(run):
    answer = run("import sys\nprint(input())\nprint('e', file=sys.stderr)", stdin="asked",
                 compile_timeout=10, run_timeout=5, memory_limit_MB=-1, files={}, fetch_files=[])
    assert (answer["status"], answer["message"]) == ("Success", "")
    found = answer["run_result"]
    assert (found["status"], found["return_code"]) == ("Finished", 0)
    assert (found["stdout"], found["stderr"]) == ("asked\n", "e\n")
    assert 0 < found["execution_time"] < 60


def test_what_is_null_is_not_said(run):
    assert run("print(1)", stdin=None, files=None, run_timeout=None)["status"] == "Success"


@pytest.mark.parametrize("code, code_, status, word", [
    ("1 / 0", 1, "Finished", "ZeroDivisionError"),
    ("raise SystemExit(3)", 3, "Finished", ""),
    ("import os; os.abort()", -6, "Finished", "signal 6"),
    ("x = bytearray(1 << 33)", -9, "Finished", "memory limit of 64 MiB"),
    ("while True: pass", None, "TimeLimitExceeded", "time limit of 500 ms"),
    ("def", 126, "Finished", "SyntaxError"),
    ("open('/etc/passwd', 'w')", 126, "Finished", "SecurityError"),
])
def test_failures(run, code, code_, status, word):
    answer = run("print('begun')\n" + code, memory_limit_MB=64,
                 run_timeout=0.5 if code_ is None else 20)
    found = answer["run_result"]
    assert answer["status"] == "Failed"
    assert (found["status"], found["return_code"]) == (status, code_), answer
    assert word in found["stderr"]
    assert found["stdout"] == ("" if code_ == 126 else "begun\n")
    if code_ is None or code_ < 0 or code_ == 126:
        assert answer["message"] and word in answer["message"] + found["stderr"]


def test_files(run):
    text = base64.b64encode("Ä".encode()).decode()
    answer = run("text = open('in/a.txt').read()\nopen('out.bin', 'wb').write(b'\\0\\xff')\n"
                 "print(text)", files={"in/a.txt": text, "left": None},
                 fetch_files=["out.bin", "./out.bin", "in/a.txt", "none", "out.bin"])
    assert answer["run_result"]["stdout"] == "Ä\n"
    assert answer["files"] == {"out.bin": "AP8=", "./out.bin": "AP8=", "in/a.txt": text}
    assert run("open('out', 'w').write('x')")["files"] == {}


@pytest.mark.parametrize("change, word", [
    ({"code": None}, "code"), ({"language": "cpp"}, "python"), ({"language": None}, "python"),
    ({"stdin": 1}, "stdin"), ({"files": {"a": "%"}}, "base64"), ({"files": ["a"]}, "files"),
    ({"files": {"../a": "YQ=="}}, "../a"), ({"fetch_files": [1]}, "fetch_files"),
    ({"run_timeout": "1"}, "run_timeout"),
])
def test_wrong_requests(client, change, word):
    answer = client.post("/run_code", {"code": "1", "language": "python", **change})
    assert answer.status in (400, 422) and word in answer.json["detail"], answer
