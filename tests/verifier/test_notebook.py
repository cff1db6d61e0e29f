# SPDX-License-Identifier: Apache-2.0
"""What only a notebook understands: taken out, told, and nothing else touched."""
import pytest

from verdicts import blocked, verify

MAGIC, INSTALL, SHELL, SYNTAX = ("notebook-magic", "notebook-install", "notebook-shell",
                                 "notebook-syntax")


def rules(verdict):
    return [f["rule"] for f in verdict["findings"]]


def source(code, *options):
    """What runs, which keeps the lines."""
    verdict = verify(code, *options)
    assert not blocked(verdict), verdict
    assert verdict["source"].count("\n") == code.count("\n")
    compile(verdict["source"], "main.py", "exec")
    return verdict["source"]


@pytest.mark.parametrize("line", [
    "%matplotlib inline", "%matplotlib", "%config InlineBackend.figure_format = 'retina'",
    "%load_ext autoreload", "%autoreload 2", "%%time", "%%timeit", "%time", "%%capture out", "%pdb on",
    "%precision 3", "%who", "x?", "?print", "len??", "!pip install numpy", "%pip install -q pandas",
    "!pip install -U 'numpy>=1.0' pandas[all] > /dev/null 2>&1", "pip install matplotlib",
    "!python -m pip install scikit-learn --quiet", "!{sys.executable} -m pip install numpy",
    "!pip install numpy && pip install pandas", "!pip install numpy | tail -1", "!pip -q install numpy",
    "!pip install PyYAML python_dateutil beautifulsoup4 opencv-python ipython", "!pip install --upgrade pip",
])
def test_left_out(line):
    verdict = verify(line + "\nx = 1\nprint(x)\n")
    assert set(rules(verdict)) == {MAGIC} and not blocked(verdict), verdict
    finding = verdict["findings"][0]
    assert (finding["line"], finding["severity"]) == (1, "note")
    assert finding["column"] in (1, 2) and finding["end_column"] > finding["column"]
    assert finding["hint"] and finding["message"]
    assert verdict["source"] == f"# {line}\nx = 1\nprint(x)\n"


def test_installed_is_said_with_its_version():
    finding = verify("!pip install numpy scikit-learn\n")["findings"][0]
    assert "numpy 1." in finding["message"] and "scikit-learn 1." in finding["message"]


@pytest.mark.parametrize("line, package, column, near", [
    ("!pip install polars", "polars", 14, "pandas"),
    ("%pip install -q nunpy", "nunpy", 17, "numpy"),
    ("!pip install numpy no_such_thing pandas", "no_such_thing", 20, ""),
    ("conda install -c conda-forge -y xgboost", "xgboost", 33, "sklearn"),
    ("!pip install git+https://example.org/x.git", "git+https", 14, "what is installed"),
    ("!pip install -r requirements.txt", "requirements.txt", 17, "what is installed"),
    ("!pip install ./x.whl", "./x.whl", 14, "what is installed"),
    ('!pip install "polars>=1"', "polars", 15, "pandas"),
])
def test_missing_packages_are_refused(line, package, column, near):
    verdict = verify(line + "\nx = 1\n")
    finding = [f for f in verdict["findings"] if f["rule"] == INSTALL]
    assert len(finding) == 1 and blocked(verdict), verdict
    assert package in finding[0]["message"] and near in finding[0]["hint"]
    assert (finding[0]["line"], finding[0]["column"]) == (1, column)
    assert blocked(verify(line + "\n", "standard"))
    verdict = verify(line + "\nx = 1\n", "open")
    assert not blocked(verdict) and verdict["source"] == f"# {line}\nx = 1\n"


@pytest.mark.parametrize("line, hint", [
    ("!ls -la", "listdir"), ("!cat data.csv", "open("), ("!wget https://example.org/x", "no network"),
    ("%cd /tmp", "relative"), ("%ls", "listdir"), ("!rm -rf /", "leave this line out"),
    ("!apt-get install -y graphviz", "cannot be installed"), ("!python train.py", "import it"),
    ("!!date", "datetime"), ("!some-program --now", "in Python"), ("!pip list", "importlib.metadata"),
    ("!pip install numpy && ls", ""), ("!nvidia-smi", "GPU"), ("%%bash", "in Python"),
    ("!ls; pip install numpy", "listdir"),
])
def test_commands_are_refused(line, hint):
    for policy, blocks in (("strict", True), ("standard", True), ("open", False)):
        verdict = verify(line + "\n", policy)
        found = [f for f in verdict["findings"] if f["rule"] == SHELL]
        assert len(found) == 1 and blocked(verdict) == blocks, verdict
        assert (found[0]["line"], found[0]["column"]) == (1, 1)
        assert hint in found[0]["hint"]


def test_assigned_commands():
    verdict = verify("files = !ls *.csv\nprint(files)\n")
    assert rules(verdict) == [SHELL] and verdict["findings"][0]["column"] == 9
    assert verify("a, b = !ls\n", "open")["source"] == "a, b = []  # !ls\n"
    assert verify("x = %sql select 1\n", "open")["source"] == "x = None  # %sql select 1\n"


@pytest.mark.parametrize("cell, rule", [
    ("%%bash\necho 'hi\nls -l\n", SHELL), ("%%writefile x.py\nimport os\n", SYNTAX),
    ("%%html\n<b>it's</b>\n", SYNTAX), ("%%javascript\nlet x = 1;\n", SYNTAX),
    ("%%unknown\nx = 1\n", SYNTAX),
])
def test_cells_in_other_languages(cell, rule):
    verdict = verify(cell)
    assert rules(verdict) == [rule] and blocked(verdict), verdict


def test_blocks_stay_blocks():
    code = ("if 1:\n    %matplotlib inline\n    !pip install numpy\nfor i in range(2):  # twice\n"
            "\t%config x\n\nelse:\n  x = 1\n  %pdb\n")
    assert source(code) == (
        "if 1:\n    pass  # %matplotlib inline\n    # !pip install numpy\nfor i in range(2):  # twice\n"
        "\tpass  # %config x\n\nelse:\n  x = 1\n  # %pdb\n")


def test_statements_stay_in_their_columns():
    code = ("%time x = sum(range(10))\nif x:\n    %timeit -n 10 -r3 y = f(x)\nz = %time x + 1\n"
            "%%timeit w = 1\n%prun -s cumtime print(\n  w)\n")
    assert source(code, "open") == (
        f"pass; x = sum(range(10))\nif x:\n    {'pass;':<18}y = f(x)\nz =       x + 1\n"
        f"{'pass;':<9}w = 1\n{'pass;':<17}print(\n  w)\n")
    assert source("%time(print(1))\n%prun'x'\n") == "pass;(print(1))\npass;'x'\n"
    undefined = [f for f in verify(code)["findings"] if f["rule"] == "undefined-name"]
    assert [(f["line"], f["column"]) for f in undefined] == [(3, 27)]


def test_what_follows_is_judged():
    verdict = verify("%time import subprocess\n%matplotlib inline\nsubprocess.run(['ls'])\n")
    assert blocked(verdict) and "process" in rules(verdict)
    assert blocked(verify("%matplotlib inline\neval(input())\n"))
    assert blocked(verify("%%python\nimport subprocess\nsubprocess.run(['ls'])\n"))
    assert blocked(verify("x = %time __import__('subprocess').run(['ls'])\n"))


@pytest.mark.parametrize("code", [
    "x = 10\ny = (x\n %3)\n", "s = '''\n%matplotlib inline\n!ls\n%%bash\n'''\n",
    'f"""\n!pip install x\n"""\n', "x = 'a\\\n!ls'\n", "y = 10 \\\n%3\n", "# %matplotlib inline\n",
    "x = [\n# (\n1]\n", "x = '%d' % 3\n", "", "x = {1: 2,\n}\n", "'''!ls'''\n", "x = 7\nx \\\n%x\n",
])
def test_python_is_never_changed(code):
    compile(code, "main.py", "exec")
    verdict = verify(code)
    assert "source" not in verdict and not set(rules(verdict)) & {MAGIC, INSTALL, SHELL, SYNTAX}


def test_strings_and_brackets_are_left_alone_beside_magics():
    rest = ('s = """\n%matplotlib inline\n!ls\n"""\nt = (10\n %3)\nu = [\n"!ls",\n]\nv = 9 \\\n%4\n'
            "w = 'a\\\n!ls'\nr = r'\\''\nq = 'it' \"'\"\n")
    compile(rest, "main.py", "exec")
    assert source("!pip install numpy # it's\n" + rest) == "# !pip install numpy # it's\n" + rest


def test_quotes_in_commands_open_no_string():
    verdict = verify("!echo \"it's\nx = 1\n%matplotlib inline\n")
    assert rules(verdict) == [SHELL, MAGIC]


@pytest.mark.parametrize("code, line", [
    ("%matplotlib inline\nx = (1,\ny = 2\n", 2), ("!pip install numpy\nprint 'x'\n", 2),
    ("x = 1\n%time\n  y = 2\n", 3),
])
def test_the_real_error_is_told(code, line):
    verdict = verify(code)
    error = [f for f in verdict["findings"] if f["severity"] == "block"]
    assert [f["line"] for f in error] == [line] and MAGIC in rules(verdict), verdict


def test_no_cookie_appears():
    """A line that becomes a comment must not tell the compiler another encoding."""
    for code in ("%pip coding: latin-1\nx\n", "%matplotlib inline\n# coding: utf_7\nx = 1\n",
                 "%config coding=utf_7\n+AHg- = 1\n"):
        verdict = verify(code)
        assert "encoding" in rules(verdict) and blocked(verdict), verdict
    verdict = verify("import math\n%matplotlib inline\n# coding: latin-1\nmath.pi\n")
    assert rules(verdict) == [MAGIC]


def test_line_ends_and_joined_lines():
    assert source("%matplotlib inline\r\nx = 1\r\n") == "# %matplotlib inline\r\nx = 1\r\n"
    assert source("%matplotlib inline\rx = 1\r") == "# %matplotlib inline\rx = 1\r"
    assert source("!pip install numpy \\\n  pandas\nx = 1") == \
        "# !pip install numpy \\\n  # pandas\nx = 1"
    assert verify("x = !ls \\\n -l\ny = 1\n", "open")["source"] == "x = []  # !ls \\\n # -l\ny = 1\n"


def test_future_imports_stay_first():
    source("%matplotlib inline\nfrom __future__ import annotations\nx = 1\n")


def test_pylab_is_what_it_does():
    assert source("%pylab inline\nprint(pi)\n") == "from pylab import *  # %pylab inline\nprint(pi)\n"


def test_text_is_cut_between_characters():
    """The codec of verdicts refuses half a character."""
    for start in ("!", "!pip install ./", "%cd ", "x = !", "?", "%%bash "):
        verify(start + "a" * 25 + "é" * 300 + "\n")
        verify(start + "é" * 300 + "\n")


@pytest.mark.parametrize("code", ["!pip install polars\n" * 2000, "%time 1;\n" * 100_000,
                                  "!pip install" + " polars" * 100_000 + "\n", "x = !" * 100_000])
def test_very_many(code):
    verdict = verify(code)
    assert blocked(verdict) and verdict["ms"] < 3000, verdict["ms"]


def test_fence_and_magics():
    verdict = verify("```python\n%matplotlib inline\nx = y\n```\n")
    assert rules(verdict) == ["markdown-fence", MAGIC, "undefined-name"]
    assert [f["line"] for f in verdict["findings"]][1:] == [2, 3]
