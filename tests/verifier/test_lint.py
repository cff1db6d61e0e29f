# SPDX-License-Identifier: Apache-2.0
"""What is about to fail at run time, and nothing that is not."""
import pytest

from verdicts import blocked, verify


def findings(code, rule, *options):
    verdict = verify(code, "strict", *options)
    return [f for f in verdict["findings"] if f["rule"] == rule]


@pytest.mark.parametrize("code, name", [
    ("print(x)", "x"),
    ("def f():\n    return y", "y"),
    ("class A:\n    a = 1\n    def f(self):\n        return a", "a"),
    ("class A:\n    n = 2\n    xs = [n for _ in range(n)]", "n"),
    ("[i for i in range(3)]\nprint(i)", "i"),
    ("f = lambda a: b", "b"),
    ("def f(a=q): pass", "q"),
    ("@deco\ndef f(): pass", "deco"),
    ("def f(x: T): pass", "T"),
    ("print(f'{zz}')", "zz"),
    ("xrange(3)", "xrange"),
    ("import os.path as p\nos.sep", "os"),
])
def test_undefined(code, name):
    found = findings(code, "undefined-name")
    assert [f["message"] for f in found] == [f"name '{name}' is not defined"]
    assert found[0]["severity"] == "warn"


@pytest.mark.parametrize("code", [
    "def f():\n    return g()\ndef g(): return 1",
    "class A:\n    a = 1\n    b = a",
    "class A:\n    def f(self): return __class__",
    "def f():\n    global x\n    x = 1\nprint(x)",
    "try:\n    x\nexcept NameError:\n    x = 1",
    "from math import *\nprint(sqrt(2))",
    "for i in range(3): pass\nprint(i)",
    "with open('x', 'w') as f: pass\nprint(f)",
    "import a.b\n" "print(a)",
    "[y := 1, y ** 2]",
    "print([z := i for i in range(3)], z)",
    "def f(a: 'Unknown'): pass",
    "from __future__ import annotations\ndef f(a: Unknown): pass",
    "def f():\n    x: Unknown = 1\n    return x",
    "exec('q = 1')\nprint(__name__, __file__, __doc__, __builtins__ is None)" if False else "print(__name__, __file__, __doc__)",
    "match 1:\n    case {'a': b, **c}: print(b, c)\n    case [d, *e]: print(d, e)\n    case int() as g: print(g)",
    "def f(*a, k=1, **kw): return a, k, kw",
    "try:\n    pass\nexcept Exception as e:\n    print(e)",
    "del_me = 1\ndel del_me",
    "import sys as s, json\nprint(s.version, json)",
    "async def f():\n    async with a() as b: print(b)\n    async for c in b: print(c)\ndef a(): pass",
    "def outer():\n    n = 0\n    def inner():\n        nonlocal n\n        n += 1\n    return inner",
])
def test_defined(code):
    assert findings(code, "undefined-name") == []


def test_hints_for_names():
    assert "import numpy as np" in findings("np.zeros(1)", "undefined-name")[0]["hint"]
    assert "`counter`" in findings("counter = 1\nprint(conter)", "undefined-name")[0]["hint"]
    assert "import json" in findings("json.dumps(1)", "undefined-name")[0]["hint"]


@pytest.mark.parametrize("module, hint", [
    ("nunpy", "`numpy`"),
    ("pnadas", "`pandas`"),
    ("opencv", "cv2"),
    ("pillow", "PIL"),
    ("beautifulsoup4", "bs4"),
    ("cPickle", "pickle"),
    ("urllib2", "urllib.request"),
    ("winreg", "Windows"),
])
def test_not_installed(module, hint):
    found = findings(f"import {module}", "not-installed")
    assert found[0]["message"] == f"No module named '{module}'"
    assert hint in found[0]["hint"], found


def test_installed():
    for code in ("import numpy, json, os.path, _thread, __future__", "from xml.etree import ElementTree",
                 "try:\n    import nothing_at_all\nexcept ImportError:\n    nothing_at_all = None",
                 "open('mine.py', 'w').write('x = 1')\nimport mine"):
        assert findings(code, "not-installed") == []
    assert findings("import helper", "not-installed", "--file", "helper.py") == []
    assert findings("import package.part", "not-installed", "--file", "package/part.py") == []


@pytest.mark.parametrize("code", [
    "open('data.csv')", "import pandas as pd\npd.read_csv('data.csv')",
    "from pathlib import Path\nPath('data.csv').read_text()", "import numpy as np\nnp.loadtxt('./data.csv')",
    "open('/workspace/data.csv')", "open('/path/to/data.csv')",
])
def test_missing_file(code):
    found = findings(code, "file-not-found")
    assert len(found) == 1 and "data.csv" in found[0]["message"]
    if "/path/" not in code:
        assert findings(code, "file-not-found", "--file", "data.csv") == []
    assert "other.csv" in findings(code, "file-not-found", "--file", "other.csv")[0]["hint"]


@pytest.mark.parametrize("code", [
    "open('a.txt', 'w').close()\nopen('a.txt')",
    "import pandas as pd\ndf = pd.DataFrame()\ndf.to_csv('a.csv')\npd.read_csv('./a.csv')",
    "try:\n    open('a.txt')\nexcept FileNotFoundError:\n    pass",
    "import os\nif os.path.exists('a.txt'):\n    open('a.txt')",
    "def f(name='a.txt'):\n    return open(name)",
    "open('a.txt', 'a+')",
    "def f(path):\n    open(path, 'w').write('x')\nopen('a.txt')",
    "open('/dev/null')",
    "open(__file__)",
])
def test_file_that_may_be_there(code):
    assert findings(code, "file-not-found") == []


def test_stdin():
    assert findings("input()", "no-stdin")
    assert findings("import sys\nfor line in sys.stdin: pass", "no-stdin")
    assert not findings("input()", "no-stdin", "--stdin")
    assert not findings("try:\n    input()\nexcept EOFError:\n    pass", "no-stdin")


def test_show_is_a_note():
    found = findings("import matplotlib.pyplot as plt\nplt.show()", "plot-show")
    assert [f["severity"] for f in found] == ["note"]


@pytest.mark.parametrize("code, endless", [
    ("while True:\n    x = 1", True),
    ("while 1:\n    for i in [1]:\n        break", True),
    ("while True:\n    def f():\n        return 1", True),
    ("while True:\n    break", False),
    ("def f():\n    while True:\n        return 1", False),
    ("while True:\n    raise ValueError", False),
    ("def f():\n    while True:\n        yield 1", False),
    ("import sys\nwhile True:\n    sys.exit()", False),
    ("while True:\n    for i in []:\n        pass\n    else:\n        break", False),
    ("x = 1\nwhile x:\n    pass", False),
    ("while True:\n    if input() == 'q':\n        quit()", False),
    ("i = iter([1])\nwhile True:\n    next(i)", False),
])
def test_endless_loop(code, endless):
    assert bool(findings(code, "endless-loop")) is endless


def test_sleep():
    assert findings("import time\ntime.sleep(60)", "long-sleep", "--time-ms", "5000")
    assert findings("from time import sleep\nsleep(5)", "long-sleep", "--time-ms", "5000")
    assert not findings("import time\ntime.sleep(0.5)", "long-sleep", "--time-ms", "5000")
    assert not findings("import time\ntime.sleep(60)", "long-sleep", "--time-ms", "120000")


def test_lint_never_blocks():
    code = "import nunpy\nprint(x)\nopen('nothing.txt')\ninput()\nwhile True: pass"
    verdict = verify(code)
    assert not blocked(verdict) and len(verdict["findings"]) >= 5


def test_imports_are_listed():
    code = "import numpy.linalg as l\nfrom pandas import DataFrame\nimport os\n__import__('json')\nimport os"
    assert verify(code)["imports"] == ["numpy", "pandas", "os", "json"]
