# SPDX-License-Identifier: Apache-2.0
"""What stays from run to run, and what each run has of its own."""
import pytest


def test_variables_imports_functions_classes(session):
    session.ok("import math, json as j\nx = 41\ndef double(n): return 2 * n\n"
               "class Point:\n    size = 3")
    assert session.value("double(x + 1), math.floor(2.5), j.dumps([1]), Point().size") == \
        "(84, 2, '[1]', 3)"


def test_a_fresh_session_knows_nothing(tool, session):
    session.ok("x = 1")
    other = tool.open()
    result = other.run("x")
    assert result["status"] == "error" and result["error"]["type"] == "NameError", result


def test_directory_and_files_stay(session):
    session.ok("import os\nos.mkdir('d')\nos.chdir('d')\nopen('a', 'w').write('one')")
    assert session.value("os.getcwd(), open('a').read()") == "('/workspace/d', 'one')"


def test_last_value_and_out(session):
    session.ok("6 * 7")
    assert session.value("_ + 1") == "43"
    session.ok("None")
    assert session.value("_") == "43"
    assert session.value("Out[1]") == "42"
    for n in range(20):
        session.ok(str(n))
    assert session.value("len(Out) <= 17 and 1 not in Out") == "True"


def test_traceback_shows_an_earlier_run(session):
    session.ok("def fail(n):\n    # a comment\n    return n / 0")
    session.ok("pass")
    result = session.run("fail(1)")
    text = result["error"]["traceback"]
    assert '  File "<run 3>", line 1, in <module>\n    fail(1)\n' in text, text
    assert '  File "<run 1>", line 3, in fail\n    return n / 0\n            ~~^~~\n' in text, text
    assert [(f["file"], f["line"], f["source"]) for f in result["error"]["frames"]] == \
        [("<run 3>", 1, "fail(1)"), ("<run 1>", 3, "    return n / 0")]
    assert result["stderr"] == text
    assert session.value("import inspect; inspect.getsource(fail)").count("comment") == 1


def test_an_exception_is_no_crash(session):
    result = session.run("a = 1\nb = 1 / 0\nc = 2")
    assert result["status"] == "error" and result["session"]["restored"] is False
    assert session.value("a, 'c' in globals()") == "(1, False)"


def test_exit_ends_the_run_and_not_the_session(session):
    session.ok("x = 5")
    result = session.run("import sys\nsys.exit(3)")
    assert (result["status"], result["exit_code"]) == ("error", 3)
    assert result["session"]["restored"] is False
    assert session.value("x") == "5"


def test_top_level_await(session):
    session.ok("import asyncio\nqueue = asyncio.Queue()\nawait queue.put(1)")
    assert session.value("await queue.get()") == "1"
    session.ok("task = asyncio.get_event_loop().create_task(asyncio.sleep(0, 'slept'))")
    assert session.value("await task") == "'slept'"
    session.ok("async def fail():\n    raise ValueError('deep')")
    result = session.run("x = 1\nawait fail()")
    assert [f["file"] for f in result["error"]["frames"]] == ["<run 6>", "<run 5>"], result


def test_each_run_has_its_own_output_value_and_id(session):
    first, second = session.ok("print('one')\n1"), session.ok("import sys\nsys.stderr.write('two')")
    assert (first["stdout"], first["stderr"], first["value"]) == ("one\n", "", {"text/plain": "1"})
    assert (second["stdout"], second["stderr"]) == ("", "two")
    assert first["id"] != second["id"]
    assert [r["session"]["run"] for r in (first, second)] == [1, 2]


def test_each_run_has_its_own_input(session, place, product):
    (place / "in").write_text("first\nrest\n")
    product.give(place / "in")
    assert session.ok("print(input())", stdin=place / "in")["stdout"] == "first\n"
    assert session.ok("print(input())", stdin=place / "in")["stdout"] == "first\n"
    result = session.run("input()")
    assert result["error"]["type"] == "EOFError"


@pytest.mark.parametrize("done", (
    "os.close(0)", "sys.stdin.close()", "del sys.stdin", "sys.stdin = None",
    "os.dup2(os.open('file', os.O_RDWR | os.O_CREAT), 0)",
))
def test_input_is_made_anew_whatever_became_of_it(session, place, product, done):
    (place / "in").write_text("first\nrest\n")
    product.give(place / "in")
    for _ in range(2):
        session.ok(f"import os, sys\n{done}")
        for _ in range(2):
            assert session.ok("print(input(), sys.stdin is sys.__stdin__)",
                              stdin=place / "in")["stdout"] == "first True\n"
    session.ok(done)
    session.run("os._exit(1)")
    assert session.ok("print(input())", stdin=place / "in")["stdout"] == "first\n"


def test_warnings_of_the_compiler(session, tool):
    """Code is compiled while it is verified: its warnings come once, and none when it is refused."""
    result = session.ok("x = 5\nx is 5")
    assert result["stderr"].count("SyntaxWarning") == 1, result
    assert session.ok("import warnings\nwarnings.filters[0][0]")["value"]
    strict = tool.open(policy="strict")
    assert strict.ok("x = 5\nx is 5")["stderr"].count("SyntaxWarning") == 1
    refused = strict.run("import subprocess\nx = 5\nx is 5\nsubprocess.run('id')")
    assert refused["status"] == "blocked" and refused["stderr"] == "", refused
    assert strict.value("x") == "5"


def test_a_large_output(session):
    result = session.ok("print('x' * 300000)")
    assert len(result["stdout"]) == 300001
    assert session.ok("print('y')")["stdout"] == "y\n"
    result = session.run("while True: print('z' * 1000)")
    assert result["status"] == "output_limit" and result["stdout"].startswith("zzz")
    assert session.ok("print('y')")["stdout"] == "y\n"


def test_usage_is_the_runs_own(session, product):
    session.ok("sum(range(10 ** 7))")
    assert session.ok("1")["usage"]["cpu_ms"] < 100 * product.SLOW
    for _ in range(12):  # each is below the limit, all together are not
        result = session.run("import time\nend = time.process_time() + 0.05\n"
                             "while time.process_time() < end: pass", cpu_ms=400)
        assert result["status"] == "ok", result


def test_figures_are_shown_once(tool):
    session = tool.open(template="plot")
    first = session.ok("import matplotlib.pyplot as plt\nplt.plot([1, 2])", time_ms=30000,
                       cpu_ms=30000)
    assert [sorted(d) for d in first["displays"]] == [["image/png", "text/plain"]], first["displays"]
    assert session.ok("1")["displays"] == []


def test_undefined_names_are_told_and_earlier_ones_are_not(session):
    session.ok("known = 1\ndef helper(): pass")
    result = session.run("helper()\nknown + unknown_name", policy="strict")
    assert [f["rule"] for f in result["findings"]] == ["undefined-name"], result["findings"]


def test_a_module_imported_before_is_judged_by_use(session):
    session.ok("import os", policy="strict")
    assert session.ok("os.path.join('a', 'b')", policy="strict")["value"]["text/plain"] == "'a/b'"
    result = session.run("os.remove('important_file.txt')", policy="strict")
    assert result["status"] == "blocked" and "module 'os' is not allowed" in \
        result["error"]["message"], result
    assert result["error"]["frames"][0]["file"] == "<run 3>"


def test_the_policy_of_the_session_holds_for_runs_without_one(tool):
    strict = tool.open(policy="strict")
    assert strict.run("eval(input())")["policy"] == "strict"
    assert strict.run("import subprocess\nsubprocess.run(['ls'])")["status"] == "blocked"
    assert strict.ok("import subprocess\nsubprocess.__name__", policy="open")["policy"] == "open"


def test_the_audit_hook_stays_awake(tool):
    session = tool.open(policy="strict")
    session.ok("x = 1")
    result = session.run("name = 'so' + 'cket'.replace('!', '')\nm = __import__(name)")
    assert result["status"] in ("anomaly", "blocked"), result
    assert session.value("x") == "1"


def test_limits_of_a_run_and_of_the_session(tool):
    session = tool.open(memory_bytes=80 << 20, time_ms=700)
    assert session.opened["memory_limit"] == 80 << 20
    result = session.run("while True: pass")
    assert result["status"] == "timeout" and result["limits"]["time_ms"] == 700
    result = session.run("while True: pass", time_ms=300)
    assert result["status"] == "timeout" and result["limits"]["time_ms"] == 300
    assert result["limits"]["memory_bytes"] == 80 << 20
    assert [(f["file"], f["line"]) for f in result["error"]["frames"]] == [("<run 2>", 1)]


def test_threads_live_on(session):
    session.ok("import threading, time\nseen = []\ngo = threading.Event()\n"
               "def work():\n    go.wait()\n    seen.append(threading.current_thread().name)\n"
               "thread = threading.Thread(target=work, name='left')\nthread.start()")
    session.ok("go.set()\nthread.join()")
    assert session.value("seen") == "['left']"


@pytest.mark.parametrize("code", ["x = (", "def f(:", "return 1", "x = 1\n  y = 2"])
def test_code_that_is_none(session, code):
    result = session.run(code)
    assert result["status"] in ("error", "blocked") and \
        result["error"]["type"] in ("SyntaxError", "IndentationError"), result
    assert session.value("1") == "1"


def test_code_beyond_one_message(session):
    session.ok("x = 0\n" + "x += 1 # counts\n" * 20000)
    assert session.value("x") == "20000"


def test_what_notebooks_understand(session):
    result = session.ok("%matplotlib inline\nx = 1\n!pip install numpy\nx")
    assert result["value"]["text/plain"] == "1" and result["findings"], result
    assert session.value("%%time\nx += 1\nx") == "2"
    result = session.run("```python\nx + 1\n```")
    assert result["value"]["text/plain"] == "3" and result["findings"][0]["severity"] == "note"
