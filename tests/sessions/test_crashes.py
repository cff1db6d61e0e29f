# SPDX-License-Identifier: Apache-2.0
"""A run that does not end by itself, and what is there after it."""
import random
import time

import pytest

from conftest import PROCESSES, Refused

# What ends a run: the code, its status, and one thing of its result.
CRASHES = {
    "segfault": ("import ctypes\nctypes.string_at(0)", "crashed", ("signal", 11)),
    "abort": ("import os\nos.abort()", "crashed", ("signal", 6)),
    "kill": ("import os\nos.kill(os.getpid(), 9)", "crashed", ("signal", 9)),
    "exit": ("import os\nos._exit(1)", "error", ("exit_code", 1)),
    "loop": ("while True: pass", "timeout", ("signal", 9)),
    "one long call": ("sum(range(10 ** 12))", "timeout", ("signal", 9)),
    "no interrupt": ("while True:\n    try:\n        while True: pass\n    except BaseException: pass",
                     "timeout", ("signal", 9)),
    "memory": ("hold = []\nwhile True: hold.append(bytearray(1 << 20))", "memory_limit",
               ("signal", 9)),
    "memory of a child": ("import os\npid = os.fork()\nif not pid:\n    hold = []\n"
                          "    while True: hold.append(bytearray(1 << 20))\n"
                          "os.waitpid(pid, 0)\nimport time\ntime.sleep(1)",
                          "memory_limit", ("signal", 9)),
    "output": ("while True: print('x' * 1000)", "output_limit", ("signal", 9)),
    "fork bomb": ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
                  "timeout", ("signal", 9)),
    "stopped": ("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", "timeout",
                ("signal", 9)),
    "exec": ("import os\nos.execv('/bin/true', ['true'])", "ok", ("exit_code", 0)),
}


@pytest.mark.parametrize("name", CRASHES)
def test_variables_are_as_before_and_files_as_left(session, name):
    code, status, (key, value) = CRASHES[name]
    session.ok("state = {'a': [1, 2]}\nimport math")
    session.ok("state['b'] = math.pi")
    result = session.run("state['b'] = 'changed'\nnew = 1\nopen('left', 'w').write('here')\n" + code,
                         time_ms=700, cpu_ms=5000)
    assert (result["status"], result[key]) == (status, value), result
    assert result["session"]["restored"] is True and result["session"]["lost"] in \
        ([], ["1 child process"]) or name == "fork bomb", result
    assert [f["path"] for f in result["files"]] == ["left"]
    after = session.ok("state, 'new' in globals(), open('left').read()")
    assert after["value"]["text/plain"] == "({'a': [1, 2], 'b': 3.141592653589793}, False, 'here')"
    assert after["session"]["restored"] is False


def test_output_before_the_end_is_there(session):
    result = session.run("print('before')\nimport ctypes\nctypes.string_at(0)")
    assert result["stdout"] == "before\n" and result["status"] == "crashed"


def test_where_it_stood(session):
    session.ok("def spin():\n    while True:\n        pass")
    result = session.run("spin()", time_ms=400)
    assert [(f["file"], f["function"]) for f in result["error"]["frames"]] == \
        [("<run 2>", "<module>"), ("<run 1>", "spin")], result["error"]


def test_again_and_again(session):
    session.ok("x = 1")
    for _ in range(10):
        assert session.run("x = 2\nimport os\nos._exit(7)")["exit_code"] == 7
        assert session.value("x") == "1"


def test_one_that_waits_ahead_of_need(session):
    """Behind a crash a runner is forked before the next one. It is as the checkpoint was, unlike
    its siblings, and not what a later run made of the session."""
    session.ok("import os, random, time\nx = 1")
    seen = set()
    for n in range(4):
        result = session.run("x = 'lost'\nos._exit(7)")
        assert result["exit_code"] == 7 and result["session"]["restored"] is True
        assert result["session"]["lost"] == []
        seen.add(session.value("x, os.getpid(), random.random()"))
        assert session.value("x") == str(n + 1)
        session.ok("x += 1")
        time.sleep(0.05)  # it is forked in a pause
    assert len({text.split(", ")[1] for text in seen}) == 4
    assert len({text.split(", ")[2] for text in seen}) == 4


def test_the_one_that_waits_is_killed(session):
    """By code, as it may be: then a return takes the longer way."""
    # Of the session's processes the kernel would take none but runners first.
    session.ok(PROCESSES + "x = 1\ndef waiting():\n"
               "    return [pid for pid in pids() if pid not in (1, os.getpid()) and "
               "look(pid, 'oom_score_adj') == '1000\\n']")
    assert session.value("waiting()") == "[]"
    for _ in range(3):
        session.run("os._exit(7)")
        until = time.monotonic() + 60
        while session.value("[pid for pid in waiting() if kill(pid)]") == "[]":
            assert time.monotonic() < until
            time.sleep(0.05)
        assert session.run("x = 2\nos._exit(7)")["session"]["restored"] is True
        assert session.value("x") == "1"


def test_children_of_a_run_that_crashes_beside_one_that_waits(session):
    session.ok(PROCESSES + "import subprocess")
    for _ in range(3):
        result = session.run("subprocess.Popen(['sleep', '100'])\nos._exit(7)")
        assert result["session"]["lost"] == ["1 child process"]
        time.sleep(0.05)
        assert session.value("[look(pid, 'comm') for pid in pids()].count('sleep\\n')") == "0"


HIDDEN = """
import os, shutil, subprocess, time
shutil.copy('/bin/sh', 'hidden')
os.chmod('hidden', 0o111)
with open('code', 'w') as file: file.write(CODE)
child = subprocess.Popen(['./hidden', 'code'])
while not (os.path.exists('alive') and os.path.exists('all')): time.sleep(0.01)
assert not os.path.exists(f'/proc/{child.pid}')
os._exit(7)
"""


@pytest.mark.parametrize("code, count", [
    ("echo > all\nwhile :; do echo > alive; done", 1),
    ("echo 'while :; do echo > alive; done' > inner\n"
     "./hidden inner & ./hidden inner & sleep 1000 & echo > all\nwait", 4)])
def test_children_that_proc_does_not_show(session, code, count):
    """A program that may be run and not be read is nothing that its own kind may look into."""
    session.ok("x = 1")
    lost = f"{count} child process{'es' if count > 1 else ''}"
    result = session.run(f"CODE = {code!r}\n" + HIDDEN)
    assert result["exit_code"] == 7, result
    assert session.value("import os, time\nos.remove('alive')\ntime.sleep(0.3)\nos.path.exists('alive')") == \
        "False"
    assert session.value("x") == "1" and result["session"]["lost"] == [lost], result


@pytest.mark.parametrize("call", ("checkpoint", "drop", "rollback", "undo"))
def test_a_runner_that_dies_while_something_is_asked(session, call):
    """It is asked while the judge waits for a checkpoint, which the runner does not live to make."""
    session.ok("import os, signal, time\nos.register_at_fork(before=lambda: time.sleep(slow))\n"
               "slow = 0\nx = 2")
    session.ok("slow = 5\nsignal.setitimer(signal.ITIMER_REAL, 0.3)")
    if call == "undo":
        session.call("undo")
    else:
        with pytest.raises(Refused, match="no checkpoint"):
            session.call(call, name="typo")
    assert session.value("x, slow") == "(2, 0)"
    assert session.call("info")["ended"] == ""


@pytest.mark.parametrize("call", ("checkpoint", "rollback", "undo", "fork"))
def test_what_is_asked_while_it_returns_by_itself_waits(session, call):
    """Its process ends between two runs, at any moment before and after the question."""
    session.ok("import signal, subprocess\nx = 1")
    session.call("checkpoint", name="before")
    code = ("p = [subprocess.Popen(['sleep', '100']) for _ in range(10)]\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.02)")
    named = {} if call == "undo" else {"name": "before"}
    for turn in range(1, 13):
        session.run(code)
        time.sleep(0.012 + 0.002 * turn)
        if call == "fork":
            try:
                for branch in session.fork():
                    assert branch.value("x") == "1"
                    branch.call("end")
            except Refused as refused:  # it had been begun
                assert str(refused) == "EINVAL: its process ended meanwhile"
        else:
            session.call(call, **named)
        session.run("1")  # its process may end only now
        assert session.value("x") == "1"


@pytest.mark.parametrize("deaths", (2, 1000))
def test_a_runner_that_dies_of_itself(session, deaths):
    """Each runner that is forked arms a timer, without a run: some deaths are survived, but not
    endlessly many, and then the next run is told at once."""
    session.ok("import os, signal\nwith open('left', 'w') as f: f.write('')\n"
               "def hook():\n"
               "    with open('left', 'a+') as f:\n"
               "        f.write('x')\n"
               f"        if f.tell() <= {deaths}: signal.setitimer(signal.ITIMER_REAL, 0.02)\n"
               "os.register_at_fork(after_in_child=hook)")
    assert session.run("os._exit(3)")["exit_code"] == 3
    until = time.monotonic() + 60
    if deaths == 2:
        # It lives when it is the same from run to run. The hook may have been called
        # more often: it is, too, in a runner that waits ahead of need.
        before, now = None, ""
        while now != before:
            assert time.monotonic() < until
            time.sleep(0.1)
            before, now = now, (session.run("os.getpid()")["value"] or {}).get("text/plain")
        assert session.value("open('left').read().count('x') >= 3") == "True"
        return
    while not session.call("info")["ended"]:
        assert time.monotonic() < until
        time.sleep(0.1)
    with pytest.raises(Refused) as refused:
        session.run("1")
    assert refused.value.errno == "EIDRM" and "ended again and again" in refused.value.text


def test_in_the_first_run(session):
    assert session.run("import os\nos._exit(4)")["exit_code"] == 4
    assert session.value("1 + 1") == "2"


def test_crashes_one_after_another(session):
    session.ok("x = 1")
    for code in ("import os\nos._exit(7)", "import ctypes\nctypes.string_at(0)"):
        session.run(code)
        session.run(code)
    assert session.value("x") == "1"


def test_what_is_lost_is_told(session):
    session.ok("import subprocess\nchild = subprocess.Popen(['sleep', '100'])\nx = 1")
    session.ok("import socket\none, other = socket.socketpair()\nimport os\nends = os.pipe()")
    result = session.run("os._exit(1)")
    assert result["session"]["lost"] == ["4 open pipes, sockets or the like",
                                         "1 child process"], result["session"]
    assert session.value("x, one.recv(1)") == "(1, b'')"
    result = session.run("one.send(b'x')")
    assert result["error"]["type"] == "BrokenPipeError", result


def test_while_threads_run_there_is_no_checkpoint(session):
    session.ok("x = 1")
    session.ok("import threading, time\n"
               "threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\ny = 2")
    session.ok("z = 3")
    result = session.run("import os\nos._exit(1)")
    assert result["session"]["lost"] == ["what was done since run 1: threads were running"], result
    assert session.value("x, 'y' in globals(), 'z' in globals()") == "(1, False, False)"


def test_between_two_runs(session):
    session.ok("x = 1")
    session.ok("import os, threading\nthreading.Timer(0.1, os._exit, (1,)).start()\ny = 2")
    import time
    time.sleep(0.6)
    result = session.ok("x, 'y' in globals()")
    assert result["value"]["text/plain"] == "(1, False)"
    assert result["session"]["restored"] is True and result["session"]["lost"] == \
        ["what was done since run 1: threads were running"]


def test_hooks_that_hang(session):
    """Code can hang the fork of a checkpoint, and then pays for it with its own time."""
    session.ok("x = 1")
    session.ok("import os, time\nos.register_at_fork(before=lambda: time.sleep(10 ** 6))\ny = 2")
    result = session.run("z = 3", time_ms=500)
    assert result["status"] == "timeout" and result["session"]["restored"] is True, result
    assert result["session"]["lost"] == ["what was done since run 1: it took too long"], result
    assert session.value("x, 'y' in globals()") == "(1, False)"


def test_just_before_a_run(session, place, product):
    """Whatever dies between two runs, the code of the next is what runs."""
    (place / "in").write_text("new")
    product.give(place / "in")
    for number in range(12):
        session.ok(f"import os, threading\n'old {number}'\n"
                   f"threading.Timer({number / 2000}, os._exit, (0,)).start()\n'old'")
        more = {"put": "in", "put_from": place / "in"} if number % 2 else {}
        result = session.run(f"'new {number}'", **more)
        if result["status"] == "ok" and result["exit_code"] == 0 and result["value"] is None:
            assert result["session"]["restored"], result  # it had begun: its own end
        else:
            assert result["value"] == {"text/plain": f"'new {number}'"}, result
        session.ok("1")


def test_a_runner_that_always_ends(session):
    """Its hook ends each process that returns: the session does not go on for ever."""
    session.ok("import os\nos.register_at_fork(after_in_child=lambda: os._exit(1))\nx = 1")
    result = session.run("os._exit(2)")
    assert result["status"] == "internal_error", result
    with pytest.raises(Exception, match="EIDRM"):
        session.run("1")


def test_an_input_that_cannot_be_put(session, place, product):
    session.ok("import os, threading, time\nos.mkdir('dir')\nx = 42\n"
               "threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()")
    (place / "in").write_text("new")
    product.give(place / "in")
    result = session.run("x", put="dir", put_from=place / "in")
    assert result["status"] == "internal_error" and "dir" in result["error"]["message"], result
    assert session.value("x") == "42"


def test_open_files_have_their_offsets(session):
    session.ok("out = open('log', 'w')\nout.write('one\\n')\nout.flush()\n"
               "reader = open('/etc/passwd')\nfirst = reader.read(4)")
    session.run("reader.read()\nout.write('two\\n')\nout.flush()\nimport os\nos._exit(1)")
    session.ok("out.write('three\\n')\nout.flush()")
    assert session.value("reader.tell() == 4 or len(reader.read()) > 0, open('log').read()") == \
        "(True, 'one\\nthree\\n')"


def test_shared_memory_is_as_it_was(session):
    session.ok("import mmap\nm = mmap.mmap(-1, 4096)\nm[:3] = b'old'")
    session.run("m[:3] = b'new'\nimport os\nos._exit(1)")
    assert session.value("bytes(m[:3])") == "b'old'"


def test_random_numbers_are_not_repeated(session):
    session.ok("import random, uuid, os, tempfile, ssl, secrets, numpy\nos.getpid()",
               time_ms=30000, cpu_ms=30000)
    seen = [set() for _ in range(7)]
    for _ in range(5):
        result = session.run("print(random.random(), uuid.uuid4(), uuid.uuid1(), tempfile.mktemp(),\n"
                             "      ssl.RAND_bytes(8).hex(), secrets.token_hex(8),\n"
                             "      numpy.random.random())\nos._exit(1)")
        for found, word in zip(seen, result["stdout"].split()):
            found.add(word)
    assert [len(found) for found in seen] == [5] * 7, seen


def test_an_interrupt_that_is_heeded_loses_nothing(session):
    session.ok("steps = 0")
    result = session.run("import time\ntry:\n    while True:\n        steps += 1\n"
                         "        time.sleep(0.01)\nexcept KeyboardInterrupt:\n    caught = True",
                         cancel_ms=300, time_ms=20000)
    assert result["status"] == "cancelled" and result["session"]["restored"] is False, result
    assert session.value("caught, steps > 5") == "(True, True)"


def test_an_interrupt_in_plain_code(session):
    session.ok("x = 1")
    result = session.run("import time\ny = 2\ntime.sleep(100)", cancel_ms=300, time_ms=200000)
    assert result["status"] == "cancelled" and result["session"]["restored"] is False, result
    assert session.value("x, y") == "(1, 2)"


def test_an_interrupt_that_is_not_heeded(session):
    session.ok("x = 1")
    result = session.run("y = 2\nsum(range(10 ** 12))", cancel_ms=300, time_ms=200000,
                         cpu_ms=200000)
    assert result["status"] == "cancelled" and result["session"]["restored"] is True, result
    assert session.value("x, 'y' in globals()") == "(1, False)"


def test_the_script_of_twelve_runs(tool):
    """Load a CSV, transform, and everything that ends a run, each followed by one that still sees
    the data."""
    session = tool.open(template="pandas", memory_bytes=300 << 20)
    session.ok("import pandas as pd\n"
               "open('d.csv', 'w').write('k,v\\n' + '\\n'.join(f'{i % 3},{i}' for i in range(90)))\n"
               "frame = pd.read_csv('d.csv')", time_ms=30000, cpu_ms=30000)
    session.ok("frame['w'] = frame.v * 2\nsums = frame.groupby('k').w.sum()", time_ms=30000,
               cpu_ms=30000)
    for name in ("segfault", "loop", "memory", "exit", "fork bomb"):
        code, status, (key, value) = CRASHES[name]
        result = session.run("frame = sums = None\n" + code, time_ms=3000, cpu_ms=30000)
        assert (result["status"], result[key]) == (status, value), result
        assert result["session"]["restored"] is True
        assert session.ok("len(frame), list(sums)", time_ms=30000, cpu_ms=30000)["value"][
            "text/plain"] == "(90, [2610, 2670, 2730])"


@pytest.mark.full
def test_two_hundred_sessions(tool):
    """Each with 50 runs, of which some crash: no variable is lost that was set before."""
    chance = random.Random(5)
    crashes = ["import os\nos._exit(1)", "import ctypes\nctypes.string_at(0)",
               "import os\nos.kill(os.getpid(), 9)", "1 / 0"]
    for _ in range(200):
        session = tool.open()
        session.ok("seen = []")
        expected = []
        for n in range(50):
            if chance.random() < 0.3:
                session.run(f"later = {n}\n" + chance.choice(crashes))
            else:
                session.ok(f"seen.append({n})")
                expected.append(n)
        assert session.value("seen") == str(expected)
        session.call("end")
