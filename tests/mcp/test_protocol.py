# SPDX-License-Identifier: Apache-2.0
"""JSON-RPC and the life of a connection, in raw messages."""
import json
import signal
import subprocess
import time

import pytest

from conftest import META, STATELESS, VERSION, Failed, text_of

PARSE, REQUEST, METHOD, PARAMS, UNSUPPORTED = -32700, -32600, -32601, -32602, -32022
LONG = "import time\nwhile True: time.sleep(0.01)"


# --- life ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
def test_it_speaks_what_the_client_speaks(connect, version):
    client = connect()
    result = client.initialize(version)
    assert result["protocolVersion"] == version
    assert result["serverInfo"]["name"] == "execpy" and result["serverInfo"]["version"]
    assert result["capabilities"] == {"tools": {}, "resources": {}}
    assert client.ask("ping") == {}
    assert client.close() == 0


@pytest.mark.parametrize("version", ["2099-01-01", "", STATELESS])
def test_it_offers_its_newest_for_what_it_does_not_know(connect, version):
    assert connect().initialize(version)["protocolVersion"] == "2025-11-25"


def test_ping_comes_before_initialize_and_all_else_behind(connect):
    client = connect()
    assert client.ask("ping") == {}
    with pytest.raises(Failed) as failed:
        client.ask("tools/list")
    assert failed.value.code == PARAMS and "initialize" in failed.value.text
    client.initialize()
    assert len(client.ask("tools/list")["tools"]) == 3


def test_stdin_that_ends_at_once(connect):
    client = connect()
    assert client.close() == 0
    assert client.next() is None


def test_a_client_that_goes_away_takes_its_runs_along(connect):
    client = connect()
    client.initialize()
    for _ in range(3):
        client.begin("tools/call", name="execute_python",
                     arguments={"code": "print(1)\n" + LONG, "time_ms": 60000})
    session = client.session()
    client.begin("tools/call", name="execute_python",
                 arguments={"code": LONG, "session": session, "time_ms": 60000})
    assert client.run("print(1)")["isError"] is False
    began = time.monotonic()
    assert client.close() == 0
    assert time.monotonic() - began < 3 * client.product.SLOW
    # That nothing is left is what the fixture looks at.


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_as_stdin_does(client, number):
    client.begin("tools/call", name="execute_python", arguments={"code": LONG, "time_ms": 60000})
    assert client.run("print(1)")["isError"] is False
    client.process.send_signal(number)
    assert client.process.wait(5 * client.product.SLOW) == 0


def test_killed_it_leaves_nothing(client):
    client.begin("tools/call", name="execute_python", arguments={"code": LONG, "time_ms": 60000})
    assert client.run("print(1)")["isError"] is False
    client.process.kill()
    client.process.wait()


def test_a_client_that_does_not_read_any_more(product, watch, place):
    process = product.start("mcp", cwd=place, stdin=subprocess.PIPE)
    process.stdout.close()
    process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    process.stdin.flush()
    assert process.wait(5 * product.SLOW) == 0
    process.stdin.close()
    process.stderr.close()


def test_wrong_command_lines(product, watch, place):
    for words in (["--policy", "nosuch"], ["x.py"], ["--nosuch"], ["--time", "1y"]):
        done = product.execute("mcp", *words, cwd=place, daemon=True)
        assert done.returncode == 2 and done.stdout == b"", str(done)


def test_stdin_may_be_a_file(product, watch, place):
    path = place / "messages"
    path.write_bytes(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n' * 3)
    with open(path, "rb") as messages:
        done = product.execute("mcp", "--no-daemon", cwd=place, stdin=messages, daemon=True)
    assert done.returncode == 0 and done.stdout.count(b'"result":{}') == 3, str(done)
    done = product.execute("mcp", "--no-daemon", cwd=place, daemon=True)  # /dev/null
    assert done.returncode == 0 and done.stdout == b"", str(done)


def test_large_answers_come_whole(client):
    numbers = [client.begin("tools/call", name="execute_python",
                            arguments={"code": "print('y' * 900_000)"}) for _ in range(20)]
    assert all(client.answer(number)["isError"] is False for number in numbers)


def test_standard_error_stays_empty(connect):
    client = connect()
    client.initialize()
    client.raw(b"{\n")
    assert client.error() == (None, PARSE)
    client.run("import sys; print('x', file=sys.stderr)")
    client.close()
    assert client.process.stderr.read() == b""


# --- what is wrong -------------------------------------------------------------------------------

MISTAKES = [
    (b"{", None, PARSE),
    (b"hello", None, PARSE),
    (b"\0", None, PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"} x', None, PARSE),
    (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', None, PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"p\xff"}', None, PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}', None, PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"\0}', None, PARSE),
    (b"[" * 100000, None, PARSE),
    (b"[]", None, REQUEST),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', None, REQUEST),
    (b"1", None, REQUEST),
    (b'"ping"', None, REQUEST),
    (b"null", None, REQUEST),
    (b"{}", None, REQUEST),
    (b'{"id":1,"method":"ping"}', 1, REQUEST),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 1, REQUEST),
    (b'{"jsonrpc":2.0,"id":1,"method":"ping"}', 1, REQUEST),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, REQUEST),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None, REQUEST),
    (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', None, REQUEST),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, REQUEST),
    (b'{"jsonrpc":"2.0","id":7}', 7, REQUEST),
    (b'{"jsonrpc":"2.0","id":7,"method":1}', 7, REQUEST),
    (b'{"jsonrpc":"2.0","id":"a","method":"nosuch"}', "a", METHOD),
    (b'{"jsonrpc":"2.0","id":"a","method":"prompts/list"}', "a", METHOD),
    (b'{"jsonrpc":"2.0","id":"a","method":"server/discover"}', "a", METHOD),
    (b'{"jsonrpc":"2.0","id":"a","method":"notifications/cancelled"}', "a", METHOD),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', 1, PARAMS),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', 1, PARAMS),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', 1, PARAMS),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1}}', 1, PARAMS),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nosuch"}}', 1, PARAMS),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"check_python",'
     b'"arguments":[]}}', 1, PARAMS),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}', 1, PARAMS),
    (b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{}}', 1, PARAMS),
    (b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}',
     1, -32002),
    (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}', 1, PARAMS),
]


def test_each_mistake_has_its_error_and_ends_nothing(common):
    for line, number, code in MISTAKES:
        common.raw(line + b"\n")
        assert common.error() == (number, code), line
        assert common.ask("ping") == {}


SILENT = [
    b"", b"  \r", b'{"jsonrpc":"2.0","id":9,"result":{}}',
    b'{"jsonrpc":"2.0","id":9,"error":{"code":1,"message":"x"}}',
    b'{"jsonrpc":"2.0","method":"notifications/nosuch"}',
    b'{"jsonrpc":"2.0","method":"ping"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}',
]


def test_what_asks_for_nothing_gets_no_answer(common):
    for line in SILENT:
        common.raw(line + b"\n")
        assert common.ask("ping") == {}, line
        assert not common.aside


def test_a_line_of_10_megabytes(client):
    before = client.ask("ping")
    client.raw(b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":"' + b"x" * 10_000_000)
    assert client.error() == (None, REQUEST)
    client.raw(b'"}}\n')
    assert client.ask("ping") == before
    # Just below the bound it is a message like others.
    code = "# " + "x" * 900_000 + "\nprint(1)"
    assert client.text(code, files=[{"path": "a", "content": "y" * 7_000_000}]).startswith("1\n")


def test_messages_in_pieces_and_together(client):
    one = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\r\n'
    for byte in one % 100:
        client.raw(bytes([byte]))
    assert client.answer(100) == {}
    client.raw(b"".join(one % n for n in range(200, 1200)))
    for n in range(200, 1200):
        assert client.next()["id"] == n


def test_odd_ids_come_back_as_they_were(client):
    for number in (0, -5, 2**62, "", "ä\u2028\"", "1"):
        assert client.answer(client.begin("ping", _id=number)) == {}
    client.raw(b'{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}\n')
    assert client.error() == (None, PARSE)


def test_the_same_id_twice(client):
    first = client.begin("tools/call", name="execute_python",
                         arguments={"code": "import time; time.sleep(0.5)"})
    client.begin("ping", _id=first)
    assert client.error() == (first, REQUEST)
    assert client.answer(first)["isError"] is False
    assert client.answer(client.begin("ping", _id=first)) == {}


def test_code_with_a_nul_is_code_that_is_wrong(common):
    result = common.run("print(1)\0")
    assert result["isError"] and "NUL" in text_of(result).upper()


# --- many at a time ------------------------------------------------------------------------------

def test_calls_go_on_at_the_same_time(client):
    client.run("1")
    slow = client.begin("tools/call", name="execute_python",
                        arguments={"code": "import time; time.sleep(1); print('slow')"})
    fast = [client.begin("tools/call", name="execute_python", arguments={"code": f"print({n})"})
            for n in range(3)]
    for n, number in enumerate(fast):
        assert text_of(client.answer(number)) == f"{n}\n"
    assert not any(message.get("id") == slow for message in client.aside)
    assert text_of(client.answer(slow)) == "slow\n"


def test_too_many_calls_are_refused_one_by_one(client):
    numbers = [client.begin("tools/call", name="execute_python",
                            arguments={"code": "import time; time.sleep(0.2)", "time_ms": 60000})
               for _ in range(40)]
    refused = 0
    for number in numbers:
        try:
            assert client.answer(number)["isError"] is False
        except Failed as failed:
            assert failed.code == -32603
            refused += 1
    assert refused == 40 - 32


def test_a_session_that_is_made_holds_up_nobody(client):
    numbers = [client.begin("tools/call", name="python_session",
                            arguments={"action": "create", "template": "plot"}) for _ in range(3)]
    assert client.ask("ping") == {} and not client.aside
    client.notify("notifications/cancelled", requestId=numbers[0])
    made = [client.answer(number)["structuredContent"]["sessions"][0] for number in numbers[1:]]
    listed = client.tool("python_session", action="list")["structuredContent"]["sessions"]
    assert {one["id"] for one in listed} == {one["id"] for one in made}
    assert client.answer(client.begin("ping", _id=numbers[0])) == {}


def test_runs_of_a_session_wait_for_each_other(client):
    session = client.session()
    numbers = [client.begin("tools/call", name="execute_python",
                            arguments={"code": f"import time; time.sleep(0.1); x = {n}; print(x)",
                                       "session": session}) for n in range(4)]
    assert [text_of(client.answer(number)) for number in numbers] == ["0\n", "1\n", "2\n", "3\n"]
    assert client.text("x", session=session) == "3\n"


# --- cancel and progress ---------------------------------------------------------------------------

def test_a_cancelled_call_ends_at_once_and_is_not_answered(client):
    client.run("1")
    number = client.begin("tools/call", name="execute_python",
                          arguments={"code": LONG, "time_ms": 60000})
    time.sleep(0.3)
    client.notify("notifications/cancelled", requestId=number, reason="no need")
    assert client.text("print('next')") == "next\n"
    assert client.silent(0.5) and not client.aside


def test_a_cancelled_run_leaves_its_session_as_it_was(client):
    session = client.session()
    client.run("x = 5", session=session)
    number = client.begin("tools/call", name="execute_python",
                          arguments={"code": LONG, "session": session, "time_ms": 60000})
    time.sleep(0.3)
    client.notify("notifications/cancelled", requestId=number)
    assert client.text("x", session=session) == "5\n"


def test_calls_that_wait_can_be_cancelled_too(client):
    session = client.session()
    first = client.begin("tools/call", name="execute_python",
                         arguments={"code": "import time; time.sleep(0.5); print('a')",
                                    "session": session})
    second = client.begin("tools/call", name="execute_python",
                          arguments={"code": "print('b')", "session": session})
    listing = client.begin("resources/list")
    client.notify("notifications/cancelled", requestId=second)
    client.notify("notifications/cancelled", requestId=listing)
    assert text_of(client.answer(first)) == "a\n"
    assert client.text("print('c')", session=session) == "c\n"
    assert not client.aside


def test_long_runs_tell_their_progress_to_who_asked(client):
    """A token that is too long is none, since each notice would bring it back."""
    client.run("1")
    code = "import time\nprint('x', flush=True)\ntime.sleep(2.3)"
    numbers = [client.begin("tools/call", _meta={"progressToken": token} if token else {},
                            name="execute_python", arguments={"code": code})
               for token in ("t" * 1024, 7, None, "t" * 1025)]
    for number in numbers:
        assert client.answer(number)["isError"] is False
    told = [m["params"] for m in client.aside if m.get("method") == "notifications/progress"]
    assert len(told) == len(client.aside) == 4
    for token in ("t" * 1024, 7):
        first, second = [t for t in told if t["progressToken"] == token]
        assert 0.9 < first["progress"] < second["progress"]
        assert "2 bytes" in second["message"]
    assert client.silent(1.2)


# --- the stateless revision --------------------------------------------------------------------------

def test_discover_says_what_there_is(connect):
    result = connect().ask("server/discover", _meta=META)
    assert result["supportedVersions"] == [STATELESS] and result["resultType"] == "complete"
    assert result["capabilities"] == {"tools": {}, "resources": {}} and result["instructions"]
    assert result["ttlMs"] > 0 and result["cacheScope"] == "public"
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "execpy"


def test_a_whole_conversation_without_a_handshake(connect):
    client = connect()
    tools = client.ask("tools/list", _meta=META)
    assert tools["resultType"] == "complete" and tools["ttlMs"] > 0 and len(tools["tools"]) == 3
    result = client.ask("tools/call", _meta=META, name="execute_python",
                        arguments={"code": "6*7"})
    assert result["resultType"] == "complete" and text_of(result) == "42\n"
    for method in ("resources/list", "resources/templates/list"):
        listed = client.ask(method, _meta=META)
        assert listed["ttlMs"] >= 0 and listed["cacheScope"] in ("public", "private")
    with pytest.raises(Failed) as failed:
        client.ask("resources/read", _meta=META, uri="execpy://session/ses_x/a")
    assert failed.value.code == PARAMS and failed.value.data["uri"].endswith("/a")


@pytest.mark.parametrize("meta, code", [
    ({VERSION: STATELESS}, PARAMS),
    ({**META, VERSION: 1}, PARAMS),
    ({**META, VERSION: "1900-01-01"}, UNSUPPORTED),
    ({**META, VERSION: "2025-11-25"}, UNSUPPORTED),
])
def test_wrong_metadata(connect, meta, code):
    with pytest.raises(Failed) as failed:
        connect().ask("server/discover", _meta=meta)
    assert failed.value.code == code
    if code == UNSUPPORTED:
        assert failed.value.data == {"supported": [STATELESS], "requested": meta[VERSION]}


@pytest.mark.parametrize("method", ["ping", "initialize"])
def test_what_the_stateless_revision_has_no_more(connect, method):
    with pytest.raises(Failed) as failed:
        connect().ask(method, _meta=META, protocolVersion="2025-11-25")
    assert failed.value.code == METHOD


def test_both_kinds_over_one_connection(client):
    assert "resultType" not in client.ask("tools/list")
    assert client.ask("tools/list", _meta=META)["resultType"] == "complete"
    assert client.ask("ping") == {}


# --- with a daemon ---------------------------------------------------------------------------------

def test_with_a_daemon_it_is_warm_and_sessions_outlive_it(connect, serve):
    daemon = serve({"bare": (2, 2)})
    client = connect(socket=daemon.socket)
    client.initialize()
    assert client.run("print(1)")["structuredContent"]["warm"] is True
    session = client.session()
    client.run("x = 3", session=session)
    client.begin("tools/call", name="execute_python", arguments={"code": LONG, "time_ms": 60000})
    assert client.run("print(1)")["isError"] is False
    assert client.close() == 0
    other = connect(socket=daemon.socket)
    other.initialize()
    # Its id is what gives it to somebody: it stands in no list of another's.
    assert other.tool("python_session", action="list")["structuredContent"] == {"sessions": []}
    assert other.text("x", session=session) == "3\n"
    assert other.tool("python_session", action="end", session=session)["isError"] is False


def test_a_daemon_that_ends_and_comes_back(connect, serve, place):
    daemon = serve({"bare": (1, 1)})
    client = connect(socket=daemon.socket)
    client.initialize()
    assert client.run("print(1)")["isError"] is False
    daemon.stop()
    result = client.run("print(1)")
    assert result["structuredContent"]["status"] == "internal_error"
    serve({"bare": (1, 1)}, socket=daemon.socket)
    assert client.text("print(2)") == "2\n"
