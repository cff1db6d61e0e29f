# SPDX-License-Identifier: Apache-2.0
"""Code that attacks by being branched, and branches in the life of a daemon."""
import threading
import time

import pytest

from conftest import PROCESSES, Refused, Session
from test_confined import LINK

# Whatever calls it is code's to decide; `bytes` are what it does then.
PATCH = ("import ctypes, mmap, platform\nlibc = ctypes.CDLL(None)\ndef patch(name, code):\n"
         "    place = ctypes.cast(getattr(libc, name), ctypes.c_void_p).value\n"
         "    page = place & -mmap.PAGESIZE\n"
         "    assert libc.mprotect(ctypes.c_void_p(page), 2 * mmap.PAGESIZE, 7) == 0\n"
         "    ctypes.memmove(place, code, len(code))\n"
         "x = 1\n")
FOREVER = "b'\\xeb\\xfe' if platform.machine() == 'x86_64' else b'\\0\\0\\0\\x14'"


def test_nothing_of_ours_is_open_in_either(session):
    session.ok(LINK)
    branch, = session.fork()
    for one in (session, branch):
        assert int(one.value("link()")) >= 3
        assert one.value("len([fd for fd in os.listdir('/proc/self/fd') if int(fd) > 2])") == "2"
    # Each link leads to another judge.
    links = "os.readlink(f'/proc/self/fd/{link()}')"
    assert session.value(links) != branch.value(links)


def test_the_judge_of_a_branch_cannot_be_reached(session):
    session.ok("import os, signal")
    branch, = session.fork()
    for attack in ("os.kill(os.getppid(), signal.SIGKILL)",
                   "open(f'/proc/{os.getppid()}/mem', 'r+b')",
                   "os.listdir(f'/proc/{os.getppid()}/fd')"):
        assert branch.run(attack)["error"]["type"] == "PermissionError", attack


def test_no_capability_and_every_filter(session):
    branch, = session.fork()
    look = ("[line.split() for line in open('/proc/self/status') if line.startswith("
            "('Cap', 'NoNewPrivs', 'Seccomp', 'Uid', 'Groups', 'NSpid'))]")
    one, other = (eval(s.value(look)) for s in (session, branch))
    assert one[:-1] != [] and [l for l in one if l[0] != "NSpid:"] == \
        [l for l in other if l[0] != "NSpid:"]
    assert all(int(l[1], 16) == 0 for l in other if l[0].startswith("Cap"))
    assert branch.run("import os, ctypes\nif ctypes.CDLL(None, use_errno=True).unshare(0x10000000):\n"
                      "    raise OSError(ctypes.get_errno(), '')")["error"]["type"] == "PermissionError"


def test_an_anomaly_in_a_branch(tool):
    session = tool.open(policy="standard")
    session.ok("x = 1")
    branch, = session.fork()
    result = branch.run("import ctypes\nc = ctypes.CDLL(None)\nfd = c.socket(2, 1, 0)\n"
                        "c.listen(fd, 1)\nx = 2")
    assert result["status"] == "anomaly" and result["anomaly"]["event"] == "socket.listen", result
    assert branch.value("x") == "1"


@pytest.mark.parametrize("name", ["getcontext", "getcwd", "write", "read", "setcontext", "fork"])
def test_a_checkpoint_that_breaks_while_it_is_told(session, tool, name):
    """Its memory is the code's: what becomes of the branch is, and of nothing else."""
    session.ok(PATCH)
    session.run(f"patch({name!r}, bytes(16))", time_ms=2000)
    try:
        for branch in session.fork(2):
            branch.run("1")
            branch.call("end")
    except Refused as refused:
        assert refused.errno in ("EINVAL", "EIDRM"), refused
    fresh = tool.open()
    assert fresh.value("1 + 1") == "2"
    fork, = fresh.fork()
    assert fork.value("2 + 2") == "4"
    assert {info["id"] for info in tool.call("list")} - {session.id} >= {fresh.id, fork.id}


@pytest.mark.full
@pytest.mark.parametrize("name", ["getcontext", "getcwd", "setcontext"])
def test_a_checkpoint_that_never_answers(session, tool, name):
    session.ok(PATCH)
    session.ok(f"patch({name!r}, {FOREVER})")
    with pytest.raises(Refused):
        session.fork()
    assert [info["id"] for info in tool.call("list")] in ([session.id], [])
    assert tool.open().value("1") == "1"


def test_killing_ones_own_checkpoint_first(session):
    session.ok("x = 1")
    session.ok(PROCESSES + "import time\nassert kill_checkpoints()\ntime.sleep(0.2)")
    branch, = session.fork()  # from the one that was made behind that run
    assert branch.value("x") == "1"


# --- in a daemon -------------------------------------------------------------------------


def test_as_many_as_there_may_be(serve, attach):
    tool = attach(serve({"bare": (1, 1)}, sessions=4))
    session = tool.open()
    session.ok("x = 1")
    with pytest.raises(Refused, match="of at most 4") as refused:
        session.fork(4)
    assert refused.value.errno == "EBUSY" and len(tool.call("list")) == 1
    assert len(session.fork(3)) == 3
    with pytest.raises(Refused, match="of at most 4"):
        session.fork()


def test_while_a_run_goes_on(serve, attach):
    daemon = serve({"bare": (1, 1)})
    tool, other = attach(daemon), attach(daemon)
    session = tool.open()
    thread = threading.Thread(target=session.ok, args=("import time\ntime.sleep(1)\nx = 1",))
    thread.start()
    time.sleep(0.4)
    with pytest.raises(Refused, match="a run goes on") as refused:
        Session(other, {"id": session.id}).fork()
    assert refused.value.errno == "EBUSY"
    thread.join()
    assert session.fork()[0].value("x") == "1"


def test_runs_wait_while_it_is_branched(serve, attach):
    daemon = serve({"bare": (1, 1)})
    tool, other = attach(daemon), attach(daemon)
    session = tool.open()
    session.ok("x = 0")
    branches = []

    def fork():
        while not branches:
            try:
                branches.extend(session.fork(6))
            except Refused as refused:  # a run was first
                assert refused.errno == "EBUSY"

    thread = threading.Thread(target=fork)
    thread.start()
    time.sleep(0.05)
    for _ in range(5):
        Session(other, {"id": session.id}).ok("x += 1")
    thread.join()
    assert session.value("x") == "5"
    # All are of one moment.
    assert len({branch.value("x") for branch in branches}) == 1 and len(branches) == 6


def test_templates_that_were_replaced(serve, attach):
    """A session is branched from the very template that it came from."""
    daemon = serve({"bare": (1, 1)}, rotate_after="1s")
    tool = attach(daemon)
    session = tool.open()
    session.ok("x = 1")
    time.sleep(4)
    branch, = session.fork()
    assert branch.value("x") == "1"
    session.call("end")
    time.sleep(2)
    leaf, = branch.fork()
    assert leaf.value("x") == "1"
    assert tool.open().value("1") == "1"


def test_a_client_that_goes_away(serve, attach):
    daemon = serve({"bare": (1, 1)})
    tool, other = attach(daemon), attach(daemon)
    session = tool.open()
    session.ok("x = 1")
    tool.process.stdin.write(b'{"call": "fork", "id": "%s", "count": 30}\n' % session.id.encode())
    tool.process.stdin.flush()
    time.sleep(0.1)
    tool.process.kill()
    seen = Session(other, {"id": session.id})
    for _ in range(100):
        if len(other.call("list")) == 1:
            break
        time.sleep(0.1)
    assert [info["id"] for info in other.call("list")] == [session.id]
    assert seen.value("x") == "1"
