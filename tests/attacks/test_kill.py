# SPDX-License-Identifier: Apache-2.0
"""Killing the product in the middle of a run, and asking it to stop: nothing stays alive.

P15 kill -9 of execpy and of execpy-warden, P16 what dead ones left is swept, P21 a run after a
killed one, P22 several kills, H08 SIGTERM, SIGINT, SIGHUP."""
import json
import os
import signal
import time

import pytest

from common import (STARTED, kill_all, named, parts_of, reasons, wait_for_output, wait_for_start,
                    wait_until_gone)
from harness import host
from harness.product import SLOW
from harness.witness import descendants

# A run with a grandchild in another session, that ignores all that can be ignored.
BUSY = """
import os, signal, sys, time
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            time.sleep(1)
    os._exit(0)
print("started", flush=True)
while True:
    time.sleep(1)
"""


@pytest.fixture
def busy(product, watch, place):
    """Popen of a run that has started and does not end by itself."""
    process = product.start("run", "--policy", "open", "--time", "90s", "-c", BUSY, cwd=place)
    try:
        wait_for_output(process, b"started\n")
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def execpy_of(process):
    """The pid of execpy itself (setpriv execs, so it is the process that was started)."""
    return process.pid


def test_P15_execpy_is_killed(busy, watch, product, place):
    kill_all([execpy_of(busy)])
    busy.wait()
    wait_until_gone(watch.processes)
    product.answers(place)


@pytest.mark.cold
def test_P15_warden_is_killed(busy, watch, product, place):
    wardens = named("execpy-warden")
    assert wardens, "there is no process named execpy-warden during a run"
    began = time.monotonic()
    kill_all(wardens)
    out, err = busy.communicate(timeout=5 * SLOW)
    assert time.monotonic() - began < 2 * SLOW
    assert busy.returncode == 125, (busy.returncode, err)
    assert len(reasons(err)) == 1, f"not one line: {err!r}"
    wait_until_gone(watch.processes)
    product.answers(place)


@pytest.mark.cold
def test_P15_warden_is_killed_json(product, watch, place):
    process = product.start("run", "--json", "--policy", "open", "--time", "90s", "-c",
                            STARTED + "import time\ntime.sleep(80)", cwd=place)
    wait_for_start()
    kill_all(named("execpy-warden"))
    out, err = process.communicate(timeout=5 * SLOW)
    result = json.loads(out)
    assert not list(product.validator.iter_errors(result))
    assert result["status"] == "internal_error" and result["retry"] is True
    wait_until_gone(watch.processes)
    product.answers(place)  # and sweeps


@pytest.mark.cold
def test_P15_everything_of_ours_is_killed_at_once(busy, watch, product, place):
    kill_all(pid for pid, _, _ in descendants() if pid not in watch.processes)
    busy.wait()
    wait_until_gone(watch.processes)
    # P16: what they could not clean up is swept by the next run, and only that.
    foreign = []
    for mount, version, _ in host.cgroup_mounts():
        directory = mount / "not-of-execpy-test"
        try:
            directory.mkdir()
            foreign.append(directory)
        except OSError:
            pass
    try:
        product.answers(place)
        product.answers(place)
        watch.check()
        for directory in foreign:
            assert directory.exists(), f"{directory} is not ours and was removed"
    finally:
        for directory in foreign:
            if directory.exists():
                directory.rmdir()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_H08_signal_cancels(busy, watch, number, product, place):
    os.kill(execpy_of(busy), number)
    began = time.monotonic()
    _, err = busy.communicate(timeout=5 * SLOW)
    assert time.monotonic() - began < 2 * SLOW
    assert busy.returncode in (128 + number, -number), (busy.returncode, err)
    assert b"Traceback" not in err
    wait_until_gone(watch.processes)
    product.answers(place)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_H08_cancelled_result(product, watch, place, number):
    process = product.start("run", "--json", "--policy", "open", "--time", "90s", "-c",
                            "print('before', flush=True)\n" + STARTED +
                            "import time\ntime.sleep(80)", cwd=place)
    wait_for_start()
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=5 * SLOW)
    result = json.loads(out)
    assert not list(product.validator.iter_errors(result)), out
    assert result["status"] == "cancelled"
    assert result["stdout"] == "before\n", "output from before the end is returned"
    assert process.returncode in (128 + number, -number)


def test_H08_ctrl_c_reaches_the_whole_group(busy, watch, product, place):
    """A terminal signals every process of the foreground group, not execpy alone."""
    os.killpg(busy.pid, signal.SIGINT)
    _, err = busy.communicate(timeout=5 * SLOW)
    assert busy.returncode in (130, -2), (busy.returncode, err)
    assert b"KeyboardInterrupt" not in err
    wait_until_gone(watch.processes)


def test_P22_several_kills(busy, watch, product, place):
    """Impatience does no harm: two Ctrl-C and a SIGTERM end it once."""
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
        kill_all([busy.pid], number)
        time.sleep(0.01)
    busy.communicate(timeout=5 * SLOW)
    assert busy.returncode in (130, 143, -2, -15)
    wait_until_gone(watch.processes)
    product.answers(place)


def test_P21_runs_after_killed_runs(run):
    """A cgroup that was killed once kills whatever enters it later: never used again."""
    for _ in range(3):
        done = run("while True: pass", "--time", "300ms")
        assert done.result["status"] == "timeout"
        done = run("print('next')")
        assert (done.result["status"], done.result["stdout"]) == ("ok", "next\n")


@pytest.mark.cold
@pytest.mark.parametrize("victim", ["janitor", "warden", "keeper", "init", "main"])
def test_P15_a_part_of_a_run_is_killed(product, watch, place, victim):
    """Killed from outside (an administrator, the OOM killer of the host), each alone: a result all
    the same, and nothing lives on."""
    process = product.start("run", "--json", "--policy", "open", "--time", "90s", "-c",
                            STARTED + "import time\ntime.sleep(80)", cwd=place)
    try:
        kill_all([parts_of(process.pid, wait_for_start())[victim]])
        out, err = process.communicate(timeout=5 * SLOW)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    result = json.loads(out)
    assert not list(product.validator.iter_errors(result)), out
    # The kernel ends the main process together with init, and which is seen first is chance.
    crashed, ours = ("crashed", 9, 137), ("internal_error", None, 125)
    expected = {"main": [crashed], "init": [crashed, ours]}.get(victim, [ours])
    assert (result["status"], result["signal"], process.returncode) in expected, (out, err)
    wait_until_gone(watch.processes)
    product.answers(place)  # and sweeps
