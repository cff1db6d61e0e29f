# SPDX-License-Identifier: Apache-2.0
"""MCP over HTTP with keys: what a tenant may have, and that nobody else has it."""
import hashlib
import http.client
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import Failed
from harness.daemon import Daemon, configuration, stopped
from harness.web import at_once, wait_until
from web import Web

pytestmark = pytest.mark.cold  # it has a daemon of its own
KEYS = {name: f"execpy_{name * 20}" for name in ("first", "second", "small", "forks")}
WHAT = {"first": "", "second": ", runs: 1, sessions: 1", "forks": ", sessions: 8",
        "small": ", limits: {time: 2s, memory: 64M}, policies: [standard]"}


@pytest.fixture(scope="module")
def tenants(product):
    """{name: Web} of one server."""
    place = product.directory("mcp-tenants")
    entries = [f"  - {{name: {name}, sha256: {hashlib.sha256(key.encode()).hexdigest()}{WHAT[name]}}}"
               for name, key in KEYS.items()]
    (place / "keys.yaml").write_text("keys:\n" + "\n".join(entries) + "\n")
    text = configuration({"bare": (2, 6)}, keys=place / "keys.yaml", audit=place / "audit.log")
    daemon = Daemon(product, place, text, listen=("127.0.0.1:0",))
    line = daemon.says("serving HTTP on")
    assert line, daemon.lines
    webs = {name: Web(line.split()[-1], 30 * product.SLOW, key) for name, key in KEYS.items()}
    webs["nobody"] = Web(line.split()[-1], 30 * product.SLOW, "execpy_" + "x" * 100)
    webs["audit"] = place / "audit.log"
    webs["daemon"] = daemon
    yield webs
    daemon.close()


def opened(web):
    return web.tool("python_session", action="create").result["structuredContent"]["sessions"][0]["id"]


def end(web, session):
    assert web.tool("python_session", action="end", session=session).result["isError"] is False


def test_without_a_key_nothing_is_heard(tenants):
    asked = tenants["nobody"].ask("tools/list")
    assert asked.status == 401 and asked.messages == []
    assert tenants["first"].ask("tools/list").status == 200


def test_nobody_else_has_an_mcp_session(tenants):
    first, second = tenants["first"], tenants["second"]
    first.begin()
    second.begin()
    own = second.session
    second.session = first.session
    assert second.request("ping").status == 404
    assert second.post(None, {"Mcp-Session-Id": first.session}, "DELETE").status == 404
    second.session = own
    assert second.request("ping").result == first.request("ping").result == {}


def test_nobody_else_has_a_session_or_its_files(tenants):
    first, second = tenants["first"], tenants["second"]
    session = opened(first)
    first.run("open('note.txt', 'w').write('mine')\nsecret = 1", session=session)
    uri = f"execpy://session/{session}/note.txt"
    for action in ("info", "undo", "fork", "end"):
        asked = second.tool("python_session", action=action, session=session).result
        assert asked["isError"] is True and f"no session {session}" in json.dumps(asked)
    asked = second.run("secret", session=session).result
    assert asked["isError"] is True and "no session" in asked["content"][0]["text"]
    with pytest.raises(Failed) as failed:
        second.ask("resources/read", {"uri": uri}).result
    assert failed.value.text == "Resource not found"
    assert second.ask("resources/list").result["resources"] == []
    assert session not in second.tool("python_session", action="list").text
    assert first.ask("resources/read", {"uri": uri}).result["contents"][0]["text"] == "mine"
    assert first.run("secret", session=session).text == "1\n"
    branch = first.tool("python_session", action="fork", session=session)
    branch = branch.result["structuredContent"]["sessions"][0]["id"]
    assert second.run("secret", session=branch).result["isError"] is True
    assert first.run("secret", session=branch).text == "1\n"
    end(first, branch)
    end(first, session)


def test_sessions_are_counted(tenants):
    second = tenants["second"]
    session = opened(second)
    asked = second.tool("python_session", action="create").result
    assert asked["isError"] is True and "which is the most" in asked["content"][0]["text"]
    end(second, session)
    asked = at_once([lambda: second.tool("python_session", action="create").result] * 6)
    assert [a["isError"] for a in asked].count(False) == 1
    session, = (a["structuredContent"]["sessions"][0]["id"] for a in asked if not a["isError"])
    end(second, session)
    end(second, opened(second))


def test_who_goes_away_has_no_more_sessions(tenants):
    """What was asked for and given up is counted until it has ended."""
    second = tenants["second"]
    brief = Web(f"http://{second.host}:{second.port}", 10, KEYS["second"])
    arguments = {"name": "python_session", "arguments": {"action": "create"}}
    warden, = tenants["daemon"].roles()["warden"]
    with stopped(warden):  # so that nothing comes to be
        for _ in range(3):
            second.leave(*second.stateless("tools/call", arguments), lambda: time.sleep(0.1))
        time.sleep(0.3)
        asked = brief.tool("python_session", action="create").result
        assert asked["isError"] is True and "which is the most" in asked["content"][0]["text"]
    created = []

    def create():
        result = second.tool("python_session", action="create").result
        created.append(result)
        return result["isError"] is False
    wait_until(create)
    end(second, created[-1]["structuredContent"]["sessions"][0]["id"])


def call_session(web, _id, **arguments):
    return web.request("tools/call", {"name": "python_session", "arguments": arguments}, _id=_id)


def test_a_cancelled_fork_leaves_nothing(tenants):
    """The branches that came to be all the same end, and what is not cancelled is there."""
    forks, count = tenants["forks"], lambda: tenants["daemon"].status()["sessions"]
    forks.begin()
    before = count()
    session = opened(forks)
    with ThreadPoolExecutor(1) as pool:
        for attempt in range(20):
            _id = f"fork {attempt}"
            asking = pool.submit(call_session, forks, _id, action="fork", session=session, count=7)
            while not asking.done():
                assert forks.notify("notifications/cancelled", requestId=_id).status == 202
            answer = asking.result()
            if not answer.messages:
                break
            for info in answer.result["structuredContent"]["sessions"]:
                end(forks, info["id"])
        else:
            pytest.fail("none was cancelled while it went on")
    wait_until(lambda: count() == before + 1)
    listed = forks.tool("python_session", action="list").result["structuredContent"]["sessions"]
    assert [info["id"] for info in listed] == [session]
    branches = call_session(forks, "kept", action="fork", session=session, count=7)
    branches = branches.result["structuredContent"]["sessions"]
    assert len(branches) == 7 and count() == before + 8
    for info in [*branches, {"id": session}]:
        end(forks, info["id"])
    wait_until(lambda: count() == before)


def test_runs_are_counted(tenants):
    second = tenants["second"]
    answers = []
    long = threading.Thread(target=lambda: answers.append(second.run("import time; time.sleep(1.5)")))
    long.start()
    time.sleep(0.5)
    asked = second.run("print(1)").result
    assert asked["isError"] is True and "as many runs" in asked["content"][0]["text"]
    assert tenants["first"].run("print(1)").text == "1\n"
    long.join()
    assert answers[0].result["isError"] is False
    assert second.run("print(1)").text == "1\n"


def test_ceilings_and_policies_hold(tenants):
    small = tenants["small"]
    listed = {tool["name"]: tool for tool in small.ask("tools/list").result["tools"]}
    asked = listed["execute_python"]["inputSchema"]["properties"]
    assert (asked["time_ms"]["maximum"], asked["time_ms"]["default"]) == (2000, 2000)
    assert asked["memory_bytes"]["maximum"] == 64 * 2 ** 20
    assert small.run("print(1)", time_ms=2001).result["isError"] is True
    ran = small.run("print(1)").result["structuredContent"]
    assert ran["limits"]["time_ms"] == 2000 and ran["limits"]["memory_bytes"] == 64 * 2 ** 20
    assert ran["policy"] == "standard"
    assert tenants["first"].run("print(1)", time_ms=2001).result["structuredContent"]["policy"] == "strict"


def test_the_audit_log_has_it(tenants):
    code = "print('in the log')"
    tenants["first"].run(code)
    tenants["first"].tool("check_python", code=code)
    lines = [json.loads(line) for line in tenants["audit"].read_text().splitlines()]
    digest = hashlib.sha256(code.encode()).hexdigest()
    kinds = [line["kind"] for line in lines if digest in line.values() and line["key"] == "first"]
    assert kinds == ["mcp execute_python", "mcp check_python"]


def test_the_audit_log_has_what_is_left(tenants):
    """A run of which the client that asked for it is gone."""
    first, daemon = tenants["first"], tenants["daemon"]
    code = "while True: pass  # left"
    digest = hashlib.sha256(code.encode()).hexdigest()
    message = first.stateless("tools/call", {"name": "execute_python", "arguments": {"code": code}})
    first.leave(*message, lambda: wait_until(lambda: daemon.status()["running"] == 1))

    def told():
        lines = [json.loads(line) for line in tenants["audit"].read_text().splitlines()]
        return [line for line in lines if line["code_sha256"] == digest]
    wait_until(told, 5)
    line, = told()
    assert (line["kind"], line["status"]) == ("mcp execute_python", "cancelled")


def test_rest_has_the_same_sessions(tenants):
    """What one way of asking opened the other knows, for the same key only."""
    first, second = tenants["first"], tenants["second"]
    session = opened(first)
    first.run("kept = 5", session=session)

    def ask(web, method, path, body=None):
        connection = http.client.HTTPConnection(web.host, web.port, timeout=web.seconds)
        connection.request(method, path, body, {**web.standard, "Content-Type": "application/json"})
        response = connection.getresponse()
        status, data = response.status, response.read()
        connection.close()
        return status, json.loads(data) if data else None
    assert ask(first, "GET", f"/v1/sessions/{session}")[0] == 200
    assert ask(second, "GET", f"/v1/sessions/{session}")[0] == 404
    status, opened_there = ask(first, "POST", "/v1/sessions", "{}")
    assert status == 201
    other = opened_there["id"]
    assert first.run("1 + 1", session=other).text == "2\n"
    assert second.run("1 + 1", session=other).result["isError"] is True
    assert other in first.tool("python_session", action="list").text
    assert ask(first, "DELETE", f"/v1/sessions/{session}")[0] == 204
    assert first.run("kept", session=session).result["isError"] is True
    end(first, other)
