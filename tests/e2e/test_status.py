# SPDX-License-Identifier: Apache-2.0
"""Every status and every exit status, each with its cause; what was printed before is returned."""
import time

import pytest

from harness.product import GRACE_S, SLOW, slowly

OOM = "print('before', flush=True)\nx = bytearray(b'x') * (300 << 20)"
# name: (code, options, status, exit_code, signal, exit status of execpy)
ENDINGS = {
    "ok": ("pass", (), "ok", 0, None, 0),
    "exception": ("1 / 0", (), "error", 1, None, 1),
    "exit_137": ("import sys\nsys.exit(137)", (), "error", 137, None, 137),
    "os_exit": ("import os\nos._exit(9)", (), "error", 9, None, 9),
    "oom": (OOM, (), "memory_limit", None, 9, 137),
    "timeout": ("import time\ntime.sleep(60)", ("--time", slowly(500)), "timeout", None, 9, 124),
    "cpu": ("while True: pass", ("--cpu", "500ms", "--time", slowly(9000)), "cpu_limit", None, 9, 124),
    "segfault": ("import ctypes\nctypes.string_at(0)", (), "crashed", None, 11, 139),
    "kill_self": ("import os\nos.kill(os.getpid(), 9)", (), "crashed", None, 9, 137),
    "abort": ("import os\nos.abort()", (), "crashed", None, 6, 134),
    "sigterm": ("import os\nos.kill(os.getpid(), 15)", (), "crashed", None, 15, 143),
    "sigint": ("import os, signal\nsignal.signal(2, signal.SIG_DFL)\nos.kill(os.getpid(), 2)", (),
               "crashed", None, 2, 130),
    "output": ("while True: print('x' * 1000)", (), "output_limit", None, 9, 137),
    "disk": ("f = open('f', 'wb')\nwhile True:\n    f.write(b'x' * 100000)", (), "disk_limit", 1,
             None, 137),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_ending(run, plain, name):
    code, options, status, exit_code, number, exit_status = ENDINGS[name]
    done = run(code, *options)
    result = done.result
    assert result["status"] == status, str(done)[:3000]
    if status in ("ok", "error", "crashed"):
        assert (result["exit_code"], result["signal"]) == (exit_code, number), str(done)
    assert done.returncode == exit_status
    text = plain(*options, "-c", code)
    assert text.returncode == exit_status, str(text)[:3000]


def test_different_endings_are_different(run):
    """An OOM kill, a wall timeout, a CPU limit, a segfault, kill -9, exit(137), a failure of ours."""
    seen = {}
    for name in ("oom", "timeout", "cpu", "segfault", "kill_self", "exit_137"):
        code, options, *_ = ENDINGS[name]
        result = run(code, *options).result
        seen[name] = (result["status"], result["exit_code"], result["signal"])
    assert len(set(seen.values())) == len(seen), seen
    assert "internal_error" not in {status for status, _, _ in seen.values()}


def test_internal_error_is_ours(product, watch, place):
    """The seventh: ours, with one line, 125, and `retry`."""
    done = product.parse(product.execute(
        "run", "--json", "--policy", "open", "-c", "print(1)", cwd=place,
        launcher=["prlimit", "--nofile=12", "--"]))
    assert done.result["status"] == "internal_error", str(done)
    assert done.result["retry"] is True and done.returncode == 125
    text = product.execute("run", "--policy", "open", "-c", "print(1)", cwd=place,
                           launcher=["prlimit", "--nofile=12", "--"])
    assert text.returncode == 125 and text.out == "", str(text)
    lines = [line for line in text.err.strip().splitlines() if not line.startswith("hint:")]
    assert len(lines) == 1, str(text)


@pytest.mark.parametrize("given,seen", [(0, 0), (1, 1), (2, 2), (124, 124), (125, 125), (126, 126),
                                        (127, 127), (128, 128), (255, 255), (256, 0), (257, 1),
                                        (-1, 255), (1000, 232)])
def test_P13_exit_codes(run, given, seen):
    """As the kernel has it: modulo 256, and nothing of it is taken for something else."""
    result = run(f"import os\nos._exit({given})").result
    assert (result["exit_code"], result["signal"]) == (seen, None)
    assert result["status"] == ("ok" if seen == 0 else "error")


@pytest.mark.parametrize("statement,code,stderr", [
    ("raise SystemExit", 0, ""), ("raise SystemExit(None)", 0, ""), ("raise SystemExit(0)", 0, ""),
    ("raise SystemExit(3)", 3, ""), ("raise SystemExit('text')", 1, "text\n"),
    ("raise SystemExit((1, 2))", 1, "(1, 2)\n"), ("import sys; sys.exit([])", 1, "[]\n"),
    ("exit(4)", 4, ""), ("quit()", 0, ""), ("import sys; sys.exit(True)", 1, ""),
    ("import sys; sys.exit(2.5)", 1, "2.5\n"), ("import sys; sys.exit('ü')", 1, "ü\n"),
    ("import sys; sys.exit(-1)", 255, ""), ("import sys; sys.exit(256)", 0, ""),
])
def test_system_exit(run, statement, code, stderr):
    result = run(f"print('before')\n{statement}").result
    assert (result["exit_code"], result["stdout"], result["stderr"]) == (code, "before\n", stderr)
    assert result["status"] == ("ok" if code == 0 else "error")


def test_output_before_the_end_is_returned(run):
    """Also what Python still buffered, where the end lets it: a signal of ours does not."""
    for name in ("oom", "timeout", "cpu", "segfault", "kill_self"):
        code, options, status, *_ = ENDINGS[name]
        code = "print('before', flush=True)\nimport sys\nprint('err', file=sys.stderr)\n" + code
        result = run(code, *options).result
        assert result["status"] == status
        assert result["stdout"].startswith("before\n") and result["stderr"].startswith("err\n"), \
            (name, result["stdout"], result["stderr"])


def test_time_limits_are_kept(run):
    for limit, seconds in (("300ms", 0.3), ("1s", 1.0)):
        done = run("import time\ntime.sleep(30)", "--time", limit)
        assert done.result["status"] == "timeout"
        assert seconds <= done.seconds <= seconds + GRACE_S * SLOW
        assert seconds * 1000 <= done.result["usage"]["wall_ms"] <= (seconds + 0.5 * SLOW) * 1000


def test_usage_is_the_runs_own(run, product):
    # Without a cgroup all is sampled: what is to be seen stays until the warden has had its turn.
    pause = "" if product.mode == "root" else "\nimport time\ntime.sleep(0.5)"
    small = run("pass").result["usage"]
    assert small["memory_peak_bytes"] < 20 << 20, small
    assert small["cpu_ms"] < 1000 and small["processes_peak"] == 1, small
    large = run("x = bytearray(b'x') * (50 << 20)" + pause).result["usage"]
    assert 48 << 20 <= large["memory_peak_bytes"] <= 80 << 20, large
    busy = run("import time\nend = time.process_time() + 0.4\n"
               "while time.process_time() < end: pass" + pause).result["usage"]
    assert 350 <= busy["cpu_ms"] <= 1500 * SLOW, busy
    # All five are there until the last one is, and then for a while.
    many = run("import os, time\ngate, keep = os.pipe()\nfor _ in range(5):\n"
               "    if os.fork() == 0:\n        os.close(keep)\n        os.read(gate, 1)\n"
               "        os._exit(0)\ntime.sleep(0.3)\nos.close(keep)\n"
               "for _ in range(5): os.wait()").result
    assert many["usage"]["processes_peak"] in (6, 7), many["usage"]


def test_memory_of_imports_is_not_the_runs(run):
    """Heavy modules come from the template: the run's 100 MB and 5 s are its own."""
    result = run("import numpy, pandas\nx = bytearray(b'x') * (60 << 20)\nprint(pandas.__name__)").result
    assert (result["status"], result["stdout"]) == ("ok", "pandas\n"), result
    assert result["template"] != "bare"


def test_defaults(product, watch, place):
    words = product.words("run", "--json", "--policy", "open", "-c", "pass", exact=True)
    result = product.parse(product.execute(words=words, cwd=place)).result
    assert result["limits"] == {"time_ms": 5000, "cpu_ms": 5000, "memory_bytes": 104857600,
                                "processes": 64, "output_bytes": 1048576, "disk_bytes": 67108864}
    assert result["policy"] == "open" and result["session"] is None


def test_orphan_holds_stdout(run):
    began = time.monotonic()
    result = run("import os, time\nif os.fork() == 0:\n    time.sleep(20)\nprint('main')").result
    assert (result["status"], result["stdout"]) == ("ok", "main\n")
    assert time.monotonic() - began < 2.5 * SLOW


def test_main_closes_everything(run):
    """A code that closes 0, 1 and 2 ends as it says; the end is not taken from the pipes."""
    result = run("import os, time\nprint('x', flush=True)\nfor fd in range(3): os.close(fd)\n"
                 "time.sleep(0.3)\nos._exit(6)").result
    assert (result["status"], result["exit_code"], result["stdout"]) == ("error", 6, "x\n")
    assert result["usage"]["wall_ms"] >= 300
