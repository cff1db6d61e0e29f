# SPDX-License-Identifier: Apache-2.0
"""The last expression's value, display(), figures without any call, tables as HTML and text."""
import base64
import struct

import pytest

from harness.product import slowly


def png_size(data):
    data = base64.b64decode(data, validate=True)
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[-8:-4] == b"IEND"
    return struct.unpack(">II", data[16:24])


@pytest.mark.parametrize("code,text", [
    ("1 + 1", "2"), ("'text'", "'text'"), ("x = 3\nx * 2", "6"), ("[1, 2]\n", "[1, 2]"),
    ("(\n 1,\n 2)\n# comment\n", "(1, 2)"), ("def f(): return 5\nf()", "5"), ("'é'", "'é'"),
    ("1; 2", "2"), ("lambda: 0", None), ("x = 1\nif x:\n    7", False), ("None", False),
    ("print('x')", False), ("x = 5", False), ("1;", "1"), ("", False), ("# only\n", False),
    ("'a\\nb'", "'a\\nb'"), ("0", "0"), ("False", "False"), ("import os\nos", None),
])
def test_value(run, code, text):
    result = run(code).result
    assert result["status"] == "ok", result
    if text is False:
        assert result["value"] is None, result["value"]
    else:
        assert result["value"]["text/plain"], result
        if text is not None:
            assert result["value"]["text/plain"] == text


def test_value_is_not_printed_in_json(run):
    result = run("print('printed')\n42").result
    assert result["stdout"] == "printed\n" and result["value"] == {"text/plain": "42"}


def test_no_value_after_an_error(run):
    assert run("1 + 1\nraise ValueError").result["value"] is None


def test_value_whose_repr_fails(run):
    result = run("class A:\n    def __repr__(self): raise RuntimeError('no repr')\nA()").result
    if result["status"] == "ok":
        assert "A" in result["value"]["text/plain"] and "fail" in result["value"]["text/plain"]
    else:
        assert result["status"] == "error" and result["error"]["type"] == "RuntimeError"


def test_value_that_is_large(run):
    result = run("'x' * 10_000_000").result
    assert result["status"] in ("ok", "output_limit")
    if result["value"]:
        assert len(result["value"]["text/plain"]) <= 10_000_100


def test_value_that_lies(run):
    """A representation that is no string, of a hostile type, or in a hostile method."""
    for code in ("class A:\n    def _repr_html_(self): return 5\n    def __repr__(self): return 'A'\nA()",
                 "class A:\n    def _repr_html_(self): raise KeyError\n    def __repr__(self): return 'A'\nA()",
                 "class A:\n    def __getattr__(self, n): return lambda *a, **k: self\n"
                 "    def __repr__(self): return 'A'\nA()",
                 "class A:\n    def _repr_mimebundle_(self, **k): return {'x': object()}\n"
                 "    def __repr__(self): return 'A'\nA()"):
        result = run(code).result
        assert result["status"] == "ok", result
        assert result["value"]["text/plain"] == "A", result["value"]


def test_underscore_and_name(run):
    result = run("print(__name__, __file__, __builtins__ is not None)\nprint(sorted(globals()))").result
    name, file, _ = result["stdout"].split("\n")[0].split()
    assert name == "__main__" and file.endswith("main.py")
    assert not {n for n in eval(result["stdout"].splitlines()[1]) if "execpy" in n}


def test_display(run):
    result = run("display('a')\ndisplay(1, [2])\nprint('out')\n3").result
    assert [d["text/plain"] for d in result["displays"]] == ["'a'", "1", "[2]"], result["displays"]
    assert result["value"] == {"text/plain": "3"} and result["stdout"] == "out\n"


def test_display_of_html(run):
    result = run("class A:\n    def _repr_html_(self): return '<b>x</b>'\n"
                 "    def __repr__(self): return 'x'\ndisplay(A())\nA()").result
    bundle = {"text/plain": "x", "text/html": "<b>x</b>"}
    assert result["displays"] == [bundle] and result["value"] == bundle


def test_displays_before_an_error(run):
    result = run("display(1)\ndisplay(2)\n1 / 0").result
    assert len(result["displays"]) == 2 and result["status"] == "error"


def test_displays_before_a_timeout(run):
    result = run("display(1)\nwhile True: pass", "--time", slowly(500)).result
    assert [d["text/plain"] for d in result["displays"]] == ["1"]


def test_very_many_displays(run):
    """Bounded, and said so or ended: never a crash of ours."""
    result = run("for i in range(100_000): display(i)").result
    assert result["status"] in ("ok", "output_limit", "error"), result["status"]


def test_figure_without_any_call(run):
    result = run("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])").result
    assert result["status"] == "ok", result
    assert len(result["displays"]) == 1
    width, height = png_size(result["displays"][0]["image/png"])
    assert width > 200 and height > 150


def test_figures_in_order(run):
    result = run("import matplotlib.pyplot as plt\nplt.figure(figsize=(2, 1))\nplt.plot([1])\n"
                 "plt.show()\ndisplay('between')\nfig = plt.figure(figsize=(4, 1))\n").result
    kinds = [sorted(set(d) & {"image/png", "text/plain"}) for d in result["displays"]]
    assert len(result["displays"]) == 3, kinds
    assert "image/png" in result["displays"][0] and "image/png" in result["displays"][2]
    assert result["displays"][1]["text/plain"] == "'between'"
    assert png_size(result["displays"][0]["image/png"]) < png_size(result["displays"][2]["image/png"])


def test_closed_figure_is_not_shown(run):
    result = run("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.savefig('p.png')\nplt.close()").result
    assert result["displays"] == []
    assert [f["path"] for f in result["files"]] == ["p.png"]
    assert result["files"][0]["media_type"] == "image/png"


def test_figure_as_value(run):
    result = run("import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot([1, 2])\nfig").result
    assert png_size(result["value"]["image/png"])


def test_figure_before_an_error(run):
    result = run("import matplotlib.pyplot as plt\nplt.plot([1])\n1 / 0").result
    assert result["status"] == "error" and len(result["displays"]) == 1


def test_fonts_and_backend(run):
    result = run("import matplotlib.pyplot as plt\nplt.title('äöü ∑')\nplt.text(0, 0, 'x')").result
    assert result["status"] == "ok" and result["stderr"] == "", result
    assert png_size(result["displays"][0]["image/png"])


def test_data_frame(run):
    result = run("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', '<y>']})").result
    assert "<table" in result["value"]["text/html"] and "&lt;y&gt;" in result["value"]["text/html"]
    assert result["value"]["text/plain"].split() == ["a", "b", "0", "1", "x", "1", "2", "<y>"]
    result = run("import pandas as pd\ndisplay(pd.DataFrame({'a': [1]}))\npd.Series([1, 2])").result
    assert "<table" in result["displays"][0]["text/html"]
    assert result["value"]["text/plain"].startswith("0    1")


def test_plain_mode_prints_no_value(plain):
    done = plain("-c", "print('out')\n42")
    assert done.returncode == 0 and done.out.startswith("out\n")
