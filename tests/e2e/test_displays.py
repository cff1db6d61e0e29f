# SPDX-License-Identifier: Apache-2.0
"""Displays and values as a notebook shows them: every format, bounded, whatever objects do."""
import base64
import glob
import json

import pytest

from test_values import png_size

MIB = 1 << 20


def value(run, code):
    result = run(code).result
    assert result["status"] == "ok", result
    return result["value"]


def class_with(method, body, plain="plain"):
    return (f"class A:\n    def {method}:\n        {body}\n"
            f"    def __repr__(self): return {plain!r}\nA()\n")


@pytest.mark.parametrize("method, mime, text", [
    ("_repr_html_", "text/html", "<b>é</b>"), ("_repr_markdown_", "text/markdown", "# é"),
    ("_repr_svg_", "image/svg+xml", "<svg/>"), ("_repr_latex_", "text/latex", "$x^2$"),
])
def test_text_formats(run, method, mime, text):
    code = class_with(method + "(self)", f"return {text!r}")
    assert value(run, code) == {"text/plain": "plain", mime: text}
    code = class_with(method + "(self)", f"return {text!r}, {{'isolated': True}}")
    assert value(run, code) == {"text/plain": "plain", mime: text}


@pytest.mark.parametrize("method, mime", [("_repr_png_", "image/png"), ("_repr_jpeg_", "image/jpeg")])
def test_pictures(run, method, mime):
    for data in ("b'\\x89PNG'", "'iVBORw=='", "bytearray(b'\\x89PNG')", "(b'\\x89PNG', {'width': 1})"):
        code = class_with(method + "(self)", f"return {data}")
        assert value(run, code) == {"text/plain": "plain", mime: "iVBORw=="}, data


def test_json(run):
    shown = value(run, class_with("_repr_json_(self)", "return {'a': [1, None, 'é']}"))
    assert json.loads(shown["application/json"]) == {"a": [1, None, "é"]}


def test_no_scripts(run):
    assert value(run, class_with("_repr_javascript_(self)", "return 'alert(1)'")) == {"text/plain": "plain"}
    code = class_with("_repr_mimebundle_(self, **k)",
                      "return {'application/javascript': 'x()', 'text/javascript': 'x()', 'text/html': 'h'}")
    assert value(run, code) == {"text/plain": "plain", "text/html": "h"}


@pytest.mark.parametrize("arguments", ["(self)", "(self, include, exclude)", "(self, **kwargs)",
                                       "(self, include=None, exclude=None)"])
@pytest.mark.parametrize("data", ["{'text/html': '<i>', 'text/plain': 'mine'}",
                                  "({'text/html': '<i>', 'text/plain': 'mine'}, {'text/html': {}})"])
def test_bundles(run, arguments, data):
    code = class_with("_repr_mimebundle_" + arguments, f"return {data}")
    assert value(run, code) == {"text/plain": "mine", "text/html": "<i>"}


def test_bundles_are_filled_in(run):
    code = ("class A:\n    def _repr_mimebundle_(self, include, exclude): return {'text/html': 'bundle',\n"
            "        'image/png': 'iVBORw==', 'application/vnd.x+json': {'a': 1}}\n"
            "    def _repr_html_(self): return 'method'\n    def _repr_latex_(self): return '$x$'\n"
            "    def __repr__(self): return 'plain'\nA()\n")
    shown = value(run, code)
    assert json.loads(shown.pop("application/vnd.x+json")) == {"a": 1}
    assert shown == {"text/plain": "plain", "text/html": "bundle", "image/png": "iVBORw==",
                     "text/latex": "$x$"}


@pytest.mark.parametrize("method", ["_repr_html_", "_repr_png_", "_repr_json_", "_repr_mimebundle_",
                                    "_ipython_display_", "_repr_svg_"])
@pytest.mark.parametrize("body", [
    "raise KeyError(1)", "raise SystemExit(3)", "raise KeyboardInterrupt", "return object()", "return",
    "return self", "return (self,)", "return ()", "return getattr(self, method)()", "return 1 / 0",
    "return {1: 2, 'no mime': object(), 'text/html': 5}",
])
def test_formats_that_fail(run, method, body):
    """Each is the object's own problem: the run goes on, and the text is there."""
    code = (f"method = {method!r}\n" + class_with(method + "(self, *a, **k)", body)[:-4]
            + "display(A())\nprint('on')\nA()\n")
    result = run(code).result
    assert result["status"] == "ok" and result["exit_code"] == 0 and result["stdout"] == "on\n", result
    assert result["value"]["text/plain"] == "plain" and result["stderr"] == ""
    assert set(result["value"]) <= {"text/plain", "application/json"}, result["value"]


def test_repr_that_fails(run):
    for body, words in (("raise RuntimeError('why')", "RuntimeError: why"), ("return 5", "TypeError"),
                        ("return repr(self)", "RecursionError"), ("raise SystemExit", "SystemExit")):
        result = run(f"class A:\n    def __repr__(self): {body}\ndisplay(A())\nprint('on')\nA()").result
        assert result["status"] == "ok" and result["stdout"] == "on\n"
        assert "A object" in result["value"]["text/plain"] and words in result["value"]["text/plain"]
        assert "A object" in result["displays"][0]["text/plain"]


def test_formats_that_print(run):
    result = run(class_with("_repr_html_(self)", "print('side'); return '<b>'")).result
    assert result["stdout"] == "side\n" and result["value"]["text/html"] == "<b>"


def test_formats_that_display_themselves(run):
    for body in ("display(self); return '<b>'", "[display(self) for _ in range(3)]; return '<b>'"):
        result = run(class_with("_repr_html_(self)", body)).result
        assert result["status"] == "ok" and result["value"] == {"text/plain": "plain", "text/html": "<b>"}
        assert len(result["displays"]) <= 257


def test_objects_that_answer_to_any_name(run):
    code = ("class A:\n    def __getattr__(self, name): return lambda *a, **k: 'x'\n"
            "    def __repr__(self): return 'plain'\nA()\n")
    assert value(run, code) == {"text/plain": "plain"}
    assert value(run, class_with("_repr_html_(self)", "return 'x'")[:-4] + "A")["text/plain"].startswith("<class")


def test_objects_that_display_themselves(run):
    result = run(class_with("_ipython_display_(self)", "display('one'); display('two')")[:-4]
                 + "display(A())\nA()\n").result
    assert [d["text/plain"] for d in result["displays"]] == ["'one'", "'two'"] * 2
    assert result["value"] == {"text/plain": "plain"}


@pytest.mark.parametrize("method, mime, body, limit", [
    ("_repr_html_", "text/html", "'x' * {}", 4 * MIB), ("_repr_svg_", "image/svg+xml", "'é' * ({} // 2)", 4 * MIB),
    ("_repr_json_", "application/json", "['x' * ({} - 4)]", 4 * MIB), ("_repr_png_", "image/png", "bytes({})", 8 * MIB),
])
def test_large_data_are_left_out_and_told(run, method, mime, body, limit):
    shown = value(run, class_with(method + "(self)", "return " + body.format(limit)))
    assert mime in shown and shown["text/plain"] == "plain"
    shown = value(run, class_with(method + "(self)", "return " + body.format(limit + 2)))
    assert mime not in shown and shown["text/plain"].startswith("plain\n[" + mime)
    assert str(limit + 2) in shown["text/plain"] and str(limit) in shown["text/plain"]


def test_large_text_is_shortened(run):
    shown = value(run, "'a' * 500_000 + 'b' * 500_000")["text/plain"]
    assert len(shown) < 66_000 and shown.startswith("'aaa") and shown.endswith("bbb'")
    assert "of 1000002 characters" in shown
    shown = value(run, class_with("_repr_mimebundle_(self, **k)", "return {'text/plain': 'a' * 500_000}"))
    assert "of 500000 characters" in shown["text/plain"] and len(shown["text/plain"]) < 66_000
    assert value(run, "'a' * 65_000")["text/plain"] == repr("a" * 65_000)


def test_no_room_is_told(run):
    result = run(class_with("_repr_png_(self)", "return bytes(7 << 20)")[:-4]
                 + "for i in range(6): display(A())\nprint('on')\nA()\n", "--memory", "300M").result
    assert result["status"] == "ok" and result["stdout"] == "on\n", result["status"]
    assert ["image/png" in d for d in result["displays"]] == [True] * 4 + [False] * 2
    assert "no room" in result["displays"][-1]["text/plain"] and "A object" in result["value"]["text/plain"]


def test_too_many_are_told(run):
    shown = run("for i in range(1000): display(i)").result["displays"]
    assert len(shown) == 256 and shown[254]["text/plain"] == "254"
    assert "after 255 displays" in shown[255]["text/plain"]
    shown = run("for i in range(255): display(i)").result["displays"]
    assert [d["text/plain"] for d in shown] == [str(i) for i in range(255)]


def test_display_s_options(run):
    result = run(class_with("_repr_html_(self)", "return '<b>'")[:-4] +
                 "display(A(), 1, exclude=['text/html'], metadata={}, transient={}, clear=True)\n"
                 "display(A(), include=('text/plain',))\ndisplay(A(), include={'text/html'})\n"
                 "display({'text/plain': 'raw', 'text/html': 'r'}, raw=True)\ndisplay()\n").result
    assert result["status"] == "ok", result
    assert [sorted(d) for d in result["displays"]] == [["text/plain"]] * 3 + [["text/html", "text/plain"]] * 2
    assert result["displays"][4] == {"text/plain": "raw", "text/html": "r"}


def test_handles(run):
    result = run("h = display(1, display_id=True)\nh.update(2)\nh.display(3)\ndisplay(4, display_id='x')\n"
                 "assert display(5) is None\n").result
    assert result["status"] == "ok", result
    assert [d["text/plain"] for d in result["displays"]] == ["1", "2", "3", "4", "5"]


def test_tables(run):
    shown = value(run, "import pandas as pd\npd.DataFrame({'a': [1.5]}).style.format('{:.2f}')")
    assert "1.50" in shown["text/html"] and "Styler" in shown["text/plain"]
    assert value(run, "import pandas as pd\npd.Series([1, 2], name='n')").keys() == {"text/plain"}
    shown = value(run, "import pandas as pd\npd.DataFrame({'a': range(100_000)})")
    assert len(shown["text/html"]) < 20_000 and "100000 rows" in shown["text/html"]
    assert value(run, "import numpy as np\nnp.arange(3)") == {"text/plain": "array([0, 1, 2])"}


def test_images(run):
    shown = value(run, "from PIL import Image\nImage.new('RGB', (30, 20), 'red')")
    assert png_size(shown["image/png"]) == (30, 20) and "PIL.Image" in shown["text/plain"]


def test_formulas(run):
    shown = value(run, "import sympy\nx = sympy.Symbol('x')\nx**2 / 3")
    assert shown["text/plain"] == "x**2/3" and r"\frac{x^{2}}{3}" in shown["text/latex"]
    shown = value(run, "import sympy\nsympy.Matrix([[1, 2]])")
    assert "matrix" in shown["text/latex"] and shown["text/plain"] == "Matrix([[1, 2]])"


def test_a_figure_as_data_when_it_is_asked_for(run):
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2], [3, 4], label='a')\n"
    mime = "application/vnd.execpy.chart+json"
    shown, = run(code, "--env", "EXECPY_CHARTS=1").result["displays"]
    assert png_size(shown["image/png"]) == (640, 480)
    chart = json.loads(shown[mime])
    assert chart["type"] == "line"
    assert chart["elements"] == [{"label": "a", "points": [[1, 3], [2, 4]]}]
    shown, = run(code).result["displays"]
    assert mime not in shown and "image/png" in shown


def test_animation(run):
    code = ("import numpy as np\nimport matplotlib.pyplot as plt\n"
            "from matplotlib.animation import FuncAnimation, ArtistAnimation\n"
            "fig, ax = plt.subplots(figsize=(3, 2))\nline, = ax.plot([], [])\nax.set_xlim(0, 9)\n"
            "def draw(i):\n    line.set_data(range(10), [i] * 10)\n    return line,\n"
            "animation = FuncAnimation(fig, draw, frames=5)\n")
    result = run(code + "display(animation)\nplt.close(fig)\nanimation\n").result
    assert result["status"] == "ok" and result["stderr"] == "", result
    assert png_size(result["value"]["image/png"]) == (300, 200)
    assert png_size(result["displays"][0]["image/png"]) == (300, 200)
    empty = run(code.replace("FuncAnimation(fig, draw, frames=5)", "None") + "fig\n").result
    assert empty["value"]["image/png"] != result["value"]["image/png"]


def test_axes_are_text(run):
    result = run("import matplotlib.pyplot as plt\nplt.plot([1])").result
    assert set(result["value"]) == {"text/plain"} and "Line2D" in result["value"]["text/plain"]
    assert len(result["displays"]) == 1


def test_plotly_s_figures(run):
    """plotly's are asked for their JSON alone: its own display would open a browser."""
    code = ("class Figure:\n    def to_plotly_json(self): return {'data': object()}\n"
            "    def to_json(self): return '{\"data\": []}'\n"
            "    def _ipython_display_(self): raise SystemExit('browser')\n"
            "    def __repr__(self): return 'Figure()'\ndisplay(Figure())\nFigure()\n")
    result = run(code).result
    bundle = {"text/plain": "Figure()", "application/vnd.plotly.v1+json": '{"data": []}'}
    assert result["status"] == "ok" and result["value"] == bundle and result["displays"] == [bundle]


def test_bundle_with_very_many_types(run):
    shown = value(run, class_with("_repr_mimebundle_(self, **k)",
                                  "return {f'text/x{i}': 'x' for i in range(1000)}"))
    assert len(shown) <= 65 and shown["text/plain"] == "plain"


def test_binary_is_base64_once(run):
    data = base64.b64encode(bytes(range(256))).decode()
    assert value(run, class_with("_repr_png_(self)", "return bytes(range(256))"))["image/png"] == data
    code = class_with("_repr_mimebundle_(self, **k)", f"return {{'image/png': {data!r}}}")
    assert value(run, code)["image/png"] == data
    code = class_with("_repr_mimebundle_(self, **k)", "return {'image/png': 'no base64: é'}")
    assert value(run, code) == {"text/plain": "plain"}


IPYTHON = ("from IPython.display import (display, HTML, Markdown, Latex, Math, SVG, JSON, Image, Code,\n"
           "    Pretty, Javascript, clear_output, update_display, DisplayHandle)\n")


@pytest.fixture
def without_ipython():
    """Ours stands in for it only where it is not installed."""
    if glob.glob("/usr/lib/python3/dist-packages/IPython"):
        pytest.skip("IPython is installed: this host lacks what its stand-in is for")


def test_ipython_s_display(run, product, without_ipython):
    """IPython is not installed here: its display module is there all the same."""
    code = (IPYTHON + "display(HTML('<b>'), Markdown('# m'), Latex('$l$'), Math('m'), SVG('<svg/>'))\n"
            "display(JSON({'a': 1}), JSON('[2]'), Image(b'\\x89PNG'), Code('x = 1'), Pretty('p'))\n"
            "display(Javascript('x()'))\nclear_output(wait=True)\n"
            "DisplayHandle().update(1)\nupdate_display(2, display_id='x')\nHTML(data='last')\n")
    for result in (run(code).result, product.run(code).result):
        assert result["status"] == "ok" and result["findings"] == [] and result["stderr"] == "", result
        kinds = [next((k for k in d if k != "text/plain"), None) for d in result["displays"]]
        assert kinds == ["text/html", "text/markdown", "text/latex", "text/latex", "image/svg+xml",
                         "application/json", "application/json", "image/png", "text/markdown",
                         None, None, None, None]
        assert [json.loads(d["application/json"]) for d in result["displays"][5:7]] == [{"a": 1}, [2]]
        assert result["displays"][9]["text/plain"] == "p"
        assert result["value"]["text/html"] == "last"


def test_an_ipython_that_is_installed_shows_what_it_is_given(run):
    """Its own functions print where no shell of its runs. Found in the workspace, before any other."""
    code = ("import os\nos.makedirs('IPython/core')\n"
            "for name, text in {'__init__': 'here = True', 'core/__init__': '',\n"
            "                   'core/display_functions': 'display = print',\n"
            "                   'display': 'from IPython.core.display_functions import *'}.items():\n"
            "    with open(f'IPython/{name}.py', 'w') as file: file.write(text)\n"
            "import IPython\nfrom IPython.display import *\nprint(IPython.here)\n"
            "handle = display(1, display_id='x')\nupdate_display(2, display_id='x')\nclear_output()\n"
            "DisplayHandle().update(3)\npublish_display_data({'text/html': '<b>'}, source='s')")
    result = run(code).result
    assert result["status"] == "ok" and result["stdout"] == "True\n", result
    assert [d.get("text/html", d["text/plain"]) for d in result["displays"]] == ["1", "2", "3", "<b>"]


def test_ipython_s_image_of_a_file(run, without_ipython):
    result = run(IPYTHON + "import matplotlib.pyplot as plt\nplt.figure(figsize=(2, 1))\nplt.plot([1])\n"
                 "plt.savefig('p.png')\nplt.close()\ndisplay(Image('p.png', width=10))\n"
                 "Image(filename='p.png')").result
    assert png_size(result["value"]["image/png"]) == png_size(result["displays"][0]["image/png"]) == (200, 100)
    for options, error in (("url='https://example.org/x.png'", "ValueError"),
                           ("filename='none.png'", "FileNotFoundError")):
        assert run(IPYTHON + f"Image({options})").result["error"]["type"] == error


def test_ipython_is_no_more_than_that(run, product, without_ipython):
    result = run("from IPython.core.display import HTML\nfrom IPython import get_ipython, display\n"
                 "import IPython\nprint(get_ipython())\nIPython.display.display(1)\n"
                 "display.clear_output()\n").result
    assert result["stdout"] == "None\n" and len(result["displays"]) == 1, result
    result = run("import IPython.terminal").result
    assert result["error"]["type"] == "ModuleNotFoundError"
    assert run("import no_such_module").result["error"]["type"] == "ModuleNotFoundError"
    result = product.run("from IPython import get_ipython\nget_ipython().system('ls')").result
    assert result["status"] == "blocked"
