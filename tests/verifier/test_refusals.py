# SPDX-License-Identifier: Apache-2.0
"""The refusals that the description of execute_python names, with place and hint."""
import pytest

from verdicts import blocked, verify


def cause(code, *options):
    verdict = verify(code, "strict", *options)
    assert blocked(verdict), verdict
    return next(f for f in verdict["findings"] if f["severity"] == "block")


def test_os_remove_word_for_word():
    finding = cause("import os; os.remove('important_file.txt')")
    assert finding["message"] == "module 'os' is not allowed"
    assert (finding["line"], finding["column"]) == (1, 12)
    assert finding["end_line"] == 1 and finding["end_column"] > 12
    assert finding["hint"]


@pytest.mark.parametrize("code, rule, message, line, column", [
    ("import os\nos.system('ls')", "process", "module 'os' is not allowed", 2, 1),
    ("import os\nprint(os.getlogin())", "forbidden-module", "module 'os' is not allowed", 2, 7),
    ("import sys\nsys.settrace(None)", "interpreter-hooks", "module 'sys' is not allowed", 2, 1),
    ("import subprocess", "process", "module 'subprocess' is not allowed", 1, 8),
    ("import subprocess\nsubprocess.run(['ls'])", "process", "module 'subprocess' is not allowed", 1, 8),
    ("from subprocess import run", "process", "module 'subprocess' is not allowed", 1, 24),
    ("import socket", "network", "module 'socket' is not allowed", 1, 8),
    ("import socket\ns = socket.socket()", "network", "module 'socket' is not allowed", 1, 8),
    ("eval(input())", "dynamic-code", "eval() is not allowed on code that is not a constant", 1, 6),
    ("é = input()\nexec(é)", "dynamic-code", "exec() is not allowed on code that is not a constant", 2, 6),
    ("open('/etc/x', 'w')", "write-system", "writing to '/etc/x' is not allowed: it belongs to the system", 1, 6),
    ("open('../x', 'w')", "write-outside", "writing to '../x' is not allowed: it is outside the workspace", 1, 6),
    ("open('/etc/passwd')", "read-system", "reading '/etc/passwd' is not allowed: it belongs to the system", 1, 6),
    ("import ctypes", "native-code", "module 'ctypes' is not allowed", 1, 8),
    ("print.__self__", "introspection", "__self__ is not allowed: it leads to the interpreter's internals", 1, 1),
    ("(x for x in ()).gi_frame", "internals", "gi_frame is not allowed: it reaches the interpreter's internals", 1, 1),
    ("import multiprocessing\nmultiprocessing.Pool()", "process", "module 'multiprocessing' is not allowed", 1, 8),
])
def test_refusal(code, rule, message, line, column):
    finding = cause(code)
    assert (finding["rule"], finding["message"]) == (rule, message)
    assert (finding["line"], finding["column"]) == (line, column)
    assert 10 < len(finding["hint"]) <= 400


def test_columns_count_code_points():
    finding = cause("s = 'äöü€😀'; import socket")
    assert finding["column"] == len("s = 'äöü€😀'; import ") + 1


def test_network_allowance():
    assert not blocked(verify("import requests\nrequests.get('http://x')", "strict", "--network"))
    assert blocked(verify("import subprocess", "strict", "--network"))


def test_eval_of_a_function_that_nothing_calls_is_left_to_the_run():
    function = "def calculate(text):\n    return eval(text)\n"
    verdict = verify(function)
    assert not blocked(verdict)
    assert [f["severity"] for f in verdict["findings"]] == ["warn"]
    assert blocked(verify(function + "calculate(input())"))
    assert blocked(verify(function + "f = calculate"))
    assert not blocked(verify(function + "print(calculate('1 + 1'))"))
    assert blocked(verify(function + "calculate('__import__(\"os\").system(\"x\")')"))
    assert blocked(verify("def f(text):\n    exec(text)\n"))


def test_a_listed_module_that_is_only_imported():
    assert not blocked(verify("import os, sys, shutil, signal, inspect"))
    assert not blocked(verify("import subprocess\ntry:\n    x = 1\nexcept subprocess.CalledProcessError:\n    pass"))


def test_sessions_know_earlier_names():
    assert blocked(verify("os.system('x')", "strict", "--name", "os"))
    assert verify("print(df.head())", "strict", "--name", "df")["findings"] == []


def test_fragments():
    assert verify("undefined + 1", "strict", "--fragment")["findings"] == []
    assert blocked(verify("__import__('os').system('x')", "strict", "--fragment"))
