# SPDX-License-Identifier: Apache-2.0
"""The command line of result.md: every option, its ways of giving code, wrong usage in one line."""
import json
import os
import re

import pytest


def test_the_first_promise(product, watch, place):
    done = product.execute("run", "-c", "print(sum(range(1, 11)))", cwd=place)
    assert (done.out, done.returncode, done.err) == ("55\n", 0, "")


def test_json_is_one_line_or_document(product, watch, place):
    done = product.run("print(sum(range(1, 11)))", cwd=place)
    assert done.result["stdout"] == "55\n" and done.result["policy"] == "strict"
    assert done.stdout.endswith(b"}\n") and done.stderr == b""


def test_code_from_a_file(plain, place, product):
    (place / "script.py").write_text("import sys\nprint('file', len(sys.argv))\n")
    product.give(place / "script.py")
    assert plain("script.py").out == "file 1\n"
    assert plain(place / "script.py").out == "file 1\n"


def test_code_from_stdin(plain):
    done = plain("-", input=b"print('from stdin')\n")
    assert done.out == "from stdin\n" and done.returncode == 0


def test_code_from_an_option(plain):
    assert plain("-c", "print('option')").out == "option\n"
    assert plain("-c", "").returncode == 0
    assert plain("-c", "-").returncode == 1  # a syntax error of the code, not stdin


def test_no_code_at_all(plain):
    """Nothing given and stdin is not a terminal: code from stdin, or a line of help; never a hang."""
    done = plain(timeout=10)
    assert done.returncode in (0, 2), str(done)


def test_arguments(plain):
    code = "import sys\nprint(sys.argv[1:])"
    assert plain("-c", code, "--", "a", "--json", "-c", "ü", "").out == "['a', '--json', '-c', 'ü', '']\n"
    assert plain("-c", code, "--").out == "[]\n"


def test_arguments_that_are_not_utf8(plain):
    done = plain("-c", "import sys, os\nprint(os.fsencode(sys.argv[1]))", "--", os.fsdecode(b"\xff"))
    assert done.out == "b'\\xff'\n" or done.returncode == 2, str(done)


def test_stdin_of_the_code(run, place, product):
    (place / "input.txt").write_bytes("zeile 1\nzwei ü\n".encode())
    product.give(place / "input.txt")
    result = run("import sys\nprint(input())\nprint(sys.stdin.read(), end='')", "--stdin",
                 place / "input.txt").result
    assert result["stdout"] == "zeile 1\nzwei ü\n"


def test_stdin_of_the_code_is_empty_without_it(plain):
    """What is on execpy's own stdin is not the code's, unless it is asked for."""
    done = plain("-c", "import sys\nprint(repr(sys.stdin.read()))", input=b"callers input")
    assert done.out in ("''\n", "'callers input'\n"), str(done)


def test_stdin_dash(plain):
    done = plain("--stdin", "-", "-c", "print(input())", input=b"piped\n")
    assert done.out == "piped\n" or done.returncode == 2, str(done)


def test_stdin_missing(plain, place):
    done = plain("--stdin", place / "missing", "-c", "print('ran')")
    assert done.returncode in (2, 125) and "missing" in done.err and done.out == ""


def test_environment(plain):
    code = "import os\nprint(os.environ.get('K'), os.environ.get('EXECPY_TEST_SECRET'))"
    assert plain("--env", "K=v=1 ü", "-c", code).out == "v=1 ü None\n"
    assert plain("--env", "K=1", "--env", "K=2", "-c", code).out == "2 None\n"
    assert plain("--env", "K=", "-c", code).out == " None\n"
    assert plain("-c", code).out == "None None\n"


@pytest.mark.parametrize("option,value,key,number", [
    ("--time", "3s", "time_ms", 3000), ("--time", "2500ms", "time_ms", 2500),
    ("--time", "1m", "time_ms", 60000), ("--time", "2", "time_ms", 2000),
    ("--cpu", "2s", "cpu_ms", 2000), ("--memory", "64M", "memory_bytes", 64 << 20),
    ("--memory", "1G", "memory_bytes", 1 << 30), ("--processes", "8", "processes", 8),
    ("--output", "2M", "output_bytes", 2 << 20), ("--disk", "512K", "disk_bytes", 512 << 10),
])
def test_limits(run, option, value, key, number):
    done = run("print(1)", option, value)
    assert done.result["limits"][key] == number and done.result["status"] == "ok"


def test_option_with_equals_sign(run):
    assert run("pass", "--time=3s").result["limits"]["time_ms"] == 3000


@pytest.mark.parametrize("policy", ["strict", "standard", "open"])
def test_policies(product, watch, place, policy):
    done = product.run("print(1)", "--policy", policy, cwd=place)
    assert (done.result["status"], done.result["policy"]) == ("ok", policy)


@pytest.mark.parametrize("template", ["auto", "bare"])
def test_templates(run, template):
    assert run("print(1)", "--template", template).result["template"] == "bare"


def test_template_of_imports(run):
    result = run("import numpy\nprint(numpy.__name__)").result
    assert result["stdout"] == "numpy\n" and result["template"] != "bare"
    result = run("import numpy\nprint(numpy.__name__)", "--template", "bare").result
    assert result["stdout"] == "numpy\n" and result["template"] == "bare"


def test_result_fields(product, run):
    first, second = run("print(1)").result, run("print(1)").result
    assert first["id"] != second["id"] and first["id"].startswith("run_")
    assert first["warm"] is bool(product.daemon) and first["session"] is None
    timing = first["timing"]
    assert 0 < timing["total_ms"] < 60_000 and timing["run_ms"] <= timing["total_ms"]


def test_blocked_by_strict(product, watch, place):
    done = product.run("import os\nprint('ran')\nos.system('id')\n", cwd=place)
    result = done.result
    assert result["status"] == "blocked" and done.returncode == 126, str(done)
    assert result["stdout"] == "" and result["error"]["type"] == "SecurityError"
    assert any(f["severity"] == "block" and f["line"] in (1, 3) for f in result["findings"])
    text = product.execute("run", "-c", "import os\nprint('ran')\nos.system('id')\n", cwd=place)
    assert text.returncode == 126 and text.out == "", str(text)
    assert "SecurityError" in text.err and "os" in text.err


def test_syntax_error_by_policy(product, watch, place):
    """With `strict` a syntax error is blocked before anything runs; with `open` it is the code's."""
    assert product.run("print('ran')\nfor\n", cwd=place).result["status"] in ("blocked", "error")


WRONG = {
    "unknown_option": ["--nosuch", "-c", "1"], "unknown_short": ["-z"], "no_value": ["--time"],
    "code_twice": ["-c", "1", "-c", "2"], "code_and_file": ["-c", "1", "x.py"],
    "two_files": ["x.py", "y.py"], "missing_file": ["nosuchfile.py"], "a_directory": ["/usr"],
    "bad_limit": ["--time", "soon", "-c", "1"], "bad_file": ["--file", "nosuchfile", "-c", "1"],
    "bad_env": ["--env", "NOVALUE", "-c", "1"], "bad_policy": ["--policy", "nosuch", "-c", "1"],
    "bad_template": ["--template", "nosuch", "-c", "1"], "no_code": ["-c"],
    "json_value": ["--json=yes", "-c", "1"], "empty_file": [""], "option_like": ["--time", "--json"],
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_usage(product, watch, place, name):
    """Exit 2, nothing on stdout, one line that says what is wrong and what would be right."""
    done = product.execute("run", *WRONG[name], cwd=place)
    assert done.returncode == 2, str(done)
    assert done.out == ""
    lines = done.err.rstrip("\n").split("\n")
    assert len(lines) == 1 and lines[0].startswith("execpy"), str(done)
    assert "\x1b" not in done.err and len(lines[0]) > 15


@pytest.mark.parametrize("words", [[], ["nosuch"], ["--nosuch"], ["Run"]])
def test_wrong_command(product, watch, place, words):
    done = product.execute(*words, cwd=place)
    assert done.returncode == 2 and done.out == "" and done.err.startswith(("execpy", "usage")), str(done)
    assert len(done.err.strip().splitlines()) <= (2 if words else 15)


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["-h"]])
def test_help(product, watch, place, words):
    done = product.execute(*words, cwd=place)
    assert done.returncode == 0 and done.err == "" and "run" in done.out
    if words[0] == "run":
        for option in ("--json", "--stdin", "--time", "--cpu", "--memory", "--processes", "--output",
                       "--disk", "--policy", "--file", "--out", "--env", "--template", "--no-daemon"):
            assert option in done.out, f"{option} is not in the help"
    assert max(len(line) for line in done.out.splitlines()) <= 100


def test_version(product, watch, place):
    done = product.execute("--version", cwd=place)
    assert done.returncode == 0 and re.search(r"\d+\.\d+\.\d+", done.out)


def test_works_from_an_unreadable_directory(product, watch, place, unchecked_product):
    """The caller's directory means nothing to the run: also when it is gone."""
    gone = place / "gone"
    gone.mkdir()
    product.give(gone)
    done = product.execute("run", "--policy", "open", "-c", "import os\nprint(os.getcwd())", cwd=place,
                           launcher=["sh", "-c", f'cd {gone} && rmdir {gone} && exec "$@"', "sh"])
    assert done.out == "/workspace\n" and done.returncode == 0, str(done)


def test_empty_environment(product, watch, place):
    done = product.execute("run", "--policy", "open", "-c", "print('works')", cwd=place,
                           launcher=["env", "-i", "PATH=/usr/bin:/bin"])
    assert done.out == "works\n" and done.returncode == 0, str(done)


def test_other_pythons_on_the_path(product, watch, place):
    """Which Python runs is a build option, not a matter of PATH."""
    fake = place / "bin"
    fake.mkdir()
    for name in ("python", "python3"):
        (fake / name).write_text("#!/bin/sh\necho fake\n")
        os.chmod(fake / name, 0o755)
    done = product.execute("run", "--policy", "open", "-c", "import sys\nprint(sys.prefix)", cwd=place,
                           env={"PATH": f"{fake}:/usr/bin:/bin", "VIRTUAL_ENV": str(fake)})
    assert done.out == "/usr\n", str(done)


def test_schema_itself(product):
    """The schema is strict: every object is closed, every status is listed."""
    from harness.product import SCHEMA_PATH, validator
    validator()
    schema = json.loads(SCHEMA_PATH.read_text())

    def walk(node, path):
        if isinstance(node, dict):
            if node.get("type") == "object" and "properties" in node and "bundle" not in path \
                    and "then" not in path:
                assert node.get("additionalProperties") is False, path
            for key, value in node.items():
                walk(value, f"{path}/{key}")
        elif isinstance(node, list):
            for number, value in enumerate(node):
                walk(value, f"{path}/{number}")

    walk(schema, "")
    assert len(schema["properties"]["status"]["enum"]) == 12
