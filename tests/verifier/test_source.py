# SPDX-License-Identifier: Apache-2.0
"""What the source must be, and syntax errors in CPython's words."""
import io
import subprocess
import zipfile

import pytest

from verdicts import TOOL, blocked, verify


def only(code, *options):
    verdict = verify(code, "strict", *options)
    assert len(verdict["findings"]) == 1, verdict
    assert blocked(verdict)
    return verdict["findings"][0]


@pytest.mark.parametrize("code", [
    "def f(:\n    pass\n",
    "print 'x'\n",
    "x = (1,\n",
    "x = 1)\n",
    "if True\n    pass\n",
    "for i in range(3):\nprint(i)\n",
    "  x = 1\n",
    "if 1:\n\tx = 1\n        y = 2\n",
    "x = 'abc\n",
    'x = """abc\n',
    "return 1\n",
    "break\n",
    "def f():\n    nonlocal x\n",
    "def f(a, a): pass\n",
    "x = 1 +\n",
    "f(a=1, 2)\n",
    "1 = x\n",
    "x = “a”\n",
    "def f():\n    yield 1\n    await g()\n",
    "class A\n    pass\n",
    "try:\n    pass\n",
    "x = {1: 2, 3}\n",
    "x = 0777\n",
    "from x import *, y\n",
    "async def f():\n    [x async for x in y]\nz = [await q for q in w]\n",
    "äöü = = 1\n",
    "x = f'{'\n",
    "def f():\n    x = 1\n    global x\n",
    "while True:\n    def g():\n        continue\n",
    "\tx = 1\n",
    "if 1:\n  x\n y\n",
])
def test_syntax_errors_are_cpython_s(code):
    with pytest.raises(SyntaxError) as caught:
        compile(code, "main.py", "exec")
    error, finding = caught.value, only(code)
    assert finding["message"] == error.msg
    assert finding["line"] == error.lineno
    assert finding["column"] == max(error.offset or 1, 1)
    if error.end_lineno and error.end_offset and error.end_offset > 0:
        assert finding["end_line"] == max(error.end_lineno, error.lineno)
    assert finding["rule"] == {"IndentationError": "indentation-error", "TabError": "tab-error"}.get(
        type(error).__name__, "syntax-error")
    assert finding["hint"]


@pytest.mark.parametrize("code, hint", [
    (">>> x = 1\n1\n", "prompts"),
    ("$ ls\n", "no shell"),
    ("In [1]: import math\n", "prompts"),
    ("%run other.py\n", "import it"),
    ("%what is this\nx = 1\n", "leave the line out"),
])
def test_notebook_lines(code, hint):
    finding = only(code)
    assert finding["rule"] == "notebook-syntax"
    assert hint in finding["hint"]


def test_fence_is_taken_off_and_what_is_inside_is_judged():
    verdict = verify("```python\nimport subprocess\n```\n")
    assert [f["rule"] for f in verdict["findings"]] == ["markdown-fence", "process"]
    assert verdict["findings"][1]["line"] == 2
    verdict = verify("Here it is:\n\n```py\nprint(1)\n```\nThat was it.\n")
    assert [f["rule"] for f in verdict["findings"]] == ["markdown-fence"]
    assert not blocked(verdict)
    assert verify('x = """\n```\ncode\n```\n"""\n')["findings"] == []
    assert verify('print(1)\ny = \'\'\'\n```\n\'\'\'\n')["findings"] == []


@pytest.mark.parametrize("code, rule", [
    (b"# -*- coding: latin-1 -*-\nx = 1\n", "encoding"),
    (b"#!/usr/bin/python\n# vim: set fileencoding=utf_7 :\n+AHg- = 1\n", "encoding"),
    (b"# coding: rot13\n", "encoding"),
    (b"\n# coding=unicode_escape\n", "encoding"),
    (b"x = '\xff'\n", "encoding"),
    (b"x = '\xed\xa0\x80'\n", "encoding"),
    (b"x = '\xc0\xaf'\n", "encoding"),
    (b"x = 1\0\n", "nul-byte"),
    (b"\x7fELF\x02\x01\x01", "not-source"),
    (b"\xa7\r\r\n" + bytes(20), "not-source"),
    (b"x" * (1024 * 1024 + 1), "too-large"),
    (b"(" * 5000 + b")" * 5000, "syntax-error"),
    (b"x = " + b"-" * 20000 + b"1", "too-deep"),
    (b"x" + b".a" * 20000, "too-deep"),
    (b"x = " + b"1+" * 9000 + b"1", "too-deep"),
])
def test_source_that_is_none(code, rule):
    assert only(code)["rule"] == rule


@pytest.mark.parametrize("code", [
    b"# -*- coding: utf-8 -*-\nx = 1\n",
    b"\xef\xbb\xbfx = 1\n",
    b"\xef\xbb\xbf# coding: utf8\nx = 1\n",
    b"x = 1\n\n# coding: latin-1 is only a word here\n",
    b"x = 'coding: latin-1'\n",
    b"",
    b"\n\n",
    b"x = 1\r\ny = 2\r\n",
    b"x = 1\ry = 2\r",
    b"\x0cx = 1\n",
    "# ﷽ 日本語 \U0001f468\u200d\U0001f469 emoji with joiners\n".encode(),
])
def test_source_that_is_fine(code):
    assert verify(code)["findings"] == []


def test_zip_named_py():
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr("__main__.py", "print(1)")
    for code in (archive.getvalue(), b"print(2)\n" + archive.getvalue()):
        assert only(code)["rule"] == "not-source"


def test_text_that_runs_backwards():
    verdict = verify("x = 1 # \u202e 2 \u2066\n")
    assert [(f["rule"], f["severity"]) for f in verdict["findings"]] == [("hidden-text", "warn")]


def test_positions_after_every_kind_of_line_end():
    for end in ("\n", "\r\n", "\r"):
        verdict = verify(f"x = 1{end}é = 2{end}import socket{end}")
        assert (verdict["findings"][0]["line"], verdict["findings"][0]["column"]) == (3, 8)


def test_at_most_200_findings_and_blocks_come_first():
    code = "".join(f"print(u{i})\n" for i in range(400)) + "import os\nos.system('x')\n"
    verdict = verify(code)
    assert len(verdict["findings"]) == 200 and verdict["truncated"]
    assert blocked(verdict) and any(f["severity"] == "block" for f in verdict["findings"])


def test_warnings_of_the_compiler_are_left_to_the_run():
    done = subprocess.run([TOOL, "-"], input=b"x = 1\nprint(x is 1, '\\d')\n", capture_output=True)
    assert done.stderr == b"" and done.returncode == 0
