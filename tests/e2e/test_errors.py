# SPDX-License-Identifier: Apache-2.0
"""Exceptions: structured frames, columns, and exactly CPython's own traceback text."""
import re
import subprocess

import pytest

from harness import host
from harness.product import slowly

# Each is run by plain python3 as main.py as well, and must print the same.
CODES = {
    "division": "def f(a):\n    return a / 0\n\nf(1)\n",
    "chained": "try:\n    {}['x']\nexcept KeyError as e:\n    raise ValueError('bad') from e\n",
    "context": "try:\n    {}['x']\nexcept KeyError:\n    undefined\n",
    "suppressed": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise ValueError('x') from None\n",
    "syntax": "x = 1\nprint('a'\n",
    "syntax_column": "def f(:\n    pass\n",
    "indentation": "if True:\nprint(1)\n",
    "tab": "if True:\n\tx = 1\n        y = 2\n",
    "name": "import math\nprint(mth.pi)\n",
    "suggestion": "class A: blue = 1\nA.bleu\n",
    "group": "raise ExceptionGroup('many', [ValueError(1), TypeError('two')])\n",
    "note": "e = ValueError('x')\ne.add_note('a note')\nraise e\n",
    "recursion": "def f(n):\n    return f(n + 1)\nf(0)\n",
    "unicode": "x = 'äöü' + 1  # café\n",
    "wide": "x = '🎉🎉' + (1 / 0)\n",
    "long_line": "x = [" + "1, " * 200 + "1 / 0]\n",
    "library": "import json\njson.loads('{')\n",
    "multi_line": "x = (1 +\n     2 +\n     None)\n",
    "lambda": "(lambda: (lambda: 1 / 0)())()\n",
    "class_body": "class A:\n    x = 1 / 0\n",
    "generator": "list(1 / i for i in [1, 0])\n",
    "exec": "exec('x = 1\\n1 / 0')\n",
    "empty_message": "raise ValueError\n",
    "message_lines": "raise ValueError('one\\ntwo')\n",
    "bad_str": "class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E\n",
    "bad_repr_key": "raise KeyError('a key')\n",
    "assertion": "assert 1 == 2, 'no'\n",
    "keyboard": "raise KeyboardInterrupt\n",
    "base_exception": "class B(BaseException): pass\nraise B('x')\n",
    "custom_module": "class E(Exception):\n    __module__ = 'pkg'\nraise E('x')\n",
    "thread": "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='T')\nt.start()\nt.join()\n",
    "del": "class A:\n    def __del__(self): 1 / 0\na = A()\ndel a\n",
    "excepthook": "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__, file=sys.stderr)\n1 / 0\n",
    "warning": "import warnings\nwarnings.warn('careful')\n",
    "atexit": "import atexit\natexit.register(lambda: 1 / 0)\n",
    "null_byte": "x = 1\nprint('a\\0b')\n",
    "encoding": "# -*- coding: latin-1 -*-\nprint('ä')\n1 / 0\n",
    "bom": "\ufeffprint('x')\n1 / 0\n",
    "crlf": "x = 1\r\nif x:\r\n    1 / 0\r\n",
    "form_feed": "x = 1\n\x0c\n1 / 0\n",
    "no_newline": "1 / 0",
    "import_missing": "import nosuchmodule\n",
    "from_missing": "from os import nosuchname\n",
    "returned": "return 1\n",
    "await": "await x\n",
}


def normal(text):
    """Addresses and the directories in which main.py and the library lie differ; nothing else."""
    text = re.sub(r'File "[^"]*main\.py"', 'File "main.py"', text)
    text = re.sub(r"^/\S*/main\.py:", "main.py:", text, flags=re.MULTILINE)
    return re.sub(r"0x[0-9a-f]+", "0x0", text)


@pytest.mark.parametrize("name", CODES)
def test_as_plain_python(run, product, place, name):
    """stdout, stderr and the exit status are those of `python3 main.py`."""
    code = CODES[name].encode("utf-8")
    (place / "main.py").write_bytes(code)
    plain = subprocess.run([host.PYTHON, "-X", "utf8", "main.py"], cwd=place, capture_output=True,
                           stdin=subprocess.DEVNULL)
    (place / "main.py").rename(place / "code.py")
    product.give(place / "code.py")
    done = run(place / "code.py")
    result = done.result
    assert normal(result["stderr"]) == normal(plain.stderr.decode())
    assert result["stdout"] == plain.stdout.decode()
    if name != "keyboard":  # outside, an uncaught KeyboardInterrupt ends by SIGINT
        assert result["exit_code"] == plain.returncode
        assert result["status"] == ("ok" if plain.returncode == 0 else "error")
    else:
        assert result["status"] in ("error", "crashed")
    if result["status"] == "error":
        error = result["error"]
        shown = plain.stderr.decode()
        if name not in ("excepthook", "thread"):
            assert normal(error["traceback"]).strip() == normal(shown).strip()


def test_frames(run):
    code = ("def inner(a, b):\n"
            "    return a + len(b) / zero\n"
            "\n"
            "zero = 0\n"
            "class Box:\n"
            "    def method(self):\n"
            "        return inner(1, 'abc')\n"
            "Box().method()\n")
    error = run(code).result["error"]
    assert error["type"] == "ZeroDivisionError" and error["message"] == "division by zero"
    frames = error["frames"]
    assert [(f["file"], f["line"], f["function"]) for f in frames] == [
        ("main.py", 8, "<module>"), ("main.py", 7, "Box.method"), ("main.py", 2, "inner")] or \
        [f["function"] for f in frames] == ["<module>", "method", "inner"], frames
    last = frames[-1]
    assert last["source"].strip() == "return a + len(b) / zero"
    assert (last["line"], last["column"], last["end_line"], last["end_column"]) == (2, 16, 2, 29), last
    assert error["hint"] is None or isinstance(error["hint"], str)


def test_columns_count_code_points(run):
    error = run("x = 'äö🎉' + (1 / 0)\n").result["error"]
    frame = error["frames"][-1]
    assert (frame["column"], frame["end_column"]) == (14, 19), frame


def test_frames_of_libraries(run):
    frames = run("import json\njson.loads('{')\n").result["error"]["frames"]
    assert frames[0]["file"] == "main.py"
    assert frames[-1]["file"].endswith("json/decoder.py") and frames[-1]["source"]


def test_syntax_error(run):
    result = run("x = 1\nfor\n").result
    error = result["error"]
    assert result["status"] == "error" and error["type"] == "SyntaxError"
    assert "invalid syntax" in error["message"]
    assert result["stdout"] == ""
    assert error["frames"] and error["frames"][-1]["line"] == 2, error



def test_source_that_is_not_utf8(run, place, product):
    path = place / "code.py"
    for data, kind in ((b"x = '\xff'\n", "SyntaxError"), (b"print(1)\0\n", None),
                       (b"# coding: nonsense\n", "SyntaxError")):
        path.write_bytes(data)
        product.give(path)
        result = run(path).result
        assert result["status"] == "error", result
        if kind:
            assert result["error"]["type"] == kind, result["error"]


def test_no_frame_of_ours(run):
    for code in ("1 / 0", "import nosuch", "raise SystemExit('x')", "def f(): f()\nf()",
                 "import threading\nt = threading.Thread(target=lambda: 1/0)\nt.start()\nt.join()",
                 "import asyncio\nasync def f(): 1 / 0\nasyncio.run(f())"):
        result = run(code).result
        for text in (result["stderr"], (result["error"] or {}).get("traceback") or ""):
            assert "execpy" not in text and "<frozen runpy" not in text, text


def test_error_that_was_handled_is_none(run):
    result = run("try:\n    1 / 0\nexcept ZeroDivisionError:\n    print('handled')\n").result
    assert result["error"] is None and result["status"] == "ok"


# -- where the code stood at a limit ------------------------------------------------------------

def stop_frames(result):
    return [(f["file"], f["line"]) for f in result["error"]["frames"]]


def test_frames_at_a_time_limit(run):
    result = run("def spin(n):\n    while True:\n        n += 1\n\ndef outer():\n    spin(0)\n\nouter()\n",
                 "--time", slowly(500)).result
    assert result["status"] == "timeout"
    frames = stop_frames(result)
    assert frames[0] == ("main.py", 8) and frames[1] == ("main.py", 6), frames
    assert frames[2][1] in (2, 3) and len(frames) == 3, frames
    functions = [f["function"] for f in result["error"]["frames"]]
    assert functions == ["<module>", "outer", "spin"]


@pytest.mark.parametrize("options,status", [(("--time", slowly(500)), "timeout"),
                                            (("--cpu", "500ms", "--time", slowly(9000)), "cpu_limit")])
def test_frames_inside_a_long_c_call(run, options, status):
    result = run("x = 1\ndef f():\n    return sum(range(10**11))\nf()\n", *options).result
    assert result["status"] == status
    assert stop_frames(result)[-1] == ("main.py", 3), result["error"]


@pytest.mark.parametrize("line", ["time.sleep(60)", "threading.Event().wait()", "os.read(r, 1)",
                                  "subprocess.run(['sleep', '60'])", "signal.pause()",
                                  "asyncio.run(asyncio.sleep(60))", "9 ** (9 ** 9)",
                                  "re.match(r'(a+)+$', 'a' * 40 + 'b')", "[0] * 10**5 and sorted("
                                  "range(10**9), key=lambda x: time.sleep(60))"])
def test_frames_while_waiting(run, line):
    result = run("import asyncio, os, re, signal, subprocess, threading, time\nr, w = os.pipe()\n"
                 + line + "\n", "--time", slowly(600), "--memory", "300M").result
    if "sorted" in line and result["status"] == "memory_limit":
        return
    assert result["status"] == "timeout"
    frames = [f for f in stop_frames(result) if f[0] == "main.py"]
    assert frames and frames[0][1] == 3, result["error"]


def test_frames_with_signals_blocked(run):
    """Python's own ways to block signals do not hide where the code stands."""
    result = run("import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
                 "while True:\n    pass\n", "--time", slowly(500)).result
    assert result["status"] == "timeout"
    assert stop_frames(result)[-1][1] in (3, 4)


def test_frames_of_a_child_are_not_the_mains(run):
    result = run("import os, time\nif os.fork() == 0:\n    while True: pass\n\nos.wait()\n",
                 "--time", slowly(500)).result
    assert stop_frames(result)[-1] == ("main.py", 5), result["error"]


def test_error_of_each_limit_says_what_it_was(run):
    for code, options, words in (
            ("import time\ntime.sleep(9)", ("--time", "300ms"), ("300",)),
            ("x = bytearray(b'x') * (300 << 20)", (), ("100", "memory")),
            ("while True: print('x' * 999)", (), ("output",))):
        error = run(code, *options).result["error"]
        assert error and error["type"] and any(w in error["message"] for w in words), error
