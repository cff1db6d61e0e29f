# SPDX-License-Identifier: Apache-2.0
"""MCP over HTTP: what of a request is looked at, what becomes of its response, and whose it is."""
import base64
import threading
import time

import pytest

from conftest import META, STATELESS, VERSION, Failed
from harness.daemon import Daemon, configuration
from web import BOTH, Web

pytestmark = pytest.mark.cold  # each has a daemon of its own
PARSE, REQUEST, METHOD, PARAMS, MISMATCH, UNSUPPORTED = -32700, -32600, -32601, -32602, -32020, -32022


@pytest.fixture(scope="module")
def daemon(product):
    place = product.directory("mcp-http")
    daemon = Daemon(product, place, configuration({"bare": (2, 4)}), listen=("127.0.0.1:0",))
    yield daemon
    daemon.close()


@pytest.fixture(scope="module")
def url(daemon):
    line = daemon.says("serving HTTP on")
    assert line, daemon.lines
    return line.split()[-1]


@pytest.fixture
def web(product, url):
    return Web(url, 30 * product.SLOW)


def wait_until(product, true, seconds=15):
    deadline = time.monotonic() + seconds * product.SLOW
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


# --- the stateless revision --------------------------------------------------------------------------

def test_a_request_stands_alone(web, product):
    found = web.ask("server/discover")
    assert found.type == "application/json" and "mcp-session-id" not in found.header
    assert found.result["supportedVersions"] == [STATELESS]
    assert found.result["resultType"] == "complete" and found.result["ttlMs"] > 0
    assert found.result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "execpy"
    ran = web.run("print('hello')\n2 + 3")
    assert ran.text == "hello\n[value]\n5\n" and ran.result["isError"] is False
    assert not list(product.validator.iter_errors(ran.result["structuredContent"]))
    assert "cacheScope" in web.ask("tools/list").result


def test_many_at_once_with_one_id(web):
    answers = []

    def ask(number):
        message, headers = web.stateless("tools/call", {"name": "execute_python", "arguments": {
            "code": f"import time; time.sleep(0.2); print({number})"}})
        message["id"] = "same"
        answers.append((number, web.post(message, headers).text))
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [(number, f"{number}\n") for number in range(6)]


@pytest.mark.parametrize("header, code", [
    ({"MCP-Protocol-Version": None}, MISMATCH),
    ({"MCP-Protocol-Version": "2025-11-25"}, MISMATCH),
    ({"MCP-Protocol-Version": "2099-01-01"}, MISMATCH),
    ({"Mcp-Method": None}, MISMATCH),
    ({"Mcp-Method": "tools/list"}, MISMATCH),
    ({"Mcp-Method": "TOOLS/CALL"}, MISMATCH),
    ({"Mcp-Name": None}, MISMATCH),
    ({"Mcp-Name": "check_python"}, MISMATCH),
    ({"Mcp-Name": "=?base64?Y2hlY2tfcHl0aG9u?="}, MISMATCH),            # check_python
    ({"Mcp-Name": "=?base64?ZXhlY3V0ZV9weXRob24?=="}, MISMATCH),        # one pad too many
    ({"Mcp-Name": "=?base64?ZXhlY3V0 ZV9weXRob24=?="}, MISMATCH),
], ids=str)
def test_a_header_that_says_something_else_is_refused(web, header, code):
    asked = web.run("print(1)", header=header)
    assert (asked.status, asked.code) == (400, code)
    assert asked.messages[-1]["id"] == web.serial


@pytest.mark.parametrize("name", ["execute_python", "  execute_python ",
                                  "=?base64?ZXhlY3V0ZV9weXRob24=?="])
def test_a_header_that_says_the_same_is_taken(web, name):
    assert web.run("print(1)", header={"Mcp-Name": name}).text == "1\n"


def test_a_uri_is_named_in_base64(web):
    uri = "execpy://session/nobody/räume.txt"
    encoded = base64.b64encode(uri.encode()).decode()
    asked = web.ask("resources/read", {"uri": uri}, header={"Mcp-Name": f"=?base64?{encoded}?="})
    assert asked.status == 200 and asked.code == PARAMS
    assert asked.messages[-1]["error"]["data"] == {"uri": uri}


@pytest.mark.parametrize("meta", [None, {}, {VERSION: STATELESS}, {VERSION: 7}])
def test_meta_must_be_whole(web, meta):
    message, headers = web.stateless("tools/list")
    message["params"] = {} if meta is None else {"_meta": meta}
    asked = web.post(message, headers)
    assert (asked.status, asked.code) == (400, PARAMS)


def test_another_revision_is_told_which_there_are(web):
    asked = web.ask("tools/list", _meta={VERSION: "2099-01-01"},
                    header={"MCP-Protocol-Version": "2099-01-01"})
    assert (asked.status, asked.code) == (400, UNSUPPORTED)
    assert asked.messages[-1]["error"]["data"] == {"supported": [STATELESS],
                                                   "requested": "2099-01-01"}


@pytest.mark.parametrize("method", ["no/such", "initialize", "ping"])
def test_an_unknown_method_is_not_found(web, method):
    asked = web.ask(method)
    assert (asked.status, asked.code) == (404, METHOD)


def test_a_wrong_argument_is_a_result(web):
    asked = web.tool("execute_python", codes="1")
    assert asked.status == 200 and asked.result["isError"] is True
    asked = web.ask("tools/call", {"name": "no_such_tool"})
    assert (asked.status, asked.code) == (200, PARAMS)


@pytest.mark.parametrize("body, code", [(b"", PARSE), (b"{", PARSE), (b"[]", REQUEST), (b"7", REQUEST),
                                        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', REQUEST)])
def test_what_is_no_message(web, body, code):
    asked = web.post(body, {"Content-Type": "application/json", "Accept": BOTH})
    assert (asked.status, asked.code) == (400, code)


def test_media_types(web):
    message, headers = web.stateless("tools/list")
    assert web.post(message, {**headers, "Content-Type": "text/plain"}).status == 415
    assert web.post(message, {**headers, "Content-Type": None}).status == 415
    assert web.post(message, {**headers, "Content-Type": "Application/JSON; charset=utf-8"}).result
    assert web.post(message, {**headers, "Accept": "text/html"}).status == 406
    assert web.post(message, {**headers, "Accept": "text/event-stream;q=0, text/html"}).status == 406
    assert web.post(message, {**headers, "Accept": None}).type == "application/json"
    assert web.post(message, {**headers, "Accept": "*/*"}).type == "application/json"
    stream = web.post(message, {**headers, "Accept": "text/event-stream"})
    assert stream.type == "text/event-stream" and len(stream.result["tools"]) == 3


def test_a_message_that_is_too_long(web):
    asked = web.post(b" " * (8 * 1024 * 1024 + 1), {"Content-Type": "application/json"})
    assert asked.status == 413


def test_progress_makes_a_stream(web):
    code = "import time\nprint('begun', flush=True)\ntime.sleep(1.3)\nprint('ended')"
    asked = web.run(code, _meta={"progressToken": "p"})
    assert asked.type == "text/event-stream" and asked.header["x-accel-buffering"] == "no"
    told = [m["params"] for m in asked.messages[:-1]]
    assert len(told) >= 1 and {p["progressToken"] for p in told} == {"p"}
    assert asked.text == "begun\nended\n"
    # Who takes no stream is told the end only; who asked for nothing gets one object.
    alone = web.run(code, _meta={"progressToken": "p"}, header={"Accept": "application/json"})
    assert alone.type == "application/json" and alone.text == "begun\nended\n"
    assert web.run(code).type == "application/json"


def test_who_goes_away_cancels(web, product):
    session = web.tool("python_session", action="create").result["structuredContent"]["sessions"][0]["id"]

    def busy():
        found = web.tool("python_session", action="info", session=session)
        return found.result["structuredContent"]["sessions"][0]["busy"]
    message, headers = web.stateless("tools/call", {"name": "execute_python", "arguments": {
        "code": "import time\nwhile True: time.sleep(0.01)", "session": session,
        "time_ms": 100000}})
    web.leave(message, headers, lambda: wait_until(product, busy))
    wait_until(product, lambda: not busy())
    assert web.run("print('free')", session=session).text.startswith("free\n")
    web.tool("python_session", action="end", session=session)


# --- those that begin with initialize ------------------------------------------------------------------

@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26"])
def test_a_session_of_mcp(web, version):
    begun = web.begin(version)
    assert begun.result["protocolVersion"] == version
    assert len(web.session) == 32
    assert web.notify("notifications/initialized").status == 202
    assert web.request("ping").result == {}
    assert web.request("tools/call", {"name": "execute_python", "arguments": {"code": "6 * 7"}}).text \
        == "42\n"
    assert "resultType" not in web.request("tools/list").result
    assert web.post(*web.legacy({"id": 9, "result": {}})).status == 202
    ended = web.post(None, {"Mcp-Session-Id": web.session}, "DELETE")
    assert ended.status == 204 and ended.body == b""
    assert web.request("ping").status == 404
    assert web.notify("notifications/initialized").status == 404


def test_each_has_an_id_of_its_own(web):
    ids = set()
    for _ in range(5):
        web.begin()
        ids.add(web.session)
    assert len(ids) == 5


def test_without_its_id_nothing_is_done(web):
    web.begin()
    assert (web.request("ping", header={"Mcp-Session-Id": None}).status) == 400
    assert (web.request("ping", header={"Mcp-Session-Id": "0" * 32}).status) == 404
    assert (web.request("ping", header={"Mcp-Session-Id": ""}).status) == 404
    assert web.post(None, {}, "DELETE").status == 400
    assert web.post(None, {"Mcp-Session-Id": "0" * 32}, "DELETE").status == 404
    assert web.request("ping").result == {}


def test_its_revision_must_be_known(web):
    web.begin()
    assert web.request("ping", header={"MCP-Protocol-Version": "2099-01-01"}).status == 400
    assert web.request("ping", header={"MCP-Protocol-Version": None}).result == {}


def test_a_failed_initialize_opens_nothing(web):
    asked = web.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}},
                     {"Content-Type": "application/json", "Accept": BOTH})
    assert asked.code == PARAMS and "mcp-session-id" not in asked.header


def test_an_unknown_method_is_an_answer(web):
    web.begin()
    asked = web.request("no/such")
    assert (asked.status, asked.code) == (200, METHOD)


def test_a_notification_cancels(web, product):
    web.begin()
    answers = []
    asking = threading.Thread(target=lambda: answers.append(web.request("tools/call", {
        "name": "execute_python", "arguments": {"code": "import time\nwhile True: time.sleep(0.01)",
                                                "time_ms": 100000}}, _id="long")))
    asking.start()
    time.sleep(0.5)
    # Another client's words are another client's.
    other = Web(f"http://{web.host}:{web.port}", web.seconds)
    other.begin()
    assert other.notify("notifications/cancelled", requestId="long").status == 202
    asking.join(0.5)
    assert asking.is_alive()
    began = time.monotonic()
    assert web.notify("notifications/cancelled", requestId="long").status == 202
    asking.join(20 * product.SLOW)
    assert not asking.is_alive() and time.monotonic() - began < 10 * product.SLOW
    assert answers[0].messages == [] and answers[0].type == "text/event-stream"


def test_delete_ends_what_goes_on(web, product):
    web.begin()
    answers = []
    asking = threading.Thread(target=lambda: answers.append(web.request("tools/call", {
        "name": "execute_python", "arguments": {"code": "import time\nwhile True: time.sleep(0.01)",
                                                "time_ms": 100000}})))
    asking.start()
    time.sleep(0.5)
    assert web.post(None, {"Mcp-Session-Id": web.session}, "DELETE").status == 204
    asking.join(20 * product.SLOW)
    assert not asking.is_alive() and answers[0].messages == []


def test_who_goes_away_does_not_cancel(web, product):
    web.begin()
    created = web.request("tools/call", {"name": "python_session", "arguments": {"action": "create"}})
    session = created.result["structuredContent"]["sessions"][0]["id"]

    def info():
        found = web.tool("python_session", action="info", session=session)
        return found.result["structuredContent"]["sessions"][0]
    message, headers = web.legacy({"id": "left", "method": "tools/call", "params": {
        "name": "execute_python", "arguments": {"code": "import time; time.sleep(1); kept = 7",
                                                "session": session}}})
    web.leave(message, headers, lambda: wait_until(product, lambda: info()["busy"]))
    wait_until(product, lambda: not info()["busy"])
    assert web.run("kept", session=session).text == "7\n"
    web.tool("python_session", action="end", session=session)


def test_an_id_is_used_once_at_a_time(web):
    web.begin()
    answers = []
    asking = threading.Thread(target=lambda: answers.append(web.request("tools/call", {
        "name": "execute_python", "arguments": {"code": "import time; time.sleep(1.5)"}}, _id="one")))
    asking.start()
    time.sleep(0.5)
    again = web.request("ping", _id="one")
    assert (again.status, again.code) == (400, REQUEST)
    asking.join()
    assert answers[0].result["isError"] is False
    assert web.request("ping", _id="one").result == {}


# --- both ------------------------------------------------------------------------------------------------

def test_there_is_nothing_to_get(web):
    asked = web.post(None, {"Accept": "text/event-stream"}, "GET")
    assert asked.status == 405 and set(asked.header["allow"].split(", ")) == {"POST", "DELETE"}


def test_eras_share_what_python_has(web):
    web.begin()
    created = web.request("tools/call", {"name": "python_session", "arguments": {"action": "create"}})
    session = created.result["structuredContent"]["sessions"][0]["id"]
    web.run("open('note.txt', 'w').write('kept')\nx = 1", session=session)
    web.post(None, {"Mcp-Session-Id": web.session}, "DELETE")
    listed = web.ask("resources/list").result["resources"]
    uri = next(r["uri"] for r in listed if r["name"] == "note.txt" and session in r["uri"])
    web.begin("2025-06-18")
    assert web.request("resources/read", {"uri": uri}).result["contents"][0]["text"] == "kept"
    shown = web.request("tools/call", {"name": "python_session", "arguments": {"action": "list"}})
    assert session in shown.text
    web.tool("python_session", action="end", session=session)
    with pytest.raises(Failed):
        web.ask("resources/read", {"uri": uri}).result
