# SPDX-License-Identifier: Apache-2.0
"""execpy check: the verdict as text, JSON and SARIF, of one input and of many."""
import json
import os
import pty
import urllib.parse

import jsonschema
import pytest

from harness import host
from harness.product import SLOW, no_constants, unique

SCHEMA = host.REPOSITORY / "tests/data/sarif/sarif-2.1.0.json"
REMOVE = "import os; os.remove('important_file.txt')\n"
EVAL = "x = input()\nprint(eval(x))\n"
FINE = "import math, os\nprint(os.path.join('a', 'b'), math.pi)\n"
WARNED = "print(undefined)\n"
NOTED = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n"


@pytest.fixture
def check(product, watch, place):
    """check(*args, files={name: text or bytes}) -> Completed of `execpy check ARGS…`."""
    def check(*args, files=None, **more):
        for name, text in (files or {}).items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return product.execute("check", *args, cwd=place, **more)
    return check


def objects(done):
    return [json.loads(line, parse_constant=no_constants, object_pairs_hook=unique)
            for line in done.out.splitlines()]


def blocks(findings):
    return [f for f in findings if f["severity"] == "block"]


# -- the verdict ---------------------------------------------------------------------------------

STATUS = {REMOVE: 1, EVAL: 1, FINE: 0, WARNED: 0, NOTED: 0, "": 0, "\n": 0, "def f(:\n": 1}


@pytest.mark.parametrize("way", [("-c",), ("-",), ("x.py",)])
def test_exit_status(check, way):
    for code, status in STATUS.items():
        words = (*way, code) if way == ("-c",) else way
        done = check(*words, files={"x.py": code}, input=code.encode())
        assert done.returncode == status and done.err == "", str(done)


def test_nothing_is_run(check, place):
    done = check("-c", "open('made', 'w').write('x')\nprint('r' + 'an')\nwhile True: pass\n")
    assert done.returncode == 0 and "ran\n" not in done.out, str(done)
    assert not (place / "made").exists() and done.seconds < 10 * SLOW


def test_verdict_is_that_of_run(check, product, place):
    """Same findings as the run's own result, and blocked by the same."""
    for code in (REMOVE, EVAL, FINE, WARNED, "import socket\ns = socket.socket()\n"):
        checked = objects(check("--json", "-c", code))[0]
        result = product.run(code, cwd=place).result
        assert checked["findings"] == result["findings"], (checked, result["findings"])
        assert (checked["decision"] == "block") == (result["status"] == "blocked")


def test_policies(check):
    assert check("--policy", "strict", "-c", EVAL).returncode == 1
    assert check("--policy", "standard", "-c", EVAL).returncode == 0
    assert check("--policy", "open", "-c", EVAL).returncode == 0
    lenient = "profile: strict\nrules:\n  dynamic-code: warn\n"
    assert check("--policy", "p.yaml", "-c", EVAL, files={"p.yaml": lenient}).returncode == 0
    stern = "profile: open\nmodules:\n  math: block\n"
    assert check("--policy", "q.yaml", "-c", FINE, files={"q.yaml": stern}).returncode == 1


def test_what_the_code_would_be_given(check):
    """Lint that depends on the request: stdin, files, the time limit."""
    rules = lambda *args, **more: {f["rule"] for f in objects(check("--json", *args, **more))[0]
                                   ["findings"]}
    read = "print(input())"
    assert "no-stdin" in rules("-c", read)
    assert "no-stdin" not in rules("-c", read, "--stdin", "in", files={"in": "1\n"})
    opened = "print(open('data.csv').read())"
    assert "file-not-found" in rules("-c", opened)
    assert "file-not-found" not in rules("-c", opened, "--file", "data.csv",
                                         files={"data.csv": "1\n"})
    assert "file-not-found" not in rules("-c", opened, "--file", "other:data.csv",
                                         files={"other": "1\n"})
    sleeps = "import time\ntime.sleep(8)"
    assert "long-sleep" in rules("-c", sleeps)
    assert "long-sleep" not in rules("-c", sleeps, "--time", "10s")
    assert "not-installed" in rules("-c", "import nosuchmodule")
    assert "not-installed" not in rules("-c", "import numpy, pandas, scipy")


# -- text ----------------------------------------------------------------------------------------

def test_text_of_one(check):
    done = check("x.py", files={"x.py": EVAL})
    lines = done.out.splitlines()
    at = lines.index("x.py:2:12: block: eval() is not allowed on code that is not a constant "
                     "[dynamic-code]")
    assert lines[at + 1:at + 3] == ["    print(eval(x))", "               ^"]
    assert lines[at + 3].startswith("hint: ")
    assert "files:" not in done.out, "one input needs no summary"
    assert check("y.py", files={"y.py": FINE}).out == "y.py: allowed\n"
    assert check("-c", FINE).out == "<string>: allowed\n"
    assert check("-", input=FINE.encode()).out == "<stdin>: allowed\n"


def caret(done, rule):
    lines = done.out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.endswith(f"[{rule}]"))
    return lines[at], lines[at + 1], lines[at + 2]


# What stands before the range, and how many cells of a terminal that takes.
BEFORE = {"": 0, "\t": 8, "s = 'a\tb'; ": 12, "s = '日本'; ": 12, "s = 'e\u0301e\u0301'; ": 10,
          "s = '😀'; ": 10, "é = 1; ": 7, "s = 'a\u200bb'; ": 11}
AFTER = ["\n", "\r\n", "", "; x = '日本'\n"]


def test_caret_stands_under_the_range(check):
    cases = [(before, after) for before in BEFORE for after in AFTER]
    files = {f"{i}.py": "if 1:\n" * before.startswith("\t") + before + "undefined" + after
             for i, (before, after) in enumerate(cases)}
    lines = check(*files, files=files, timeout=60).out.splitlines()
    for name, (before, after) in zip(files, cases):
        number = 1 + before.startswith("\t")
        head = f"{name}:{number}:{len(before) + 1}: warn: name 'undefined' is not defined " \
            "[undefined-name]"
        at = lines.index(head)
        line, carets = lines[at + 1:at + 3]
        assert carets == " " * (4 + BEFORE[before]) + "^" * 9, (before, after, line, carets)
        assert not set(line + carets) & set("\t\r\u200b")


def test_wide_characters_have_wide_carets(check):
    head, _, carets = caret(check("x.py", files={"x.py": "日本 + é\n"}), "undefined-name")
    assert head.startswith("x.py:1:1: ") and carets == "    ^^^^"


def test_long_line_is_cut_around_the_range(check):
    code = "x = [" + "1, " * 3000 + "undefined, " + "2, " * 3000 + "]\n"
    _, line, carets = caret(check("x.py", files={"x.py": code}), "undefined-name")
    assert len(line) < 140 and line.strip().startswith("…") and line.endswith("…")
    at = carets.index("^")
    assert line[at:at + carets.count("^")] == "undefined"


def test_range_over_several_lines(check):
    done = check("x.py", files={"x.py": "open(\n  '/etc/passwd',\n  'w')\n"})
    assert done.returncode == 1
    assert all(set(line) <= {" ", "^"} for line in done.out.splitlines() if "^" in line)


def test_terminal_is_safe_from_the_source_and_the_name(check):
    """Nothing of a stranger's moves the cursor, sets colours or turns the text around."""
    code = "s = '\x1b[31m\u202e\u200b\x9b'; undefined\n"
    name = "a\x1b[2Jb\n.py"
    done = check(name, "missing\x1b[2J.py", files={name: code})
    for bad in ("\x1b", "\u202e", "\u200b", "\x9b"):
        assert bad not in done.out + done.err, repr(done.out + done.err)
    _, line, carets = caret(done, "undefined-name")
    assert line[carets.index("^"):] == "undefined"


def test_fence_keeps_the_lines_of_the_file(check):
    code = "Here it is:\n\n```python\nx = input()\neval(x)\n```\n"
    found = objects(check("--json", "x.md", files={"x.md": code}))[0]
    assert [(f["rule"], f["line"]) for f in found["findings"]][:2] == \
        [("markdown-fence", None), ("no-stdin", 4)]
    text = check("x.md")
    assert "x.md:5:6: block:" in text.out and "    eval(x)\n" in text.out
    sarif = json.loads(check("--sarif", "x.md").out)["runs"][0]["results"]
    assert sarif[2]["locations"][0]["physicalLocation"]["region"]["startLine"] == 5


def terminal(product, place, *args, **environment):
    ours, theirs = pty.openpty()
    try:
        process = product.start("check", *args, cwd=place, stdout=theirs,
                                env={"TERM": "xterm", **environment})
        os.close(theirs)
        theirs = -1
        seen = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                break
            if not piece:
                break
            seen += piece
        process.communicate(timeout=30 * SLOW)
        return seen.decode()
    finally:
        os.close(ours)
        if theirs >= 0:
            os.close(theirs)


def test_colours_only_on_a_terminal(check, product, place):
    assert "\x1b" not in check("x.py", files={"x.py": EVAL}).out
    assert "\x1b[1;31mblock:" in terminal(product, place, "x.py")
    assert "\x1b" not in terminal(product, place, "x.py", NO_COLOR="1")
    assert "\x1b" not in terminal(product, place, "x.py", TERM="dumb")
    assert "\x1b" not in terminal(product, place, "--json", "x.py")


# -- many, and odd ones --------------------------------------------------------------------------

def test_many_files(check):
    files = {f"{i}.py": FINE if i % 3 else EVAL for i in range(12)}
    done = check(*files, files=files)
    assert done.returncode == 1
    assert done.out.splitlines()[-1] == "12 files: 4 blocked, 8 allowed"
    found = objects(check("--json", *files))
    assert [(o["path"], o["decision"]) for o in found] == \
        [(name, "allow" if text == FINE else "block") for name, text in files.items()]
    assert check("1.py", "2.py").returncode == 0


def test_one_file_does_not_judge_the_next(check):
    """Names, aliases and files of one are not known to the other."""
    found = objects(check("--json", "a.py", "b.py", files={
        "a.py": "import os as m\nopen('made.txt', 'w')\n",
        "b.py": "m.system('x')\nprint(open('made.txt').read())\n"}))
    assert {f["rule"] for f in found[1]["findings"]} >= {"undefined-name", "file-not-found"}


# 60,000 statements take longer than 50 ms, and half a million lists more than 100 MiB.
SLOW_CODE = "x = 1\n" * 60_000
VAST = "x = [" + "[]," * 300_000 + "]\n"


FILES_BESIDE = {"fine.py": FINE, "bomb.py": None, "eval.py": EVAL, "also.py": None, "warned.py": WARNED}
TRIES = 5


def decisions_beside(check, bomb, limit, how):
    """Decisions when the bomb stands among other files; the same as each gets alone."""
    files = {name: text or bomb for name, text in FILES_BESIDE.items()}
    alone = {name: objects(check("--json", *limit, name, files=files))[0] for name in files}
    for name in ("bomb.py", "also.py"):
        assert [(f["rule"], f["message"]) for f in alone[name]["findings"]] == \
            [("verifier-crash", f"the code could not be verified: {how}")]
    for order in (files, sorted(files), list(reversed(files))):
        found = objects(check("--json", *limit, *order, timeout=60))
        if found != [alone[name] for name in order]:
            return [o["decision"] for o in found]
    return [alone[name]["decision"] for name in files]


@pytest.mark.parametrize("bomb, limit, how", [(SLOW_CODE, ("--time", "50ms"), "it took too long"),
                                              (VAST, (), "it took too much memory")], ids=["time", "memory"])
def test_only_what_ends_the_cell_is_blamed(check, bomb, limit, how):
    """Many files share a cell. Those beside the one that ends it get the verdicts that each gets
    alone, wherever it stands."""
    expected = ["allow", "block", "block", "block", "allow"]
    # On a busy machine 50 ms may be too little for any file; whoever blames the wrong one does
    # so each time.
    tries = [decisions_beside(check, bomb, limit, how)]
    while limit and tries[-1] != expected and len(tries) < TRIES:
        tries.append(decisions_beside(check, bomb, limit, how))
    assert tries[-1] == expected, tries


def test_more_files_than_one_cell_takes(check):
    """By number, by bytes, and by what is said of them: nothing is lost at the seams."""
    many = {f"{i}.py": FINE if i % 7 else EVAL for i in range(1100)}
    done = check(*many, files=many, timeout=60)
    assert done.out.splitlines()[-1] == "1100 files: 158 blocked, 942 allowed"
    large = {f"l{i}.py": f"x = '{'y' * 200_000}'\nundefined{i}\n" for i in range(12)}
    found = objects(check("--json", *large, files=large))
    assert [[f["message"] for f in o["findings"]] for o in found] == \
        [[f"name 'undefined{i}' is not defined"] for i in range(12)]
    wordy = {f"w{i}.py": "".join(f"name{i}_{k}\n" for k in range(250)) for i in range(60)}
    found = objects(check("--json", *wordy, files=wordy))
    assert [o["path"] for o in found] == list(wordy)
    assert [len(o["findings"]) for o in found] == [200] * 60
    assert all(f"name{i}_0'" in o["findings"][0]["message"] for i, o in enumerate(found))


def test_a_file_gets_the_same_verdict_among_others(check):
    """Of what the corpora hold, in one batch and each alone."""
    rows = (host.REPOSITORY / "tests/corpus/attacks.jsonl").read_text().splitlines()[::9]
    files = {f"{i}.py": json.loads(row)["code"] for i, row in enumerate(rows)}
    alone = [objects(check("--json", name, files=files))[0] for name in files]
    assert objects(check("--json", *files)) == alone
    assert {o["decision"] for o in alone} == {"allow", "block"}


ODD = {
    "empty.py": (b"", "allow", None),
    "newlines.py": (b"\n\n\r\n", "allow", None),
    "nul.py": (b"x = 1\n\0\n", "block", "nul-byte"),
    "latin.py": (b"x = '\xe9'\n", "block", "encoding"),
    "cookie.py": (b"# coding: latin-1\nx = 1\n", "block", "encoding"),
    "zip.py": (b"PK\x03\x04" + bytes(range(256)), "block", None),
    "elf.py": (b"\x7fELF\x02\x01\x01" + b"\0" * 60, "block", None),
    "noise.py": (bytes((i * 197 + i // 7) % 256 for i in range(5000)), "block", None),
    "bom.py": (b"\xef\xbb\xbfprint(1)\n", "allow", None),
    "deep.py": (b"(" * 5000 + b")" * 5000, "block", None),
    "full.py": (b"x = 1  # " + b"y" * ((1 << 20) - 10) + b"\n", "allow", None),
}


def test_odd_files(check):
    """Each gets a decision and one clear line; none hides the others."""
    files = {name: content for name, (content, _, _) in ODD.items()}
    done = check("--json", *files, files=files, timeout=60)
    assert done.err == ""
    found = {o["path"]: o for o in objects(done)}
    assert list(found) == list(files)
    for name, (_, decision, rule) in ODD.items():
        assert found[name]["decision"] == decision, (name, found[name])
        if rule:
            assert blocks(found[name]["findings"])[0]["rule"] == rule, (name, found[name])
    text = check(*files, timeout=60)
    assert text.out.count("empty.py: allowed: it is empty\n") == 1
    assert all(len(line) < 500 for line in text.out.splitlines())


def test_unreadable_inputs_do_not_stop_the_others(check, place, product):
    (place / "dir").mkdir()
    (place / "huge.py").write_bytes(b"#" * ((1 << 20) + 1))
    (place / "loop.py").symlink_to("loop.py")
    bad = {"missing.py": "No such file", "dir": "Is a directory", "huge.py": "1048576 bytes",
           "loop.py": "symbolic links", "/dev/zero": "1048576 bytes"}
    if product.uid is not None or os.geteuid() != 0:
        (place / "secret.py").write_text("1")
        (place / "secret.py").chmod(0)
        bad["secret.py"] = "Permission denied"
    done = check("--json", "a.py", *bad, "b.py", files={"a.py": FINE, "b.py": EVAL})
    assert [(o["path"], o["decision"]) for o in objects(done)] == [("a.py", "allow"),
                                                                  ("b.py", "block")]
    lines = done.err.splitlines()
    assert len(lines) == len(bad), str(done)
    for line, (name, why) in zip(lines, bad.items()):
        assert line.startswith(f"execpy: {name}: ") and why in line, line
    assert done.returncode == 2
    text = check("a.py", *bad, "b.py")
    assert text.out.splitlines()[-1] == f"{len(bad) + 2} files: 1 blocked, 1 allowed, " \
        f"{len(bad)} not judged"


USAGE = {
    "nothing": [], "both": ["-c", "1", "x.py"], "twice": ["-c", "1", "-c", "2"],
    "unknown": ["--nosuch", "x.py"], "no_value": ["x.py", "--policy"], "no_code": ["-c"],
    "two_formats": ["--json", "--sarif", "x.py"], "policy": ["--policy", "nosuch", "x.py"],
    "policy_many": ["--policy", "nosuch", "x.py", "x.py"], "time": ["--time", "soon", "x.py"],
    "file": ["--file", "nosuch", "x.py"], "file_name": ["--file", "x.py:main.py", "x.py"],
    "stdin": ["--stdin", "nosuch", "x.py"], "stdin_twice": ["-", "-"],
    "stdin_both": ["-", "--stdin", "-"], "other_limit": ["--memory", "1G", "x.py"],
    "missing": ["nosuch.py"], "policy_file": ["--policy", "bad.yaml", "x.py"],
}


@pytest.mark.parametrize("name", USAGE)
def test_wrong_usage(check, name):
    done = check(*USAGE[name], files={"x.py": FINE, "bad.yaml": "profile: strict\nruels: {}\n"})
    assert done.returncode == 2 and done.out == "", str(done)
    assert len(done.err.splitlines()) == 1 and done.err.startswith("execpy: "), str(done)


def test_names_that_look_like_options(check):
    assert check("--", "-c", files={"-c": FINE}).out == "-c: allowed\n"


def test_help(check):
    done = check("--help")
    assert done.returncode == 0 and done.err == ""
    for word in ("--json", "--sarif", "--policy", "--file", "--stdin", "--time"):
        assert word in done.out


def test_nobody_listens(product, place):
    (place / "x.py").write_text(EVAL)
    with open("/dev/full", "w") as full:
        process = product.start("check", "x.py", cwd=place, stdout=full)
        _, err = process.communicate(timeout=30 * SLOW)
    assert process.returncode == 125 and len(err.splitlines()) == 1, err


def test_ours_is_not_the_codes(check):
    done = check("x.py", files={"x.py": FINE}, launcher=["prlimit", "--nofile=12", "--"])
    assert done.returncode == 125 and done.out == "", str(done)
    assert done.err.splitlines()[-1].startswith("execpy: x.py: "), str(done)


# -- SARIF ---------------------------------------------------------------------------------------

def sarif(done):
    log = json.loads(done.out, parse_constant=no_constants, object_pairs_hook=unique)
    schema = json.loads(SCHEMA.read_text())
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    errors = [f"{list(e.absolute_path)}: {e.message}"[:300] for e in kind(schema).iter_errors(log)]
    assert not errors, errors
    assert log["version"] == "2.1.0" and len(log["runs"]) == 1
    return log["runs"][0]


def test_sarif(check):
    files = {"a.py": REMOVE, "dir/ü b.py": WARNED, "n.py": NOTED, "fine.py": FINE,
             "w.py": "x = '日本😀' + input(); eval(x)\n", "nul.py": b"x\0"}
    done = check("--sarif", *files, files=files)
    run = sarif(done)
    assert done.returncode == 1 and done.err == ""
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["invocations"] == [{"executionSuccessful": True}]
    driver = run["tool"]["driver"]
    assert driver["name"] == "execpy" and driver["version"]
    rules = driver["rules"]
    assert len(rules) > 30 and len({r["id"] for r in rules}) == len(rules)
    for rule in rules:
        assert rule["shortDescription"]["text"] and rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
    found = objects(check("--json", *files))
    flat = [(o["path"], f) for o in found for f in o["findings"]]
    assert len(flat) == len(run["results"])
    levels = {"block": "error", "warn": "warning", "note": "note"}
    for (path, finding), result in zip(flat, run["results"]):
        assert result["ruleId"] == finding["rule"] == rules[result["ruleIndex"]]["id"]
        assert result["level"] == levels[finding["severity"]]
        assert result["message"]["text"] == finding["message"]
        place = result["locations"][0]["physicalLocation"]
        assert urllib.parse.unquote(place["artifactLocation"]["uri"]) == path
        region = place.get("region")
        if finding["line"] is None:
            assert region is None
        else:
            assert region == {"startLine": finding["line"], "startColumn": finding["column"],
                              "endLine": finding["end_line"], "endColumn": finding["end_column"]}
    assert {"error", "warning", "note"} <= {r["level"] for r in run["results"]}
    wide = next(r for r in run["results"] if r["ruleId"] == "dynamic-code")
    region = wide["locations"][0]["physicalLocation"]["region"]
    assert files["w.py"][region["startColumn"] - 1:region["endColumn"] - 1] == "x"


def test_sarif_without_results(check):
    run = sarif(check("--sarif", "-c", FINE))
    assert run["results"] == [] and run["tool"]["driver"]["rules"]


def test_sarif_tells_what_was_not_judged(check):
    done = check("--sarif", "nosuch.py", "a.py", files={"a.py": EVAL})
    run = sarif(done)
    assert done.returncode == 2 and len(done.err.splitlines()) == 1
    told = run["invocations"][0]
    assert told["executionSuccessful"] is False
    assert "No such file" in told["toolExecutionNotifications"][0]["message"]["text"]
    assert any(r["ruleId"] == "dynamic-code" for r in run["results"])


def test_sarif_paths(check, place):
    absolute = place / "a b.py"
    run = sarif(check("--sarif", absolute, "./c.py", "d:e.py",
                      files={"a b.py": EVAL, "c.py": EVAL, "d:e.py": EVAL}))
    uris = list(dict.fromkeys(r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
                              for r in run["results"]))
    assert uris == [absolute.as_uri(), "c.py", "d%3Ae.py"]
