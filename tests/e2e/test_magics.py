# SPDX-License-Identifier: Apache-2.0
"""Code as models write it for notebooks: what runs, where its errors are, and what is told."""
import pytest


def rules(result):
    return [f["rule"] for f in result["findings"]]


def strict(product, code, *options):
    return product.run(code, *options).result


def test_magics_are_left_out_and_told(run):
    result = run("%matplotlib inline\n!pip install numpy\nimport numpy as np\n"
                 "if True:\n    %time x = np.arange(3)\nfor i in range(2):\n    %config a\n"
                 "print(x)\nint(x.sum())\n").result
    assert result["status"] == "ok" and result["stdout"] == "[0 1 2]\n", result
    assert result["value"]["text/plain"] == "3" and result["stderr"] == ""
    assert rules(result) == ["notebook-magic"] * 4
    assert [f["line"] for f in result["findings"]] == [1, 2, 5, 7]
    assert all(f["severity"] == "note" for f in result["findings"])
    assert "numpy 1." in result["findings"][1]["message"]
    assert result["files"] == []


def test_python_is_what_it_was(run):
    """The control: the same forms inside of Python are Python's."""
    result = run('s = """\n%matplotlib inline\n!ls\n"""\nx = (10\n %3)\nprint(s, x)\n').result
    assert result["stdout"] == "\n%matplotlib inline\n!ls\n 1\n" and result["findings"] == []


@pytest.mark.parametrize("code, line, column, end_column, text", [
    ("%matplotlib inline\n\nx = 1\n1 / 0\n", 4, 1, 6, "1 / 0"),
    ("if True:\n    %time y = 1 / 0\n", 2, 15, 20, "    %time y = 1 / 0"),
    ("%%timeit -n 10\ndef f():\n    %pdb\n    return 1 / 0\nx = %time f()\n", 4, 12, 17,
     "    return 1 / 0"),
])
def test_errors_are_where_they_were_written(run, code, line, column, end_column, text):
    result = run(code).result
    frame = result["error"]["frames"][-1]
    assert result["status"] == "error" and result["error"]["type"] == "ZeroDivisionError"
    assert (frame["line"], frame["column"], frame["end_column"]) == (line, column, end_column)
    assert frame["source"] == text, frame
    assert f"line {line}" in result["error"]["traceback"]
    assert text.strip() in result["error"]["traceback"]


def test_value_of_a_timed_expression(run):
    assert run("x = 20\n%time x + 1\n").result["value"] == {"text/plain": "21"}
    assert run("x = %time 20 + 1\nx").result["value"] == {"text/plain": "21"}


def test_missing_package_is_refused(product, watch):
    result = strict(product, "!pip install polars\nimport polars as pl\n")
    assert result["status"] == "blocked" and result["error"]["type"] == "SyntaxError", result
    assert "polars" in result["error"]["message"] and result["error"]["frames"][0]["line"] == 1
    finding = [f for f in result["findings"] if f["severity"] == "block"][0]
    assert (finding["rule"], finding["line"], finding["column"]) == ("notebook-install", 1, 14)
    assert "pandas" in finding["hint"]
    result = strict(product, "!pip install pandas\nimport pandas as pd\nprint(len(pd.Series([1])))")
    assert result["status"] == "ok" and result["stdout"] == "1\n"


def test_commands_are_refused_and_open_goes_on(product, run):
    code = "!ls /etc\nfiles = !ls\nprint(files)\n"
    result = strict(product, code)
    assert result["status"] == "blocked" and result["stdout"] == ""
    assert rules(result) == ["notebook-shell", "notebook-shell"]
    result = run(code).result
    assert result["status"] == "ok" and result["stdout"] == "[]\n", result
    assert [f["severity"] for f in result["findings"]] == ["warn", "warn"]


def test_what_is_behind_a_magic_is_judged(product, watch):
    result = strict(product, "%matplotlib inline\n%time import socket\nsocket.socket()\n")
    assert result["status"] == "blocked" and result["error"]["type"] == "SecurityError"


def test_fences_and_magics(run):
    result = run("Here is the code:\n\n```python\n%matplotlib inline\nprint(1)\n1 / 0\n```\n").result
    assert rules(result) == ["markdown-fence", "notebook-magic"], result["findings"]
    assert result["stdout"] == "1\n" and result["error"]["frames"][-1]["line"] == 3


def test_figures_come_with_the_magic(run):
    result = run("%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\n").result
    assert result["status"] == "ok" and "image/png" in result["displays"][0]


def test_main_py_is_what_was_sent(run):
    code = "%matplotlib inline\nprint(open(__file__).read())\n"
    result = run(code).result
    assert result["stdout"] == code + "\n" and result["files"] == []


def test_no_way_around_by_another_encoding(run, product):
    """The line becomes a comment: it must not become a cookie that the verifier ignores."""
    code = "%config coding: utf_7\nx = 1\n# +AAo-import socket\n"
    assert strict(product, code)["status"] == "blocked"
    result = run(code + "print(sorted(globals()))\n").result
    assert result["status"] == "error" and result["error"]["type"] == "SyntaxError"
    assert result["stdout"] == ""


def test_check_tells_the_same(product, watch, place):
    done = product.execute("check", "--json", "-c", "%matplotlib inline\n!ls\nx = 1\n", cwd=place)
    assert done.returncode == 1 and "notebook-shell" in done.out and "notebook-magic" in done.out
    done = product.execute("check", "--json", "-c", "%matplotlib inline\nx = 1\n", cwd=place)
    assert done.returncode == 0 and "notebook-magic" in done.out
