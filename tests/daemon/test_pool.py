# SPDX-License-Identifier: Apache-2.0
"""The pool behind a daemon: rotation, idle templates, back-pressure, fair shares, rude clients."""
import contextlib
import ctypes
import json
import os
import re
import signal
import socket
import struct
import threading
import time
from pathlib import Path

import pytest

from harness import host
from harness.product import SLOW
from harness.wire import Peer, field, frame, limits, numbers, recorded

SLEEP = "import time; time.sleep({})"


def wait_for(condition, seconds=20, what="it"):
    deadline = time.monotonic() + seconds * SLOW
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come to pass"
        time.sleep(0.02)


def begin(daemon, seconds, *options):
    """Popen of a run that goes on for so long."""
    return daemon.start("run", "--json", "--policy", "open", "--time", "60s", *options, "-c",
                        SLEEP.format(seconds))


def end(process):
    out, _ = process.communicate(timeout=60 * SLOW)
    return json.loads(out)


def busy(result, *words):
    """A refusal for want of a cell: ours, worth another try, and clear."""
    assert result["status"] == "internal_error" and result["retry"] is True, result
    message = result["error"]["message"]
    assert message.startswith("busy: ") and all(word in message for word in words), message
    return True


# -- how it is chosen and filled ------------------------------------------------------------------

def test_the_smallest_template_that_covers(shared):
    for code, name in (("print(1)", "bare"), ("import json", "bare"), ("import numpy", "numpy"),
                       ("from numpy import linalg", "numpy"), ("import decimal, numpy", "numpy")):
        done = shared.run(code)
        assert done.result["status"] == "ok" and done.result["template"] == name, (code, str(done))
    done = shared.run("import sys; print('numpy' in sys.modules)", "--template", "numpy")
    assert done.result["stdout"] == "True\n"
    done = shared.run("import numpy; print(numpy.sum([1, 2]))", "--template", "bare")
    assert done.result["stdout"] == "3\n", "what a template lacks is imported in the cell"


def burst(daemon, acquire, count):
    """So many runs asked for at one moment; all end."""
    with Peer(daemon.socket) as peer:
        for number in range(1, count + 1):
            peer.say(acquire(number))
        ended = 0
        while ended < count:
            heard = peer.hear(60)
            assert heard is not None and heard[0] != numbers()["FAILED"], heard
            ended += numbers()["FIELD_ENDING"] in heard[2]
            peer.drop_fds()


def test_its_size_follows_the_demand(serve, product, place, full):
    """It grows when runs find no cell, never beyond its most, and shrinks when few are needed."""
    daemon = serve({"bare": (1, 5)}, runs=16)
    acquire = recorded(product, place, SLEEP.format(0.1))
    for _ in range(8):
        burst(daemon, acquire, 10)
        time.sleep(1.0)
        status = daemon.template("bare")
        assert status["parked"] <= 5
        if status["target"] == 5:
            break
    assert status["target"] == 5, status
    daemon.settled(5)
    if full:
        wait_for(lambda: daemon.template("bare")["target"] < 5, 120, "a smaller pool")
        daemon.settled(daemon.template("bare")["target"])


def test_no_bound_is_passed_by_a_burst(serve):
    """So many runs at one moment, and not more; nobody fails."""
    daemon = serve({"bare": (2, 4)}, runs=3)
    runs = [begin(daemon, 0.2) for _ in range(12)]
    most = 0
    while any(run.poll() is None for run in runs):
        most = max(most, daemon.status()["running"])
        time.sleep(0.02)
    assert [end(run)["status"] for run in runs] == ["ok"] * 12
    assert 2 <= most <= 3


def test_memory_is_bounded(serve):
    """At the bound no cell is parked beyond the least."""
    daemon = serve({"bare": (2, 200)}, memory="64M", runs=64, queue=1000, queue_wait="60s")
    for _ in range(4):
        runs = [begin(daemon, 0.05) for _ in range(24)]
        assert [end(run)["status"] for run in runs] == ["ok"] * 24
    time.sleep(2.0)
    status = daemon.status()
    assert status["memory_bound_bytes"] == 64 << 20
    assert status["memory_bytes"] < 72 << 20, status


# -- rotation and idleness --------------------------------------------------------------------------

HASHES = "print(hash('x'), hash('y'))"


def test_rotation_while_many_wait(serve):
    """A template that is replaced first makes the cells that it was asked for."""
    daemon = serve({"bare": (1, 1)}, rotate_cells=4, queue_wait="60s")
    wrong, seen, ended = [], set(), threading.Event()

    def load():
        while not ended.is_set():
            result = daemon.run(HASHES, timeout=60).result
            seen.add(result["stdout"])
            if result["status"] != "ok":
                wrong.append(result["error"]["message"])
                ended.set()

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        wait_for(lambda: len(seen) >= 8 or ended.is_set(), 60, "an eighth template")
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert not wrong, wrong
    daemon.settled(1)
    assert len(daemon.roles()["template"]) == 1, "the old ones are gone"


def test_rotation_by_cells_without_a_gap(serve):
    """Every few cells a fresh template, with a hash seed and a layout of its own; nobody waits."""
    daemon = serve({"bare": (3, 6)}, rotate_cells=10)
    seen, layouts, slow, ended = set(), set(), [], threading.Event()

    def load():
        while not ended.is_set():
            began = time.monotonic()
            done = daemon.run(HASHES + "\nprint(hex(id(len)))", timeout=60)
            assert done.result["status"] == "ok", str(done)
            hashes, layout = done.result["stdout"].splitlines()
            seen.add(hashes)
            layouts.add(layout)
            if time.monotonic() - began > 2.0 * SLOW:
                slow.append(str(done))

    threads = [threading.Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        wait_for(lambda: len(seen) >= 4, 60, "a fourth template")
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert not slow, slow[:2]
    assert len(layouts) >= 3, "each is loaded anew, and not forked"
    daemon.settled(daemon.template("bare")["target"])
    assert len(daemon.roles()["template"]) == 1, "the old ones are gone"


def test_siblings_share_a_hash_seed(shared):
    """That is what rotation is for (docs/security.md)."""
    assert len({shared.run(HASHES).result["stdout"] for _ in range(4)}) == 1


def test_rotation_by_time(serve):
    daemon = serve({"bare": (1, 1)}, rotate_after="1s")
    first = daemon.run(HASHES).result["stdout"]
    wait_for(lambda: daemon.run(HASHES).result["stdout"] != first, 20, "another template")
    assert daemon.lines == daemon.lines[:1], "nothing is said of it"


def test_a_rotation_that_fails_is_tried_again(serve):
    """The new template does not load: the old one serves on, and is replaced later."""
    until = time.time() + 8 * SLOW
    lab = {"modules": [], "pool": (1, 1),
           "warm_up": f"import time\nnow = time.time()\nif {until - 6 * SLOW} < now < {until}: 1 / 0\n"}
    daemon = serve({"lab": lab}, rotate_after="1s")
    if time.time() > until - 6 * SLOW:
        return  # it took too long to start: the fault would be past
    first = daemon.run(HASHES).result["stdout"]
    while time.time() < until:
        done = daemon.run(HASHES)
        assert done.result["status"] == "ok", str(done)
        time.sleep(0.1)
    wait_for(lambda: daemon.run(HASHES).result["stdout"] != first, 30, "another template")
    assert daemon.run("print(1)").result["status"] == "ok"


def test_an_idle_template_is_dropped_and_comes_back(serve):
    daemon = serve({"bare": (1, 2), "numpy": (1, 2)}, idle_after="1s")
    assert daemon.run("import numpy").result["template"] == "numpy"
    wait_for(lambda: not daemon.template("numpy")["loaded"], what="a dropped template")
    wait_for(lambda: len(daemon.roles()["template"]) <= 1, what="the end of its process")
    done = daemon.run("import numpy; print(numpy.sum([1, 2]))", timeout=60)
    assert (done.result["stdout"], done.result["template"]) == ("3\n", "numpy")
    assert daemon.template("numpy")["loaded"]
    wait_for(lambda: not daemon.roles()["template"], what="the end of both")
    assert daemon.run("print(1)").result["stdout"] == "1\n"
    assert daemon.lines == daemon.lines[:1]


# -- cgroups that serve again ---------------------------------------------------------------------

def place_of_cells(daemon):
    """Where its warden makes the directories of cells in the hierarchy for memory."""
    for line in Path(f"/proc/{daemon.roles()['cell'][0]}/cgroup").read_text().splitlines():
        _, controller, path = line.split(":", 2)
        if controller == "memory":
            return (host.cgroup_v1("memory") / path.lstrip("/")).parent
    raise AssertionError("a cell without a cgroup")


class MadeDirectories:
    """How many directories are made in a place, as inotify tells it."""

    IN_CREATE, IN_ISDIR = 0x100, 0x40000000

    def __init__(self, place):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert libc.inotify_add_watch(self.fd, os.fsencode(place), self.IN_CREATE) > 0

    def count(self):
        made = 0
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.fd, 1 << 16):
                at = 0
                while at < len(data):
                    _, mask, _, length = struct.unpack_from("iIII", data, at)
                    made += bool(mask & self.IN_ISDIR)
                    at += 16 + length
        return made

    def close(self):
        os.close(self.fd)


def test_cgroups_serve_again(serve, product, place):
    """Those of a run that leaves no trace in them do, and no others, while run follows run."""
    if not host.cgroup_v1("memory"):
        pytest.skip("cgroup v1 controllers: v2 makes one directory a cell, which is never used again")
    daemon = serve({"bare": (2, 2)}, runs=2, queue=12, queue_wait="60s")
    where = place_of_cells(daemon)
    made = MadeDirectories(where)

    def calm():
        return daemon.template("bare")["parked"] == 2 and len(list(where.glob("cell-*"))) == 2

    def made_by(runs, code, *options):
        """How many of the cells that so many runs, one right after the other, took had to make them."""
        wait_for(calm, what="two parked cells, and nothing else")
        made.count()
        burst(daemon, recorded(product, place, code, *options), runs)
        wait_for(calm, what="two parked cells, and nothing else")
        return made.count()

    assert made_by(12, "print(1)") < 12, "some were used again"
    bomb = "held = []\nwhile True: held.append(bytes(1 << 20))"
    assert made_by(4, bomb) == 4, "not those in which there was an OOM kill"
    family = "import os\nif os.fork(): os.wait()"
    assert made_by(4, family, "--policy", "open") == 4, "nor those of more than one process"
    assert daemon.run("print(1)").result["usage"]["processes_peak"] == 1
    made.close()


# -- back-pressure -----------------------------------------------------------------------------------

def test_a_full_queue(serve):
    daemon = serve({"bare": (1, 1)}, runs=1, queue=2, queue_wait="60s")
    runs = [begin(daemon, 1.5)]
    wait_for(lambda: daemon.status()["running"] == 1)
    for waiting in (1, 2):
        runs.append(begin(daemon, 0))
        wait_for(lambda: daemon.status()["waiting"] == waiting)
    began = time.monotonic()
    busy(daemon.run("print(1)").result, "2")
    assert time.monotonic() - began < 1.0 * SLOW, "refused at once"
    plain = daemon.execute("run", "-c", "print(1)")
    assert plain.returncode == 125 and plain.out == "" and "busy" in plain.err, str(plain)
    assert [end(run)["status"] for run in runs] == ["ok"] * 3
    assert daemon.status()["refused"] == 2
    assert daemon.run("print(1)").result["status"] == "ok"


def test_no_queue_at_all(serve):
    daemon = serve({"bare": (1, 1)}, runs=1, queue=0)
    run = begin(daemon, 1.0)
    wait_for(lambda: daemon.status()["running"] == 1)
    busy(daemon.run("print(1)").result)
    assert end(run)["status"] == "ok"


def test_waiting_has_a_deadline(serve):
    daemon = serve({"bare": (1, 1)}, runs=1, queue_wait="500ms")
    run = begin(daemon, 6 * SLOW)
    wait_for(lambda: daemon.status()["running"] == 1)
    began = time.monotonic()
    busy(daemon.run("print(1)").result, "500 ms")
    assert 0.45 < time.monotonic() - began < 0.5 + 1.2 + SLOW
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=10 * SLOW)
    assert daemon.run("print(1)").result["status"] == "ok"


def test_a_client_that_gives_up_leaves_the_queue(serve):
    daemon = serve({"bare": (1, 1)}, runs=1)
    run = begin(daemon, 2.0)
    wait_for(lambda: daemon.status()["running"] == 1)
    waiting = begin(daemon, 0)
    wait_for(lambda: daemon.status()["waiting"] == 1)
    waiting.send_signal(signal.SIGINT)
    assert end(waiting)["status"] == "cancelled"
    killed = begin(daemon, 0)
    wait_for(lambda: daemon.status()["waiting"] == 1)
    killed.kill()
    killed.communicate()
    wait_for(lambda: daemon.status()["waiting"] == 0)
    assert end(run)["status"] == "ok"


def test_too_many_clients(serve):
    daemon = serve({"bare": (1, 1)}, clients=3)
    with Peer(daemon.socket) as one, Peer(daemon.socket) as two, Peer(daemon.socket) as three:
        assert all(peer.hear()[0] == numbers()["READY"] for peer in (one, two, three))
        done = daemon.run("print(1)")
        assert done.result["status"] == "internal_error" and done.result["retry"] is True
    wait_for(lambda: daemon.run("print(1)").result["status"] == "ok", 5, "room for a client")


# -- fair shares -------------------------------------------------------------------------------------

def test_one_client_cannot_take_all(serve, product, place):
    """Fifty requests of one client; another's come in between, and not after them."""
    daemon = serve({"bare": (4, 8)}, runs=4, queue_wait="120s")
    acquire = recorded(product, place, SLEEP.format(0.1 + 0.1 * SLOW), "--time", "30s")
    with Peer(daemon.socket) as greedy:
        for number in range(1, 51):
            assert greedy.say(acquire(number))
        wait_for(lambda: daemon.status()["running"] >= 3, what="three of its runs")
        waits = []
        for _ in range(5):
            done = daemon.run("print(1)", timeout=60)
            assert done.result["status"] == "ok", str(done)
            waits.append(done.result["timing"]["wait_ms"])
        left = daemon.status()["waiting"]
        assert left > 10, f"all of its {50 - left} runs went first"
        assert sorted(waits)[2] < 200 * SLOW, waits
        ended = 0
        while ended < 50:
            heard = greedy.hear(60)
            assert heard is not None
            assert heard[0] != numbers()["FAILED"], heard
            ended += heard[0] == numbers()["ENDED"]
            greedy.drop_fds()


def test_a_lone_client_may_take_all(serve, product, place):
    daemon = serve({"bare": (2, 4)}, runs=3)
    acquire = recorded(product, place, SLEEP.format(2), "--time", "30s")
    with Peer(daemon.socket) as alone:
        for number in range(1, 6):
            assert alone.say(acquire(number))
        time.sleep(1.0)
        alone.say(frame("REPORT"))
        while True:
            kind, _, fields = alone.hear(20)
            alone.drop_fds()
            if kind == numbers()["REPORT"]:
                break
        assert int.from_bytes(fields[numbers()["FIELD_RUNS"]], "little") == 3


# -- rude clients ------------------------------------------------------------------------------------

def rude_messages():
    """What no engine says; each must end that connection and nothing else."""
    n = numbers()
    good = field("LIMITS", limits())
    yield "nothing", b""
    yield "one byte", b"\0"
    yield "a wrong magic", frame("ACQUIRE", good, id=1, magic=0)
    yield "a length beyond", frame("ACQUIRE", good, id=1, length=1 << 31)
    yield "two frames", frame("REPORT") + frame("REPORT")
    yield "a cut field", frame("ACQUIRE", good[:-3], id=1)
    yield "limits of nonsense", frame("ACQUIRE", ("LIMITS", b"\xff" * 48), id=1)
    yield "limits cut", frame("ACQUIRE", ("LIMITS", b"\0" * 7), id=1)
    for name in ("TEMPLATE", "SERVE", "DRAIN", "READY", "SERVING", "MAKE_INIT", "GO", "FORKED"):
        yield name, frame(name)
    yield "TEMPLATE in full", frame("TEMPLATE", ("NAME", "evil"), ("MODULE", "os"), ("CODE", "1"),
                                    ("POOL_MIN", 1), ("POOL_MAX", 2))
    yield "an unknown message", frame(9999)
    yield "the largest", frame(max(v for k, v in n.items() if not k.startswith("FIELD_")))


@pytest.mark.parametrize("name, message", list(rude_messages()), ids=lambda v: v if isinstance(v, str) else "")
def test_a_rude_message_ends_its_connection_alone(shared, watch, name, message):
    running = begin(shared, 0.5)
    wait_for(lambda: shared.status()["running"] == 1)
    with Peer(shared.socket) as peer:
        assert peer.hear()[0] == numbers()["READY"]
        peer.say(message)
        assert peer.hangs_up(10 * SLOW), f"{name}: the connection goes on"
    assert end(running)["status"] == "ok"
    assert shared.run("print(1)").result["stdout"] == "1\n"
    assert not list(shared.differences()) or shared.settled(3) == {
        k: v for k, v in shared.parked.items() if k != "warden's pid"}


def test_descriptors_that_nobody_asked_for(shared, watch):
    files = [os.open("/dev/null", os.O_RDONLY) for _ in range(16)]
    try:
        with Peer(shared.socket) as peer:
            peer.hear()
            for count in (1, 3, 16):
                peer.say(frame("REPORT"), files[:count])
            peer.hear_all(1.0)
    finally:
        for fd in files:
            os.close(fd)
    wait_for(lambda: not list(shared.differences()), what="closed descriptors")


def test_a_client_that_never_reads(shared, watch):
    """Its answers pile up until it is dropped; the others do not notice."""
    with Peer(shared.socket) as peer:
        sent = 0
        peer.socket.setblocking(False)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                if not peer.say(frame("REPORT")):
                    break
                sent += 1
            except BlockingIOError:
                time.sleep(0.01)
        assert shared.run("print(1)").result["status"] == "ok"
        assert sent < 100000
    wait_for(lambda: not list(shared.differences()), what="the old state")


def test_clients_come_and_go(shared, watch):
    for _ in range(200):
        with Peer(shared.socket):
            pass
    peers = [Peer(shared.socket) for _ in range(50)]
    for peer in peers:
        peer.close()
    assert shared.run("print(1)").result["status"] == "ok"
    wait_for(lambda: not list(shared.differences()), what="the old state")


def test_a_client_that_goes_while_it_runs(shared, product, watch, place):
    """Its run is killed, at each moment of its life, and nothing of it is left."""
    acquire = recorded(product, place, SLEEP.format(30), "--time", "60s")
    for delay in (0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.5):
        with Peer(shared.socket) as peer:
            peer.hear()
            for number in range(4):
                peer.say(acquire(number + 1))
            time.sleep(delay)
    wait_for(lambda: shared.status()["running"] == 0, what="the end of its runs")
    wait_for(lambda: not list(shared.differences()), what="the old state")


def test_a_run_is_its_clients_own(shared, product, watch, place):
    """Numbers of runs are a client's: nobody ends, starts or reads another's."""
    acquire = recorded(product, place, "import time; time.sleep(1); print('mine')", "--time", "30s")
    with Peer(shared.socket) as one, Peer(shared.socket) as two:
        one.hear(), two.hear()
        one.say(acquire(7))
        wait_for(lambda: shared.status()["running"] == 1)
        for message in (frame("KILL", ("REASON", 1), id=7), frame("START", ("WATCH", 0), id=7)):
            two.say(message)
        heard = []
        while not heard or heard[-1][0] != numbers()["ENDED"]:
            heard.append(one.hear(20))
            assert heard[-1] is not None
        assert int.from_bytes(heard[-1][2][numbers()["FIELD_ENDING"]], "little") == 1, "it exited"
        assert not any(h and h[1] == 7 for h in two.hear_all(0.2))


def test_an_acquire_twice(shared, product, watch, place):
    acquire = recorded(product, place, SLEEP.format(20), "--time", "30s")
    with Peer(shared.socket) as peer:
        peer.hear()
        peer.say(acquire(1))
        peer.say(acquire(1))
        assert peer.hangs_up(10)
    wait_for(lambda: not list(shared.differences()), what="the old state")


def test_names_of_templates_that_are_none(shared, watch):
    with Peer(shared.socket) as peer:
        peer.hear()
        for number, name in enumerate(["nosuch", "a" * 5000, "\x1b[31m", "../bare", "bare\0", "auto"]):
            peer.say(frame("ACQUIRE", ("LIMITS", limits()), ("NAME", name), id=number + 1))
            kind, id, fields = peer.hear()
            assert (kind, id) == (numbers()["FAILED"], number + 1), name
            text = fields[numbers()["FIELD_TEXT"]].decode()
            assert "there is auto, bare, numpy" in text and not re.search(r"[\x00-\x1f]", text)
    assert shared.lines == shared.lines[:1], "nothing of a client's is logged"


def test_who_speaks_to_a_daemon_is_who_the_kernel_says(shared, product, watch):
    """SO_PEERCRED of the listening socket is its daemon's: what a client trusts."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.connect(str(shared.socket))
        pid, uid, gid = (int.from_bytes(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                                        [i:i + 4], "little") for i in (0, 4, 8))
    assert (pid, uid, gid) == (shared.pid, *(2 * [os.geteuid() if product.uid is None
                                                  else product.uid]))
