# SPDX-License-Identifier: Apache-2.0
"""Many runs, at once and one after another; neighbours.

H09 a thousand runs and 64 at a time, H10 two at once, L03 and L04 cells side by side, R13 a busy
neighbour, P17 pids that are used again soon."""
import json
import os
import resource
import time

import pytest

from common import STARTED, named, wait_for, wait_for_output
from harness.host import need
from harness.product import SLOW, slowly


def finish(product, process, timeout=60):
    out, err = process.communicate(timeout=timeout * SLOW)
    result = json.loads(out)
    errors = [e.message for e in product.validator.iter_errors(result)]
    assert not errors, (errors, out)
    return result


def time_of_children():
    """Processor time, which other processes of this host have no share in."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.full)])
def test_H09_one_after_another(product, watch, place, count):
    """No run leaves anything, and the last takes no more processor time than the first."""
    seconds, ids = [], set()
    for number in range(count):
        before = time_of_children()
        done = product.run(f"print({number})", "--policy", "open", cwd=place)
        assert (done.result["status"], done.result["stdout"]) == ("ok", f"{number}\n"), str(done)
        seconds.append(time_of_children() - before)
        ids.add(done.result["id"])
    assert len(ids) == count, "ids of runs are not unique"
    tenth = count // 10
    early, late = sorted(seconds[:tenth])[tenth // 2], sorted(seconds[-tenth:])[tenth // 2]
    assert late < 2 * early + 0.05, f"the runs became slower: {early:.3f} s, then {late:.3f} s"
    watch.check()


@pytest.mark.parametrize("count", [8, pytest.param(64, marks=pytest.mark.full)])
def test_H09_at_the_same_time(product, watch, place, count):
    """Each gets its own result; limits and output do not mix."""
    code = "import os, time\nopen('mine', 'w').write(str({0}))\ntime.sleep(0.3)\n" \
           "print({0}, open('mine').read(), sorted(os.listdir('.')))"
    began = time.monotonic()
    processes = [product.start("run", "--json", "--policy", "open", "--time", "30s", "-c",
                               code.format(number), cwd=place) for number in range(count)]
    for number, process in enumerate(processes):
        result = finish(product, process)
        assert result["status"] == "ok", result
        assert result["stdout"].startswith(f"{number} {number} "), result["stdout"]
        assert "'mine'" in result["stdout"] and [f["path"] for f in result["files"]] == ["mine"]
    assert time.monotonic() - began < (10 + count) * SLOW
    watch.check()


def test_H10_two_with_different_ends(product, watch, place):
    """One ends by memory, one by time, one well: side by side each has its own status."""
    codes = {"memory_limit": "x = bytearray(b'x') * (400 << 20)",
             "timeout": "while True: pass", "ok": "import time\ntime.sleep(0.5)"}
    processes = {status: product.start("run", "--json", "--policy", "open", "--time",
                                       slowly(1000), "-c", code, cwd=place)
                 for status, code in codes.items()}
    for status, process in processes.items():
        assert finish(product, process)["status"] == status


def test_L03_neighbours_of_one_user(product, watch, place):
    """A run with many processes takes none from another one, and cannot be reached by it."""
    crowd = ("import os, time\nfor _ in range(55):\n    if os.fork() == 0:\n"
             "        time.sleep(20)\n        os._exit(0)\nprint('started', flush=True)\n"
             "time.sleep(3)\nprint('survived')\nos._exit(0)")
    first = product.start("run", "--policy", "open", "--time", "10s", "-c", crowd, cwd=place)
    try:
        wait_for_output(first, b"started\n")
        attack = (
            "import os\nreached = []\n"
            "for pid in [-1, *range(2, 40000)]:\n"
            "    if pid == os.getpid():\n        continue\n"
            "    try:\n        os.kill(pid, 0 if pid == -1 else 9)\n        reached.append(pid)\n"
            "    except OSError:\n        pass\n"
            "print('reached', reached)\n" + crowd.replace("started", "second").replace(
                "time.sleep(3)", "time.sleep(0.1)"))
        second = product.run(attack, "--policy", "open", cwd=place)
        assert second.result["status"] == "ok", str(second)
        assert second.result["stdout"].splitlines()[0] == "reached []", str(second)
        assert second.result["stdout"].endswith("second\nsurvived\n"), str(second)
        out, err = first.communicate(timeout=10 * SLOW)
        assert out == b"survived\n" and first.returncode == 0, (out, err, first.returncode)
    finally:
        if first.poll() is None:
            first.kill()
            first.communicate()


def test_L04_nothing_of_a_neighbour_is_seen(product, watch, place):
    """Files, shared memory, abstract sockets and loopback ports of one run are not in another."""
    share = f"""
import os, socket, time
kept, made = [], []
for name, make in (
        ("tmp", lambda: open("/tmp/{watch.mark}", "w")),
        ("shm", lambda: open("/dev/shm/{watch.mark}", "w")),
        ("workspace", lambda: open("{watch.mark}", "w")),
        ("abstract", lambda: listen(socket.AF_UNIX, "\\0{watch.mark}")),
        ("loopback", lambda: listen(socket.AF_INET, ("127.0.0.1", 34567)))):
    def listen(family, address):
        s = socket.socket(family)
        s.bind(address)
        s.listen()
        return s
    try:
        kept.append(make())
        made.append(name)
    except OSError:
        pass
print("made", *made, flush=True)
"""
    look = f"""
import os, socket
seen = []
for directory in ("/tmp", "/dev/shm", ".", "/"):
    seen += [name for name in os.listdir(directory) if "{watch.mark}" in name]
for family, address in ((socket.AF_UNIX, "\\0{watch.mark}"), (socket.AF_INET, ("127.0.0.1", 34567))):
    try:
        with socket.socket(family) as s:
            s.settimeout(1)
            s.connect(address)
        seen.append(address)
    except OSError:
        pass
print("seen", seen)
"""
    first = product.start("run", "--policy", "open", "--time", "10s", "-c",
                          share + "time.sleep(3)", cwd=place)
    try:
        made = wait_for_output(first, b"\n").split()
        assert {b"tmp", b"shm", b"workspace"} <= set(made), made
        second = product.run(look, "--policy", "open", cwd=place)
        assert second.result["stdout"] == "seen []\n", str(second)
    finally:
        first.kill()
        first.communicate()
    # The control: within one run the same look finds what was made.
    control = product.run(share + look, "--policy", "open", cwd=place)
    assert watch.mark in control.result["stdout"].splitlines()[-1], str(control)


def test_R13_busy_neighbour(product, watch, place):
    """64 busy threads and processes next door: a small run still answers soon."""
    crowd = (STARTED + "import os\ngate, keep = os.pipe()\nfor _ in range(60):\n"
             "    if os.fork() == 0:\n        os.close(keep)\n        os.read(gate, 1)\n        break\n"
             "else:\n    os.close(keep)\nwhile True: pass")
    busy = product.start("run", "--json", "--policy", "open", "--time", slowly(3000), "--cpu", "60s",
                         "-c", crowd, cwd=place)
    try:
        wait_for(lambda: len(named("started")) == 61, "not all neighbours are busy")
        seconds = sorted(product.run("print(1)", "--policy", "open", cwd=place).seconds
                         for _ in range(3))
        assert seconds[1] < 3 * SLOW, seconds
        assert finish(product, busy)["status"] == "timeout"
    finally:
        if busy.poll() is None:
            busy.kill()
            busy.communicate()


@pytest.mark.parametrize("count", [5, pytest.param(100, marks=pytest.mark.full)])
def test_P17_pids_are_used_again(product, watch, place, count):
    """With a small pid_max every pid comes back soon: only what was meant is killed."""
    need("root")
    need("own-pid-max")
    launcher = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c",
                'echo 600 >/proc/sys/kernel/pid_max && exec "$@"', "sh"]
    before = open("/proc/sys/kernel/pid_max").read()
    code = ("import os, sys\nfor _ in range(700):\n    p = os.fork()\n    if p == 0: os._exit(0)\n"
            "    os.waitpid(p, 0)\nif os.fork() == 0:\n    while True:\n"
            "        if os.fork(): os._exit(0)\nsys.exit(3)")
    for _ in range(count):
        done = product.parse(product.execute("run", "--json", "--policy", "open", "--time", "20s",
                                             "-c", code, cwd=place, launcher=launcher))
        assert (done.result["status"], done.result["exit_code"]) == ("error", 3), str(done)
    assert open("/proc/sys/kernel/pid_max").read() == before
