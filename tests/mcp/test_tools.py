# SPDX-License-Identifier: Apache-2.0
"""What the tools are and do."""
import base64
import json
import time

import jsonschema
import pytest

from conftest import Failed, text_of

PNG = b"\x89PNG\r\n"


def images(result):
    return [block for block in result["content"] if block["type"] == "image"]


def links(result):
    return [block for block in result["content"] if block["type"] == "resource_link"]


# --- the list ----------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def tools(common):
    return {tool["name"]: tool for tool in common.ask("tools/list")["tools"]}


def test_there_are_three_tools_with_valid_schemas(tools):
    assert list(tools) == ["execute_python", "check_python", "python_session"]
    for tool in tools.values():
        assert tool["title"] and tool["description"]
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object" and "$id" not in schema and "$schema" not in schema
        assert tool["inputSchema"]["additionalProperties"] is False
        hints = tool["annotations"]
        assert hints["openWorldHint"] is False and hints["title"] == tool["title"]
    assert tools["check_python"]["annotations"]["readOnlyHint"] is True
    assert tools["execute_python"]["annotations"]["readOnlyHint"] is False


def test_the_list_stays_the_same(common, tools):
    assert common.ask("tools/list") == common.ask("tools/list")


def test_the_description_is_true(common, tools):
    said = tools["execute_python"]["description"]
    version = common.run("import sys; print('%d.%d.%d' % sys.version_info[:3])")
    assert f"Python {version['structuredContent']['stdout'].strip()}" in said
    for module in ("numpy", "pandas", "matplotlib", "scipy", "torch", "polars"):
        installed = common.run(f"import importlib.util\nimportlib.util.find_spec({module!r}) is None")
        here = installed["structuredContent"]["value"]["text/plain"] == "False"
        assert (f" {module} " in said) == here, module
    for words in ("time_ms 5 s", "memory_bytes 100 MiB", "no network", "session"):
        assert words in said


@pytest.mark.parametrize("policy, words", [
    (None, "eval/exec/compile"), ("standard", "internals"), ("open", "Nothing is refused")])
def test_the_description_tells_the_policy(connect, policy, words):
    client = connect(policy=policy)
    client.initialize()
    for tool in client.ask("tools/list")["tools"][:2]:
        assert words in tool["description"]


def test_a_policy_file_is_named(connect, place, product):
    path = place / "lab.yaml"
    path.write_text("name: lab\nprofile: strict\nmodules:\n  os: allow\n")
    product.give(path)
    client = connect(policy=path)
    client.initialize()
    assert "policy lab" in client.ask("tools/list")["tools"][0]["description"]
    assert client.text("import os; print(os.sep)") == "/\n"


# --- results -----------------------------------------------------------------------------------------

TEXTS = [
    ("print(55)", "55\n"),
    ("6*7", "42\n"),
    ("print(1); 2", "1\n[value]\n2\n"),
    ("x = 1", "(no output)\n"),
    ("import sys; print('a'); print('b', file=sys.stderr)", "a\n[stderr]\nb\n"),
    ("display({'a': 1})", "[display]\n{'a': 1}\n"),
    ("import sys; sys.stdout.buffer.write(b'a\\xffb\\n'); None", "a\ufffdb\n"),
    ("print('ä\\u2028\U0001f600')", "ä\u2028\U0001f600\n"),
]


def test_text_is_what_a_model_needs(common):
    for code, text in TEXTS:
        assert common.text(code) == text


def test_an_error_comes_with_its_traceback_once(common):
    result = common.run("import sys\nprint('a')\nprint('b', file=sys.stderr)\n1/0")
    text = text_of(result)
    assert text.startswith("a\n[stderr]\nb\n[error]\nTraceback")
    assert text.count("Traceback") == text.count("ZeroDivisionError") == 1
    assert 'File "main.py", line 4' in text and result["isError"] is True


def test_exit_statuses(common):
    assert "exit status 3" in common.text("import sys; sys.exit(3)")
    assert common.run("import sys; sys.exit(0)")["isError"] is False


def test_findings_and_hints_are_told(common, connect):
    client = connect(policy=None)
    client.initialize()
    result = client.run("import os\nos.system('id')")
    text = text_of(result)
    assert result["structuredContent"]["status"] == "blocked"
    assert text.startswith("[blocked]") and "SecurityError: module 'os' is not allowed" in text
    assert "hint: " in text and "[files]" not in text
    assert "[warn] line 2: " in common.text("print(1)\nif False: prnt(2)")


@pytest.mark.parametrize("code, arguments, status, words", [
    ("while True: pass", {"time_ms": 300}, "timeout", ("time limit of 300 ms", "while True", "hint:")),
    ("while True: pass", {"cpu_ms": 200}, "cpu_limit", ("CPU time limit", "hint:")),
    ("x = bytearray(200 << 20)", {"memory_bytes": 50 << 20}, ("memory_limit", "error"), ("emory",)),
    ("while True: print('x' * 1000)", {"output_bytes": 5000}, "output_limit", ("hint:",)),
    ("import ctypes; ctypes.string_at(0)", {}, "crashed", ("signal 11",)),
])
def test_limits_are_results(common, code, arguments, status, words):
    result = common.run(code, **arguments)
    assert result["isError"] is True
    assert result["structuredContent"]["status"] in status
    for word in words:
        assert word in text_of(result), text_of(result)


def test_text_is_bounded_with_head_and_tail(common):
    result = common.run("for n in range(60000): print(n)\nimport sys\n"
                        "print('e' * 100000, file=sys.stderr)\nraise ValueError('v' * 50000)")
    text = text_of(result)
    assert len(text.encode()) <= 48 * 1024
    assert text.startswith("0\n1\n2\n") and "\n59999\n" in text and "ValueError" in text
    assert text.count("bytes left out") == 3
    assert len(result["structuredContent"]["stdout"]) > 300000
    kept = [len(part) for part in text.split("[stderr]")]
    assert kept[0] > 20000


def test_what_is_left_out_is_counted(common):
    text = common.text("print('ä' * 100000)")
    kept = text.count("ä")
    assert f"[... {200001 - 1 - 2 * kept} bytes left out ...]" in text
    assert len(text.encode()) <= 48 * 1024 and "\ufffd" not in text
    junk = common.text("import sys; sys.stdout.buffer.write(b'\\xff' * 200000)")
    assert len(junk.encode()) <= 48 * 1024


def test_truncate_keeps_the_run(connect):
    client = connect("--truncate")
    client.initialize()
    result = client.run("for n in range(10000): print('x' * 100)\nprint('end')",
                        output_bytes=10000)
    assert result["isError"] is False and "end\n" in text_of(result)


def test_pictures_are_images(common):
    result = common.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n"
                        "plt.plot([3])\nprint('drawn')")
    assert [image["mimeType"] for image in images(result)] == ["image/png"] * 2
    for image, display in zip(images(result), result["structuredContent"]["displays"]):
        assert base64.b64decode(image["data"], validate=True).startswith(PNG)
        assert image["data"] == display["image/png"]
    assert text_of(result).startswith("drawn\n")


DRAWN = """
import matplotlib.pyplot as plt
plt.rcParams["savefig.dpi"] = 400
plt.figure(figsize=(6, 8))
plt.plot([1, 2])
None
"""
SCALED = "from PIL import Image\nImage.new('RGB', (4000, 1000), 'red')"
OWN = f"""
class Drawing:
    def _repr_png_(self):
        return {PNG!r} + b"\\x1a\\n" + (13).to_bytes(4) + b"IHDR" + (4000).to_bytes(4) + bytes(4)
Drawing()
"""


def sides(data):
    """Of a PNG in base64."""
    head = base64.b64decode(data)[16:24]
    return int.from_bytes(head[:4]), int.from_bytes(head[4:])


@pytest.mark.parametrize("code, sent, elsewhere", [(DRAWN, (1500, 2000), (2400, 3200)),
                                                   (SCALED, (2000, 500), (4000, 1000))],
                         ids=["figure", "Pillow"])
def test_pictures_are_made_smaller(common, product, code, sent, elsewhere):
    result = common.run(code, memory_bytes=600 * 2 ** 20, time_ms=60000)
    assert [sides(image["data"]) for image in images(result)] == [sent]
    # Only for models: others get what the code drew.
    done = product.run(code, "--memory", "600M", "--time", "60s", "--policy", "open")
    shown = [done.result["value"], *done.result["displays"]]
    assert [sides(each["image/png"]) for each in shown if each and "image/png" in each] == [elsewhere]


def test_a_picture_that_cannot_be_made_smaller_is_told_of(common):
    result = common.run(OWN.replace("to_bytes(4)", "to_bytes(4, 'big')"))
    assert not images(result) and "more than 2000 pixels a side" in text_of(result)


def test_large_pictures_are_told_of(common):
    code = ("import random\nclass Big:\n    def _repr_{0}_(self):\n"
            "        return {1} + random.randbytes({2})\nfor _ in range({3}): display(Big())")
    result = common.run(code.format("png", r"b'\x89PNG\r\n\x1a\n'", 4 << 20, 1),
                        memory_bytes=500 << 20)
    assert not images(result) and "larger than 5 MiB" in text_of(result)
    # A length of nothing: their size cannot be told.
    result = common.run(code.format("jpeg", r"b'\xff\xd8\xff\0\0\0'", 1000, 20))
    assert len(images(result)) == 16 and images(result)[0]["mimeType"] == "image/jpeg"
    assert text_of(result).count("too many") == 4


def test_files_go_in_and_are_told(common):
    result = common.run("import os\nprint(open('in/a.csv').read(), open('b.bin', 'rb').read())\n"
                        "open('out.txt', 'w').write('x')",
                        files=[{"path": "in/a.csv", "content": "1,ä\n"},
                               {"path": "b.bin", "content_base64": "AAH/"}])
    text = text_of(result)
    assert text.startswith("1,ä\n b'\\x00\\x01\\xff'\n")
    assert "out.txt: created, 1 bytes, text/plain" in text and "gone now" in text
    assert "in/a.csv" not in text and not links(result)


def test_stdin(common):
    assert common.text("print(input() + '!')\nprint(input())", stdin="a\nb\n") == "a!\nb\n"


# --- arguments ---------------------------------------------------------------------------------------

WRONG_ARGUMENTS = [
    ({}, "code is missing"),
    ({"code": 1}, "code is missing"),
    ({"code": "1", "cod": "1"}, '"cod"'),
    ({"code": "1", "time_ms": "5"}, "time_ms must be an integer from 10 to 120000"),
    ({"code": "1", "time_ms": 5}, "from 10"),
    ({"code": "1", "time_ms": 10**9}, "120000"),
    ({"code": "1", "memory_bytes": -1}, "memory_bytes"),
    ({"code": "1", "memory_bytes": 1 << 40}, "memory_bytes"),
    ({"code": "1", "template": "nosuch"}, "nosuch"),
    ({"code": "1", "template": 1}, "template must be a text"),
    ({"code": "1", "session": "ses_nosuch"}, "ses_nosuch"),
    ({"code": "1", "session": "s" * 100000}, "no session"),
    ({"code": "1", "session": "a\0b"}, "session must be a text"),
    ({"code": "1", "files": {}}, "files must be a list"),
    ({"code": "1", "files": [{"path": "x", "content": ""}] * 65}, "at most 64"),
    ({"code": "1", "files": [1]}, "files[0]"),
    ({"code": "1", "files": [{"path": "x"}]}, "content"),
    ({"code": "1", "files": [{"path": "x", "content": "", "content_base64": ""}]}, "either"),
    ({"code": "1", "files": [{"path": "x", "content_base64": "*"}]}, "not base64"),
    ({"code": "1", "files": [{"path": "../x", "content": ""}]}, "../x"),
    ({"code": "1", "files": [{"path": "/x", "content": ""}]}, "relative"),
    ({"code": "1", "files": [{"path": "x", "content": "", "mode": 1}]}, "mode"),
    ({"code": "1", "stdin": 5}, "stdin must be a text"),
    ({"code": "#" * (1 << 20) + "##"}, "too many"),
]


def test_wrong_arguments_are_told_to_the_model(common):
    for arguments, words in WRONG_ARGUMENTS:
        result = common.tool("execute_python", **arguments)
        assert result["isError"] is True and words in text_of(result), (arguments, result)
        assert "structuredContent" not in result


def test_limits_of_the_command_line_are_the_most(connect):
    client = connect("--time", "1s", "--memory", "60M")
    client.initialize()
    schema = client.ask("tools/list")["tools"][0]["inputSchema"]["properties"]
    assert schema["time_ms"]["maximum"] == schema["time_ms"]["default"] == 1000
    assert schema["cpu_ms"]["maximum"] == 120000
    assert client.run("1")["structuredContent"]["limits"]["memory_bytes"] == 60 << 20
    assert "from 10 to 1000" in client.text("1", time_ms=2000)


def test_who_asks_for_time_may_use_it(common):
    limits = common.run("1", time_ms=20000)["structuredContent"]["limits"]
    assert (limits["time_ms"], limits["cpu_ms"]) == (20000, 20000)


# --- check_python --------------------------------------------------------------------------------------

def test_check_says_what_a_run_would(connect):
    client = connect(policy=None)
    client.initialize()
    good = client.tool("check_python", code="print(1)")
    assert good["structuredContent"] == {"decision": "allow", "findings": []}
    assert text_of(good).startswith("allowed")
    bad = client.tool("check_python", code="x = 1\nimport socket\nsocket.socket()")
    assert bad["isError"] is False and bad["structuredContent"]["decision"] == "block"
    assert text_of(bad).startswith("blocked") and "line 3" in text_of(bad)
    assert "hint: " in text_of(bad)
    broken = client.tool("check_python", code="x = (")
    assert "SyntaxError" in text_of(broken)
    assert client.tool("check_python", code=1)["isError"] is True
    assert client.tool("check_python", code="1", session="x")["isError"] is True


# --- sessions --------------------------------------------------------------------------------------------

@pytest.fixture
def session(common):
    session = common.session()
    yield session
    common.tool("python_session", action="end", session=session)


def do(client, action, **arguments):
    return client.tool("python_session", action=action, **arguments)


def test_state_stays(common, session):
    assert common.text("x = 41\nopen('f.txt', 'w').write('hi')", session=session).startswith("2\n")
    result = common.run("print(open('f.txt').read(), x + 1)", session=session)
    assert text_of(result) == "hi 42\n"
    assert result["structuredContent"]["session"]["run"] == 2


def test_a_crash_is_survived_and_told(common, session):
    common.run("x = 41", session=session)
    text = common.text("x = 5\nimport ctypes\nctypes.string_at(0)", session=session)
    assert "[crashed]" in text and "[session] it went on from its last checkpoint" in text
    assert common.text("x", session=session) == "41\n"


def test_checkpoints(common, session):
    common.run("x = 1", session=session)
    info = do(common, "checkpoint", session=session, name="one")["structuredContent"]["sessions"][0]
    assert info["checkpoints"] == ["one"] and info["runs"] == 1 and info["id"] == session
    common.run("x = 2", session=session)
    assert "checkpoints: one" in text_of(do(common, "rollback", session=session, name="one"))
    assert common.text("x", session=session) == "1\n"
    common.run("x = 3", session=session)
    assert do(common, "undo", session=session)["isError"] is False
    assert common.text("x", session=session) == "1\n"
    for arguments in ({"action": "rollback", "session": session, "name": "nosuch"},
                      {"action": "checkpoint", "session": session},
                      {"action": "checkpoint", "session": session, "name": ""},
                      {"action": "undo"}, {"action": "info", "session": "ses_nosuch"},
                      {"action": "nosuch"}, {}, {"action": "list", "x": 1}):
        assert common.tool("python_session", **arguments)["isError"] is True, arguments


def test_branches(client):
    session = client.session()
    client.run("x = [1]\nopen('f', 'w').write('hi')", session=session)
    branches = [one["id"] for one in
                do(client, "fork", session=session, count=2)["structuredContent"]["sessions"]]
    assert len({session, *branches}) == 3
    for n, branch in enumerate(branches):
        assert client.text(f"x.append({n})\n(x, open('f').read())", session=branch) == \
            f"([1, {n}], 'hi')\n"
    assert client.text("x", session=session) == "[1]\n"
    assert len(do(client, "fork", session=session)["structuredContent"]["sessions"]) == 1
    assert len(do(client, "list")["structuredContent"]["sessions"]) == 4
    for arguments in ({"session": session, "count": 0}, {"session": session, "count": 17},
                      {"session": session, "count": "2"}, {"count": 2}, {"session": "ses_nosuch"}):
        assert client.tool("python_session", action="fork", **arguments)["isError"] is True
    client.run("import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()",
               session=session)
    assert "threads were running" in text_of(do(client, "fork", session=session))


def test_the_life_of_a_session(client):
    assert do(client, "list")["structuredContent"] == {"sessions": []}
    first, second = client.session(), client.session(template="numpy", memory_bytes=200 << 20)
    listed = do(client, "list")["structuredContent"]["sessions"]
    assert [one["id"] for one in listed] == [first, second]
    assert listed[0]["template"] == "bare" and "numpy" in listed[1]["template"]
    limits = client.run("1", session=second)["structuredContent"]["limits"]
    assert limits["memory_bytes"] == 200 << 20
    assert "set when it is created" in client.text("1", session=second, memory_bytes=100 << 20)
    assert text_of(do(client, "end", session=first)) == "the session has ended\n"
    assert "ended" in client.text("1", session=first)
    assert [one["id"] for one in do(client, "list")["structuredContent"]["sessions"]] == [second]


def test_files_of_sessions_are_resources(common, session):
    assert common.ask("resources/list") == {"resources": []}
    result = common.run("import os\nos.makedirs('d')\nopen('d/ä %.txt', 'w').write('hello')\n"
                        "open('b.bin', 'wb').write(bytes(range(256)))\nopen('e', 'w').close()\n"
                        "os.symlink('/etc/passwd', 'link')", session=session)
    listed = {one["uri"]: one for one in common.ask("resources/list")["resources"]}
    uri = f"execpy://session/{session}/d/%C3%A4%20%25.txt"
    assert {link["uri"] for link in links(result)} == set(listed) and uri in listed
    assert listed[uri] == {"uri": uri, "name": "d/ä %.txt", "mimeType": "text/plain", "size": 5}
    assert common.ask("resources/read", uri=uri)["contents"] == [
        {"uri": uri, "mimeType": "text/plain", "text": "hello"}]
    base = f"execpy://session/{session}/"
    [content] = common.ask("resources/read", uri=base + "b.bin")["contents"]
    assert base64.b64decode(content["blob"]) == bytes(range(256)) and "text" not in content
    assert common.ask("resources/read", uri=base + "e")["contents"][0]["text"] == ""
    for name in ("nosuch", "d", "link", "../b.bin", "%2e%2e/b.bin", "", "%00", "%", "%zz", "/e",
                 "d/../e", "b.bin/x"):
        with pytest.raises(Failed) as failed:
            common.ask("resources/read", uri=base + name)
        assert failed.value.code == -32002, name
    with pytest.raises(Failed) as failed:
        common.ask("resources/read", uri="execpy://session/ses_nosuch/e")
    assert failed.value.code == -32002
    [template] = common.ask("resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"].startswith("execpy://session/{session}/")
    common.run("open('large', 'wb').truncate(9 << 20)", session=session)
    with pytest.raises(Failed) as failed:
        common.ask("resources/read", uri=base + "large")
    assert failed.value.code == -32603 and "larger" in failed.value.text


def test_resources_wait_for_a_run_and_nobody_else_does(common, session):
    number = common.begin("tools/call", name="execute_python",
                          arguments={"code": "import time; time.sleep(0.5); open('x', 'w')",
                                     "session": session})
    listing = common.begin("resources/list")
    began = time.monotonic()
    assert common.text("print(1)") == "1\n"
    assert time.monotonic() - began < 0.5 * common.product.SLOW
    assert common.answer(number)["isError"] is False
    assert [one["name"] for one in common.answer(listing)["resources"]] == ["x"]


def test_nothing_of_the_host_is_in_an_answer(common, canary):
    result = common.run("import os\nprint(dict(os.environ))\nprint(os.listdir('/'))")
    assert canary.secret not in json.dumps(result)
