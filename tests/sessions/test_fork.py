# SPDX-License-Identifier: Apache-2.0
"""Branches of a session: the same to begin with, and nothing to do with each other after."""
import time

import pytest

from conftest import PROCESSES, Refused

WRITE = "def write(name, text):\n    with open(name, 'w') as file: file.write(text)\n"


def both(session):
    """A session and one branch of it: what one does, the other must not see."""
    branch, = session.fork()
    return session, branch


# --- the same to begin with ----------------------------------------------------------


def test_variables_functions_and_modules(session):
    session.ok("import decimal, collections\nclass C:\n    def f(self): return self.x\n"
               "c = C()\nc.x = [1, {'a': 2}]\nlarge = ['%d' % n for n in range(100000)]\n"
               "def fails():\n    raise KeyError('here')")
    session.ok("y = c.f()\n_ = 5")
    for branch in session.fork(2):
        assert branch.value("c.f() is y, y, len(large), large[-1]") == \
            "(True, [1, {'a': 2}], 100000, '99999')"
        assert branch.value("isinstance(c, C), decimal.Decimal(1) / 4") == \
            "(True, Decimal('0.25'))"
        error = branch.run("fails()")["error"]
        assert error["type"] == "KeyError"
        assert [(f["file"], f["line"]) for f in error["frames"]][-1] == ("<run 1>", 8)


def test_numbers_of_runs_go_on(session):
    session.ok("x = 1")
    session.ok("'two'")
    branch, = session.fork()
    assert branch.opened["runs"] == 2
    result = branch.ok("Out[2], _")
    assert result["value"]["text/plain"] == "('two', 'two')"
    assert result["session"] == {"id": branch.id, "run": 3, "restored": False, "lost": [],
                                 "deleted": []}
    assert session.ok("1")["session"]["run"] == 3


def test_undefined_names_are_still_known(tool):
    session = tool.open(policy="strict")
    session.ok("known = 1")
    branch, = session.fork()
    assert branch.value("known") == "1"
    assert [f["rule"] for f in branch.run("unknown + known")["findings"]]


def test_files_everywhere(session):
    session.ok(WRITE + "import os\nos.makedirs('d/e')\nwrite('d/e/f', 'text')\nwrite('a', 'a')\n"
               "os.symlink('a', 'link')\nos.mkfifo('fifo')\nos.chmod('a', 0o640)\n"
               "os.utime('a', (1, 2))\nwrite('/tmp/t', 'tmp')\nwrite('/dev/shm/s', 'shm')\n"
               "hole = open('hole', 'wb')\nhole.seek(10 << 20)\nhole.write(b'x')\nhole.close()\n"
               "os.chmod('d', 0o500)")
    branch, = session.fork()
    result = branch.ok("import stat\ninfo = os.stat('a')\n(open('d/e/f').read(), os.readlink('link'),"
                       " stat.S_ISFIFO(os.stat('fifo').st_mode), oct(info.st_mode & 0o777),"
                       " info.st_mtime, open('/tmp/t').read(), open('/dev/shm/s').read(),"
                       " os.stat('hole').st_size, os.stat('hole').st_blocks < 100,"
                       " oct(os.stat('d').st_mode & 0o777))")
    assert result["value"]["text/plain"] == ("('text', 'a', True, '0o640', 2.0, 'tmp', 'shm', "
                                             "10485761, True, '0o500')")
    # They are no doing of the branch's first run.
    assert result["files"] == []


def test_what_a_branch_changes_is_told_of_its_run(session):
    session.ok(WRITE + "write('a', 'a')\nwrite('b', 'b')")
    branch, = session.fork()
    result = branch.ok("import os\nwrite('a', 'other')\nos.remove('b')\nwrite('c', 'c')")
    assert sorted(f["path"] for f in result["files"]) == ["a", "c"]
    assert result["session"]["deleted"] == ["b"]


def test_open_files_directory_and_environment(session):
    session.ok(WRITE + "import os, tempfile\nwrite('a', 'one two three')\nos.mkdir('d')\n"
               "f = open('a')\nf.read(4)\nappend = open('log', 'a')\nappend.write('1')\n"
               "append.flush()\nt = tempfile.TemporaryFile('w+')\nt.write('gone')\nt.flush()\n"
               "os.chdir('d')\nos.environ['MINE'] = '1'\nos.umask(0o027)\n"
               "null = open('/dev/null', 'w')\nfd = os.open('/workspace', os.O_RDONLY)")
    branch, = session.fork()
    assert branch.value("f.read(3), os.getcwd(), os.environ['MINE'], os.umask(0), t.seek(0), "
                        "t.read()") == "('two', '/workspace/d', '1', 23, 0, 'gone')"
    branch.ok("append.write('2')\nappend.flush()\nnull.write('x')\nnull.flush()")
    assert branch.value("open('/workspace/log').read(), sorted(os.listdir(fd))") == \
        "('12', ['a', 'd', 'log'])"


def test_signal_handlers(session):
    session.ok("import signal, os\nseen = []\n"
               "signal.signal(signal.SIGUSR1, lambda *a: seen.append(os.getpid()))\n"
               "signal.signal(signal.SIGUSR2, signal.SIG_IGN)")
    branch, = session.fork()
    assert branch.value("os.kill(os.getpid(), signal.SIGUSR2)\nos.kill(os.getpid(), signal.SIGUSR1)\n"
                        "seen == [os.getpid()]") == "True"
    assert session.value("seen") == "[]"


def test_modules_and_memory_that_came_later(session):
    """Libraries that the template did not have, large and returned memory, all kinds of rights."""
    session.ok("import sqlite3, mmap, ctypes\nsmall = [bytes(1000) for _ in range(20000)]\n"
               "large = bytearray(30 << 20)\nlarge[-1] = 7\ndel small\n"
               "locked = mmap.mmap(-1, 8192, mmap.MAP_PRIVATE)\nlocked.write(b'secret')\n"
               "place = ctypes.addressof(ctypes.c_char.from_buffer(locked))\n"
               "libc = ctypes.CDLL(None)\n"
               "assert libc.mprotect(ctypes.c_void_p(place), 4096, 0) == 0\n"
               "base = sqlite3.connect(':memory:')\nbase.execute('create table t as select 42 as n')")
    branch, = session.fork()
    assert branch.value("base.execute('select n from t').fetchall(), large[-1], len(large)") == \
        "([(42,)], 7, 31457280)"
    assert branch.value("assert libc.mprotect(ctypes.c_void_p(place), 4096, 3) == 0\nlocked[:6]") == \
        "b'secret'"
    assert branch.run("assert libc.mprotect(ctypes.c_void_p(place), 4096, 0) == 0\n"
                      "locked[0]")["status"] == "crashed"
    assert branch.value("base.execute('select n from t').fetchall()") == "[(42,)]"


def test_awaiting(session):
    session.ok("import asyncio\nawait asyncio.sleep(0)\nx = 1")
    branch, = session.fork()
    assert branch.value("await asyncio.sleep(0)\nx") == "1"


@pytest.mark.parametrize("template", ["pandas"])
def test_libraries(tool, template):
    session = tool.open(template=template, memory_bytes=600 << 20)
    session.ok("import pandas, numpy\ndf = pandas.DataFrame({'a': numpy.arange(100000) % 7, "
               "'b': numpy.linspace(0, 1, 100000)})\ntotal = df.b.sum()")
    for branch in session.fork(2):
        assert branch.value("bool(df.b.sum() == total), df.groupby('a').b.count().tolist()[:2]") == \
            "(True, [14286, 14286])"
        branch.ok("df['c'] = df.a * 2\ndf.to_csv('out.csv')")
    assert session.value("list(df.columns)") == "['a', 'b']"


# --- each its own ------------------------------------------------------------------------


def test_variables_and_files_are_independent(session):
    session.ok(WRITE + "x = [1]\nwrite('a', 'a')\nwrite('/tmp/t', 't')\nwrite('/dev/shm/s', 's')")
    branches = [session, *session.fork(3)]
    for n, branch in enumerate(branches):
        branch.ok(f"x.append({n})\nfor name in ('a', '/tmp/t', '/dev/shm/s', 'new{n}'): "
                  f"write(name, '{n}')")
    for n, branch in enumerate(branches):
        assert branch.value("import os\n(x, open('a').read(), open('/tmp/t').read(), "
                            "open('/dev/shm/s').read(), sorted(os.listdir()))") == \
            f"([1, {n}], '{n}', '{n}', '{n}', ['a', 'new{n}'])"


def test_offsets_locks_and_appending(session):
    session.ok("import fcntl, os\nf = open('a', 'w+')\nf.write('0123456789')\nf.flush()\nf.seek(0)\n"
               "fcntl.flock(f, fcntl.LOCK_EX)\ng = open('b', 'w')\nfcntl.lockf(g, fcntl.LOCK_EX)")
    session, branch = both(session)
    assert session.value("f.read(5)") == "'01234'"
    assert branch.value("f.read(3)") == "'012'"
    assert branch.value("os.lseek(f.fileno(), 0, os.SEEK_END)") == "10"
    assert session.value("f.read()") == "'56789'"
    # Neither waits for the other's lock.
    for one in (branch, session):
        one.ok("fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
               "fcntl.lockf(g, fcntl.LOCK_EX | fcntl.LOCK_NB)")
    branch.ok("f.truncate(0)")
    assert session.value("os.fstat(f.fileno()).st_size") == "10"


def test_pipes_and_socket_pairs_of_before(session):
    session.ok("import os, socket\nr, w = os.pipe()\nos.write(w, b'before')\n"
               "a, b = socket.socketpair()\na.setblocking(False)\nb.setblocking(False)")
    session, branch = both(session)
    assert branch.opened["lost"] == ""
    for attempt in ("os.write(w, b'branch')", "b.send(b'branch')"):
        assert branch.run(attempt)["error"]["type"] == "BrokenPipeError"
    assert branch.value("os.read(r, 10), a.recv(10)") == "(b'', b'')"
    # The session's own have lost nothing, and have no other end anywhere else.
    assert session.value("os.read(r, 10)") == "b'before'"
    assert session.value("b.send(b'mine'), a.recv(10)") == "(4, b'mine')"
    assert session.value("os.close(w)\nos.read(r, 10)") == "b''"


def test_shared_memory_and_memfds(session):
    session.ok("import fcntl, mmap, os\nfrom multiprocessing import shared_memory\n"
               "m = mmap.mmap(-1, 8192)\nm[:4] = b'0000'\n"
               "fd = os.memfd_create('mine', os.MFD_ALLOW_SEALING)\nos.write(fd, b'0000')\n"
               "again = os.dup(fd)\nmapped = mmap.mmap(fd, 4)\n"
               "shm = shared_memory.SharedMemory(create=True, size=4096)\nshm.buf[:4] = b'0000'\n"
               "open('f', 'wb').write(b'0000')\nfile = open('f', 'r+b')\nfm = mmap.mmap(file.fileno(), 4)")
    session, branch = both(session)
    look = ("bytes(m[:4]), os.pread(fd, 4, 0), os.pread(again, 4, 0), bytes(mapped[:4]), "
            "bytes(shm.buf[:4]), bytes(fm[:4]), open('f', 'rb').read()")
    assert branch.value(look) == session.value(look) == str((b"0000",) * 7)
    branch.ok("m[:4] = b'1111'\nos.pwrite(fd, b'1111', 0)\nshm.buf[:4] = b'1111'\nfm[:] = b'1111'")
    # Within the branch they still belong together.
    assert branch.value(look) == str((b"1111",) * 7)
    assert session.value(look) == str((b"0000",) * 7)
    session.ok("m[:4] = b'2222'\nmapped[:] = b'2222'\nshm.buf[:4] = b'2222'\nfm[:] = b'2222'")
    assert session.value(look) == str((b"2222",) * 7)
    assert branch.value(look) == str((b"1111",) * 7)
    branch.ok("os.ftruncate(again, 0)\nfcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)")
    assert session.value("os.fstat(fd).st_size, fcntl.fcntl(fd, fcntl.F_GET_SEALS)") == "(4, 0)"


def test_neither_sees_the_others_processes(session):
    session.ok(PROCESSES + "import signal, subprocess\nchild = subprocess.Popen(['/bin/sleep', '100'])\n"
               "mine = os.getpid()")
    session, branch = both(session)
    assert branch.value("os.getpid() != mine") == "True"
    assert branch.value("[pid for pid in pids() if look(pid, 'comm') == 'sleep\\n']") == "[]"
    names = "[os.readlink(f'/proc/self/ns/{n}') for n in ('user', 'pid', 'mnt', 'ipc', 'uts', 'cgroup')]"
    one, other = (eval(s.value(names)) for s in (session, branch))
    assert not set(one[:5]) & set(other[:5]), (one, other)
    branch.ok("for pid in range(2, 2000):\n    if pid not in (os.getpid(), os.getppid()):\n"
              "        try: os.kill(pid, 9)\n        except OSError: pass")
    assert session.value("child.poll() is None, os.getpid() == mine") == "(True, True)"


def test_random_states(session):
    session.ok("import random, os, uuid, tempfile\nrandom.seed(5)\nrandom.random()\nown = random.Random(3)\n"
               "[random.random() for _ in range(3)]")
    draw = "random.random(), os.urandom(8), str(uuid.uuid4())"
    branches = session.fork(3)
    drawn = {branch.value(draw) for branch in [session, *branches]}
    assert len(drawn) == 4
    # What code seeded itself is a variable as any other.
    assert len({branch.value("own.random()") for branch in branches}) == 1
    same = session.fork(2, same_random=True)
    drawn = [eval(branch.value(draw)) for branch in [session, *same]]
    assert len({d[0] for d in drawn}) == 1 and len({d[1] for d in drawn}) == 3, drawn
    assert len({d[2] for d in drawn}) == 3


@pytest.mark.parametrize("same", [False, True])
def test_random_states_of_numpy(tool, same):
    session = tool.open(template="numpy")
    session.ok("import numpy, random\nnumpy.random.seed(1)\nnumpy.random.random(3)\nrandom.seed(2)")
    drawn = {branch.value("float(numpy.random.random()), random.random()")
             for branch in [session, *session.fork(2, same_random=same)]}
    assert len(drawn) == (1 if same else 3)


@pytest.mark.parametrize("draws", [2, 3])
def test_a_number_of_numpy_that_is_left_over(serve, attach, draws):
    """randn() makes two at once: of an odd count one is left, for whoever draws next."""
    session = attach(serve({"numpy": (1, 1)})).open(template="numpy")
    session.ok(f"import numpy\nnumpy.random.seed(1)\nnumpy.random.randn({draws})")
    session.call("checkpoint", name="here")
    draw = "float(numpy.random.randn())"
    drawn = [branch.value(draw) for branch in [session, *session.fork(2)]]
    for _ in range(2):
        session.call("rollback", name="here")
        drawn.append(session.value(draw))
    assert len(set(drawn)) == 5, drawn
    session.ok(f"numpy.random.seed(1)\nnumpy.random.randn({draws})")
    assert len({branch.value(draw) for branch in [session, *session.fork(2, same_random=True)]}) == 1


def test_pids_and_cgroups_differ(session):
    session.ok("import os")
    branches = [session, *session.fork(4)]
    assert len({branch.value("os.getpid()") for branch in branches}) == 5


# --- the session goes on as if nothing was ---------------------------------------------------


def test_the_session_is_untouched(session):
    session.ok("import os\nx = 1\npid = os.getpid()")
    session.call("checkpoint", name="one")
    session.ok("x = 2\nopen('a', 'w').write('a')")
    before = session.call("info")
    branches = session.fork(2)
    after = session.call("info")
    assert after["checkpoints"] == ["one"] and after["runs"] == before["runs"] == 2
    assert after["memory_bytes"] < before["memory_bytes"] + (3 << 20)
    assert session.value("x, os.getpid() == pid") == "(2, True)"
    session.call("undo")
    assert session.value("x") == "2"
    session.call("undo")
    assert session.value("x") == "2"
    session.call("rollback", name="one")
    assert session.value("x, os.listdir()") == "(1, [])"
    # None of which the branches have, or notice.
    for branch in branches:
        assert branch.call("info")["checkpoints"] == []
        with pytest.raises(Refused, match="nothing to undo"):
            branch.call("undo")
        assert branch.value("x, os.listdir()") == "(2, ['a'])"


def test_undo_after_a_fork_returns_to_before_the_last_run(session):
    session.ok("x = 1")
    session.ok("x = 2")
    branch, = session.fork()
    session.call("undo")
    assert session.value("x") == "1" and branch.value("x") == "2"


def test_either_may_end(session, tool):
    session.ok("x = 1")
    branches = session.fork(2)
    branches[0].call("end")
    assert session.value("x") == branches[1].value("x") == "1"
    session.call("end")
    assert branches[1].value("x") == "1"
    assert len(tool.call("list")) == 1
    # And its branch can be branched, although what it came from is gone.
    leaf, = branches[1].fork()
    assert leaf.value("x") == "1"


# --- a branch is a session ----------------------------------------------------------------------


def test_crashes_checkpoints_and_undo_in_a_branch(session):
    session.ok("x = 1\nopen('a', 'w').write('a')")
    branch, = session.fork()
    result = branch.run("x = 2\nimport os\nos._exit(3)")
    assert result["status"] == "error" and result["session"]["restored"] is True, result
    assert result["session"]["lost"] == []
    assert branch.value("x, open('a').read()") == "(1, 'a')"
    branch.ok("x = 3\nopen('a', 'w').write('b')")
    branch.call("undo")
    assert branch.value("x, open('a').read()") == "(1, 'a')"
    branch.call("checkpoint", name="here")
    branch.ok("x = 4")
    branch.run("import ctypes\nctypes.string_at(0)")
    assert branch.value("x") == "4"
    branch.call("rollback", name="here")
    assert branch.value("x") == "1"
    assert branch.run("while True: pass", time_ms=300)["status"] == "timeout"
    assert branch.value("x") == "1"


def test_a_branch_of_a_branch(session):
    session.ok("trail = [0]\nopen('trail', 'w').write('0')")
    at = session
    for depth in range(1, 8):
        at, = at.fork()
        at.ok(f"trail.append({depth})\nopen('trail', 'a').write('{depth}')")
    assert at.value("trail, open('trail').read()") == f"({list(range(8))}, '01234567')"
    assert session.value("trail, open('trail').read()") == "([0], '0')"


def test_a_branch_after_a_crash(session):
    session.ok("x = 1\nimport os, socket\na, b = socket.socketpair()")
    session.run("os._exit(1)")
    branch, = session.fork()
    assert branch.value("x") == "1"


@pytest.mark.parametrize("pause", (0, 0.1))
def test_branches_beside_a_runner_that_waits(session, pause):
    """Behind a crash the checkpoint forks a runner ahead of need, maybe between the question
    whether it can be branched and the branches themselves."""
    session.ok("import os, random\nx = 1\nopen('a', 'w').write('a')")
    session.run("os._exit(7)")
    session.ok("x = [x, 'kept']")
    time.sleep(pause)
    branches = session.fork(3)
    numbers = set()
    for each in (session, *branches):
        assert each.value("x, open('a').read()") == "([1, 'kept'], 'a')"
        for n in range(3):  # which is returned from by one that waits, too
            result = each.run("x = 'lost'\nos._exit(7)")
            assert result["exit_code"] == 7 and result["session"]["restored"] is True
            assert result["session"]["lost"] == []
            time.sleep(pause)
            numbers.add(each.value("random.random()"))
            assert each.value("x") == "[1, 'kept']"
    assert len(numbers) == 12


def test_limits_are_the_sessions(tool):
    session = tool.open(memory_bytes=80 << 20, disk_bytes=4 << 20, time_ms=4000, processes=20)
    session.ok("import os\nhold = os.urandom(20 << 20)")
    branch, = session.fork()
    assert branch.opened["memory_limit"] == 80 << 20
    # What it took over is its own memory.
    assert 20 << 20 < branch.call("info")["memory_bytes"] < 60 << 20
    assert branch.run("more = bytearray(80 << 20)")["status"] == "memory_limit"
    assert branch.run("open('f', 'wb').write(bytes(6 << 20))")["status"] == "disk_limit"
    assert branch.ok("1")["limits"]["time_ms"] == 4000
    assert branch.value("len(hold) >> 20") == "20"
    assert session.value("len(hold) >> 20") == "20"


# --- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 129, 1 << 31])
def test_count(session, count):
    with pytest.raises(Refused, match="1 to 128") as refused:
        session.fork(count)
    assert refused.value.errno == "EINVAL"
    assert session.value("1") == "1"


def test_threads(session):
    session.ok("import threading\nstop = threading.Event()\nt = threading.Thread(target=stop.wait)\n"
               "t.start()\nx = 1")
    with pytest.raises(Refused, match="threads were running") as refused:
        session.fork()
    assert refused.value.errno == "EINVAL"
    session.ok("stop.set()\nt.join()")
    branch, = session.fork()
    assert branch.value("x") == "1"


@pytest.mark.parametrize("make", [
    "s = socket.socket(socket.AF_UNIX)\ns.bind('socket')\ns.listen()",
    "s = socket.socket()",
    "l = socket.socket(socket.AF_UNIX)\nl.bind('socket')\nl.listen()\n"
    "c = socket.socket(socket.AF_UNIX)\nc.connect('socket')\na, _ = l.accept()\nl.close()\n"
    "class s:\n    def close():\n        a.close()\n        c.close()"],
    ids=["listening", "without an address", "connected"])
def test_sockets(session, make):
    session.ok("import socket\n" + make)
    with pytest.raises(Refused, match="a socket is open") as refused:
        session.fork()
    assert refused.value.errno == "EINVAL"
    session.ok("s.close()\nx = 1")
    branch, = session.fork()
    assert branch.value("x") == "1"


def test_files_that_cannot_be_read(session):
    session.ok(WRITE + "import os\nwrite('mine', 'x')\nos.chmod('mine', 0)")
    with pytest.raises(Refused, match="mine cannot be read"):
        session.fork()
    session.ok("os.remove('mine')\n" + "os.makedirs('/'.join('d' * 40))")
    with pytest.raises(Refused, match="nested too deep"):
        session.fork(2)
    assert session.value("1") == "1"


def test_names_that_are_odd(session):
    session.ok("import os\nnames = [b'\\xff\\xfe', b'new\\nline', b'x' * 255, b' ', b'\\\\']\n"
               "for name in names:\n    open(name, 'wb').write(name)\n"
               "import mmap\nf = open(b'new\\nline', 'r+b')")
    branch, = session.fork()
    assert branch.value("sorted(os.listdir(b'.')) == sorted(names) and "
                        "all(open(n, 'rb').read() == n for n in names), f.read()") == \
        "(True, b'new\\nline')"


def test_no_such_session(session, tool):
    with pytest.raises(Refused) as refused:
        tool.call("fork", id="ses_nosuch", count=1)
    assert refused.value.errno == "ENOENT"
    session.call("end")
    with pytest.raises(Refused) as refused:
        session.fork()
    assert refused.value.errno == "EIDRM"


def test_a_branch_that_does_not_fit_its_memory_harms_nobody(tool):
    """All of them or none, and the session is as it was."""
    session = tool.open(memory_bytes=60 << 20, disk_bytes=60 << 20)
    session.ok("import os\nhold = os.urandom(25 << 20)")
    session.ok("open('f', 'wb').write(hold)\nx = 1")
    try:
        branches = session.fork(2)
    except Refused as refused:
        assert refused.errno == "EINVAL", refused
        branches = []
    assert len(tool.call("list")) == 1 + len(branches)
    assert session.value("len(hold) >> 20, x") == "(25, 1)"
