# SPDX-License-Identifier: Apache-2.0
"""`execpy shell`: through a pipe, and on a terminal as a person uses it."""
import os
import re
import signal
import stat

import pytest

from harness.product import slowly
from harness.terminal import CONTROL_C, CONTROL_D, UP, Terminal


@pytest.fixture
def shell(product, watch, place):
    """shell(lines, *options) -> Completed of a shell that reads them from a pipe."""
    def shell(lines, *options, policy="open", **more):
        own = () if product.daemon or "--session" in options else ("--no-daemon",)
        policy = ("--policy", policy) if policy else ()
        return product.execute("shell", *own, *policy, *options, input=lines.encode(), cwd=place, **more)
    return shell


@pytest.fixture
def terminal(product, watch, place):
    """terminal(*options) -> Terminal with a shell, at its first prompt."""
    opened = []

    def terminal(*options, **more):
        own = () if product.daemon or "--session" in options else ("--no-daemon",)
        env = {"XDG_STATE_HOME": str(place / "state"), **more.pop("env", {})}
        opened.append(Terminal(product, "shell", *own, "--policy", "open", *options, cwd=place,
                               env=env, **more))
        opened[-1].await_(">>> ")
        return opened[-1]
    yield terminal
    for one in opened:
        one.__exit__()


# -- through a pipe -------------------------------------------------------------------------------

def test_values_are_printed_as_pythons_prompt_does(shell):
    done = shell("1 + 1\nx = 5\nNone\n'a'\nprint('out')\nx * 2\n")
    assert (done.out, done.err, done.returncode) == ("2\n'a'\nout\n10\n", "", 0)


def test_lines_that_belong_together(shell):
    done = shell("for i in range(2):\n    print(i)\n\nsum([1,\n\n2])\n'''a\n\nb'''\n1 + \\\n2\n"
                 "@staticmethod\ndef f():\n    return 7\n\nf()\n")
    assert (done.out, done.err) == ("0\n1\n3\n'a\\n\\nb'\n3\n7\n", ""), str(done)


def test_what_the_end_of_input_cuts_is_run(shell):
    assert shell("if True:\n    print('ran')").out == "ran\n"
    done = shell("print(1)\nx = (")
    assert done.returncode == 1 and "SyntaxError" in done.err and done.out == "1\n", str(done)


def test_nothing_at_all(shell):
    for lines in ("", "\n\n", "# only a comment\n"):
        done = shell(lines)
        assert (done.out, done.err, done.returncode) == ("", "", 0), str(done)


@pytest.mark.parametrize("code,status", [
    ("1/0", 1), ("import sys; sys.exit(3)", 3), ("1/0\n1", 0), ("while True: pass", 124),
    ("import ctypes; ctypes.string_at(0)", 139), ("b = b'x' * (1 << 30)", 137),
])
def test_exit_status_of_the_last_run(shell, code, status):
    done = shell(code + "\n", "--time", slowly(400))
    assert done.returncode == status, str(done)


def test_blocked(shell):
    done = shell("import os; os.system('id')\n", policy="strict")
    assert done.returncode == 126 and "SecurityError" in done.err and "hint: " in done.err, str(done)
    assert done.out == "" and "warning" not in done.err


def test_error_and_what_stays(shell):
    done = shell("x = 1\nx = 2; 1/0\nx\n")
    assert done.out == "2\n" and done.returncode == 0, str(done)
    assert "ZeroDivisionError: division by zero" in done.err and "restored" not in done.err


def test_session_goes_on_after_a_crash(shell):
    done = shell("x = [1]\nx.append(2); import ctypes; ctypes.string_at(0)\nx\n")
    assert done.out == "[1]\n" and done.returncode == 0, str(done)
    assert "signal 11" in done.err
    assert "session restored to before this run" in done.err.splitlines(), str(done)


def test_session_goes_on_after_a_limit(shell):
    done = shell("x = 1\nx = 2\nwhile True: x += 1\n\nx\n", "--time", slowly(500))
    assert done.out == "2\n", str(done)
    assert "the time limit" in done.err and "session restored to before this run" in done.err


def test_displays_come_in_their_order(shell):
    done = shell("display('a'); display(1); [2]\n")
    assert done.out == "'a'\n1\n[2]\n", str(done)


def test_warnings(shell):
    done = shell("while True: break\nx = undefined_name_here\n", policy="strict")
    assert "warning: line 1: " in done.err and "[undefined-name]" in done.err, str(done)


def test_pictures_become_files(shell, place):
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2]); None\nplt.plot([2, 1]); None\n"
    (place / "picture-1.png").write_bytes(b"mine")
    done = shell(code, "--memory", "300M", "--time", "60s", "--cpu", "60s", timeout=60)
    assert re.fullmatch(r"\[picture-2\.png: \d+ bytes\]\n\[picture-3\.png: \d+ bytes\]\n", done.out), str(done)
    assert (place / "picture-1.png").read_bytes() == b"mine"
    for number in (2, 3):
        assert (place / f"picture-{number}.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_pictures_elsewhere(shell, place, product):
    (place / "here").mkdir()
    product.give(place / "here")
    code = ("class P:\n    def _repr_svg_(self): return '<svg/>'\n\nP()\n")
    done = shell(code, "--pictures", place / "here")
    assert done.out == f"[{place}/here/picture-1.svg: 6 bytes]\n", str(done)
    assert (place / "here/picture-1.svg").read_text() == "<svg/>"
    done = shell("1\n", "--pictures", place / "nowhere")
    assert done.returncode == 2 and "nowhere" in done.err


def test_commands(shell):
    done = shell("x = 1\n:checkpoint first\nx = 2\nx = 3\n:undo\nx\n:rollback first\nx\n:drop first\n"
                 ":rollback first\n")
    assert done.out == "2\n1\n", str(done)
    assert done.returncode == 1 and len(done.err.splitlines()) == 1, str(done)


def test_commands_that_are_none(shell):
    for line, status in ((":nosuch", 2), (":checkpoint", 2), (":undo now", 2), (":", 2), (":undo", 1)):
        done = shell(line + "\n")
        assert done.returncode == status and done.out == "", str(done)
        assert len(done.err.splitlines()) == 1 and done.err.startswith("execpy: "), str(done)


def test_help_lists_all(shell):
    done = shell(":help\n")
    for word in ("undo", "checkpoint NAME", "rollback NAME", "drop NAME", "files", "get NAME [TO]",
                 "put FILE", "info", "quit"):
        assert f":{word}" in done.out, word


def test_info(shell):
    done = shell("1\n:info\n", "--time", "3s", "--memory", "64M")
    assert re.search(r"^id +ses_\w+$", done.out, re.MULTILINE), str(done)
    assert re.search(r"^runs +1$", done.out, re.MULTILINE)
    assert "time 3 s" in done.out and "memory 64 MiB" in done.out


def test_files(shell, place, product):
    (place / "data.txt").write_text("42\n")
    product.give(place / "data.txt")
    done = shell("open('made.txt', 'w').write('made'); None\n:put data.txt:in.txt\nopen('in.txt').read()\n"
                 ":files\n:get made.txt\n:get made.txt other.txt\n")
    assert done.err == "" and done.returncode == 0, str(done)
    assert done.out.startswith("'42\\n'\n") and "made.txt" in done.out and "in.txt" in done.out
    assert (place / "made.txt").read_text() == (place / "other.txt").read_text() == "made"
    done = shell(":get nosuch.txt\n:put nosuch.txt\n")
    assert len(done.err.splitlines()) == 2 and not (place / "nosuch.txt").exists(), str(done)
    assert not [name for name in os.listdir(place) if name.startswith("nosuch")]


@pytest.mark.parametrize("word", ["exit", "quit", "exit()", "quit()", ":quit", "exit  "])
def test_words_that_leave(shell, word):
    done = shell(f"print(1)\n{word}\nprint(2)\n")
    assert (done.out, done.returncode) == ("1\n", 0), str(done)


def test_bytes_of_any_kind(product, shell):
    done = shell("print('ü', b'\\xff')\nimport sys; sys.stdout.buffer.write(b'\\xff\\n'); None\n")
    assert done.stdout == "ü b'\\xff'\n".encode() + b"\xff\n", str(done)


@pytest.mark.parametrize("options", [["file.py"], ["--nosuch"], ["--time"], ["--time", "soon"],
                                     ["--pictures"], ["--json"], ["--session", "x", "--memory", "1G"]])
def test_wrong_usage(product, watch, place, options):
    done = product.execute("shell", *options, cwd=place)
    assert done.returncode == 2 and done.out == "", str(done)
    assert len(done.err.splitlines()) == 1 and done.err.startswith("execpy: "), str(done)


def test_wrong_policy_or_template(shell):
    assert shell("1\n", policy="nosuch").returncode != 0
    done = shell("1\n", "--template", "nosuch")
    assert done.returncode != 0 and done.out == "" and "nosuch" in done.err, str(done)


# -- a daemon's sessions ----------------------------------------------------------------------------

def test_attach(shared, watch, place):
    id = shared.execute("session", "create", "--policy", "open").out.strip()
    done = shared.execute("shell", "--session", id, input=b"x = 1\n:checkpoint mine\n", cwd=place)
    assert (done.out, done.err, done.returncode) == ("", "", 0), str(done)
    done = shared.execute("shell", "--session", id, input=b"x\n:rollback mine\nx\n", cwd=place)
    assert done.out == "1\n1\n", str(done)
    assert shared.execute("session", "end", id).returncode == 0
    done = shared.execute("shell", "--session", id, input=b"x\n", cwd=place)
    assert done.returncode == 1 and done.out == "" and "ended" in done.err, str(done)


def test_no_such_session(shared, watch, place):
    done = shared.execute("shell", "--session", "ses_nosuch", input=b"1\n", cwd=place)
    assert done.returncode == 1 and len(done.err.splitlines()) == 1 and "ses_nosuch" in done.err


def test_a_session_of_its_own_ends_with_it(shared, watch, place):
    done = shared.execute("shell", input=b"import os\n1 + 1\n:info\n", cwd=place)
    assert done.out.startswith("2\nid "), str(done)
    assert shared.execute("session", "list", "--json").out == "[]\n"


def test_a_session_that_ends_meanwhile(shared, watch, place):
    id = shared.execute("session", "create").out.strip()
    with Terminal(shared.product, "shell", "--session", id, cwd=place,
                  env=shared.environment(XDG_STATE_HOME=str(place))) as shell:
        shell.await_(">>> ")
        assert shell.ask("1 + 1") == "2\n"
        assert shared.execute("session", "end", id).returncode == 0
        shell.line("1 + 1")
        assert shell.end() == 1 and "ended" in shell.seen


# -- on a terminal ----------------------------------------------------------------------------------

def test_a_conversation(terminal):
    shell = terminal()
    assert shell.ask("40 + 2") == "42\n"
    assert shell.ask("x = 6") == ""
    assert shell.ask("print(x * 7)") == "42\n"
    shell.line("def f(a):")
    shell.await_("... ")
    shell.line("    return a + 1")
    shell.await_("... ")
    assert shell.ask("") == ""
    assert shell.ask("f(41)") == "42\n"
    assert shell.ask("print('no end', end='')") == "no end\n"
    assert "ZeroDivisionError" in shell.ask("1/0")
    shell.type(CONTROL_D)
    assert shell.end() == 0


def test_control_c_drops_the_line(terminal):
    shell = terminal()
    shell.type("raise SystemEx")
    shell.await_("SystemEx")
    shell.type(CONTROL_C)
    shell.await_(">>> ")
    shell.line("for i in range(3):")
    shell.await_("... ")
    shell.type(CONTROL_C)
    shell.await_(">>> ")
    assert shell.ask("20 + 1") == "21\n"
    shell.line("exit")
    assert shell.end() == 0


def test_control_c_at_any_moment_of_a_line(terminal):
    """Also when it comes between two characters, while nothing is read."""
    shell = terminal()
    for n in range(500):
        shell.type("word"[: 1 + n % 4])
        shell.type(CONTROL_C)
        shell.await_(">>> ")
    assert shell.ask("20 + 1") == "21\n"


def test_control_c_interrupts_the_run(terminal):
    shell = terminal("--time", "60s", "--cpu", "60s")
    assert shell.ask("x = [1]") == ""
    shell.line("x.append(2); print('beg' + 'un', flush=True); import time; time.sleep(50)")
    shell.await_("begun")
    shell.type(CONTROL_C)
    assert "KeyboardInterrupt" in shell.await_(">>> ")
    assert shell.ask("x") == "[1, 2]\n"
    shell.type(CONTROL_D)
    assert shell.end() == 0


def test_control_c_that_is_not_heeded(terminal):
    shell = terminal("--time", "60s", "--cpu", "60s")
    assert shell.ask("x = 'stays'") == ""
    shell.line("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); x = 1; print('beg' + 'un'); "
               "sum(range(10 ** 12))")
    shell.await_("begun")
    shell.type(CONTROL_C)
    assert "session restored to before this run" in shell.await_(">>> ")
    assert shell.ask("x") == "'stays'\n"
    shell.type(CONTROL_D)
    assert shell.end() == 0


def test_history(terminal, place):
    shell = terminal()
    assert shell.ask("first = 12 * 12") == ""
    assert shell.ask("first") == "144\n"
    shell.type(CONTROL_D)
    assert shell.end() == 0
    path = place / "state/execpy/history"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert "first" in path.read_text() and os.listdir(path.parent) == ["history"]

    shell = terminal(env={"TERM": "xterm"})
    assert shell.ask("first = 3") == ""
    shell.type(UP + UP)
    shell.await_("first")
    shell.line()
    assert "144" not in shell.await_(">>> ")  # "first" of the shell before: its value is this one's
    assert "\n3\n" in shell.seen.replace("\r", "")
    shell.type(CONTROL_D)
    assert shell.end() == 0


def test_history_is_bounded(terminal, place, product):
    (place / "state/execpy").mkdir(parents=True)
    old = "_HiStOrY_V2_\n" + "".join(f"line_{n}\n" for n in range(5000))
    (place / "state/execpy/history").write_text(old)
    for path in (place / "state", place / "state/execpy", place / "state/execpy/history"):
        product.give(path)
    shell = terminal()
    assert shell.ask("7 * 7") == "49\n"
    shell.type(CONTROL_D)
    assert shell.end() == 0
    lines = (place / "state/execpy/history").read_text().splitlines()
    assert len(lines) <= 1001 and lines[-1].startswith("7"), lines[-1]


def test_colours_only_when_wanted(terminal):
    for env, coloured in (({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False),
                          ({"TERM": "dumb"}, False)):
        shell = terminal(env=env)
        shown = shell.ask("while True: break") + shell.ask("import ctypes; ctypes.string_at(0)")
        assert ("\x1b[31m" in shown) is coloured, shown
        shell.type(CONTROL_D)
        assert shell.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_ended_by_a_signal(terminal, number):
    """The terminal is left as it was, the history is kept, nothing stays behind."""
    shell = terminal()
    assert shell.ask("1 + 1") == "2\n"
    shell.process.send_signal(number)
    assert shell.end() == 128 + number
    shell = terminal("--time", "60s", "--cpu", "60s")
    shell.line("print('beg' + 'un', flush=True); import time; time.sleep(50)")
    shell.await_("begun")
    shell.process.send_signal(number)
    assert shell.end() == 128 + number


def test_what_is_typed_is_utf_8(terminal):
    for env in ({}, {"LANG": "C", "LC_ALL": "C"}):
        shell = terminal(env=env)
        assert shell.ask("print(len('äö€'), ascii('äö€'))") == "3 '\\xe4\\xf6\\u20ac'\n"
        shell.type(CONTROL_D)
        assert shell.end() == 0


def test_tab_indents(terminal):
    shell = terminal()
    shell.line("if True:")
    shell.await_("... ")
    shell.line("\tprint(6 * 7)")
    shell.await_("    print(6 * 7)")
    shell.await_("... ")
    assert shell.ask("") == "42\n"
    shell.type(CONTROL_D)
    assert shell.end() == 0
