# SPDX-License-Identifier: Apache-2.0
"""Checkpoints with a name, rollback, undo."""
import pytest

from conftest import Refused


def write(name, text):
    return f"open({name!r}, 'w').write({text!r})"


def test_undo(session):
    session.ok("x = 1\n" + write("a", "one"))
    session.ok("x = 2\ny = 3\n" + write("a", "two") + "\n" + write("b", "new"))
    info = session.call("undo")
    assert info["lost"] == ""
    assert session.value("x, 'y' in globals(), open('a').read()") == "(1, False, 'one')"
    result = session.ok("import os\nsorted(os.listdir())")
    assert result["value"]["text/plain"] == "['a']" and result["session"]["restored"] is False
    assert result["files"] == [] and result["session"]["deleted"] == []


def test_undo_is_once(session):
    session.ok("x = 1")
    session.ok("x = 2")
    session.call("undo")
    with pytest.raises(Refused, match="nothing to undo"):
        session.call("undo")
    assert session.value("x") == "1"
    session.ok("x = 5")
    session.call("undo")
    assert session.value("x") == "1"


def test_undo_of_the_first_run(session):
    with pytest.raises(Refused, match="nothing to undo"):
        session.call("undo")
    session.ok("x = 1")
    session.call("undo")
    assert session.run("x")["error"]["type"] == "NameError"


def test_named(session):
    session.ok("x = 'one'\n" + write("a", "one"))
    assert session.call("checkpoint", name="first")["checkpoints"] == ["first"]
    session.ok("x = 'two'\nimport os\nos.remove('a')\nos.mkdir('d')\n" + write("d/b", "two"))
    assert sorted(session.call("checkpoint", name="zwei ü")["checkpoints"]) == ["first", "zwei ü"]
    session.ok("del x")
    for name, expected in (("first", "('one', ['a'])"), ("zwei ü", "('two', ['b', 'd'])"),
                           ("first", "('one', ['a'])")):
        session.call("rollback", name=name)
        assert session.value("import os\nx, sorted(n for _, d, f in os.walk('.') for n in d + f)") \
            == expected


def test_without_a_name(session):
    session.ok("x = 1")
    session.ok("x = 2")
    for call in ("checkpoint", "drop", "rollback"):
        with pytest.raises(Refused, match="name"):
            session.call(call)
    assert session.value("x") == "2"


def test_it_survives_crashes_and_runs(session):
    session.ok("x = 1")
    session.call("checkpoint", name="here")
    for _ in range(3):
        session.ok("x += 1")
        session.run("import os\nos._exit(1)")
    assert session.value("x") == "4"
    session.call("rollback", name="here")
    assert session.value("x") == "1"
    session.run("x = 9\nimport os\nos._exit(1)")
    assert session.value("x") == "1"


def test_a_name_is_taken_over(session):
    session.ok("x = 1")
    session.call("checkpoint", name="here")
    session.ok("x = 2")
    assert session.call("checkpoint", name="here")["checkpoints"] == ["here"]
    session.ok("x = 3")
    session.call("rollback", name="here")
    assert session.value("x") == "2"


def test_bounds_and_names(session):
    for n in range(8):
        session.ok(f"x = {n}")
        session.call("checkpoint", name=f"c{n}")
    session.ok("x = 8")
    with pytest.raises(Refused, match="8 checkpoints are kept already"):
        session.call("checkpoint", name="one more")
    assert len(session.call("drop", name="c0")["checkpoints"]) == 7
    session.call("checkpoint", name="one more")
    with pytest.raises(Refused, match="no checkpoint of this name"):
        session.call("rollback", name="c0")
    with pytest.raises(Refused, match="no checkpoint of this name"):
        session.call("drop", name="c0")
    for name in ("", "x" * 64):
        with pytest.raises(Refused, match="1 to 63 bytes"):
            session.call("checkpoint", name=name)
    assert session.value("x") == "8"


def test_with_all_names_taken_runs_are_still_covered(session):
    for n in range(8):
        session.ok(f"x = {n}")
        session.call("checkpoint", name=f"c{n}")
    for n in range(8, 12):
        session.ok(f"x = {n}")
        result = session.run("import os\nos._exit(1)")
        assert result["session"]["lost"] == [], result
        assert session.value("x") == str(n)
    session.call("undo")
    assert session.value("x") == "11"


def test_what_is_in_the_workspace_comes_back_whole(session):
    session.ok("import os\nos.makedirs('d/e')\nos.symlink('nowhere', 'link')\n"
               "open('d/e/run', 'wb').write(bytes(range(256)) * 100)\nos.chmod('d/e/run', 0o755)\n"
               "os.utime('d/e/run', (5, 7))\nos.chmod('d/e', 0o500)")
    session.call("checkpoint", name="here")
    session.ok("import shutil\nos.chmod('d/e', 0o700)\nshutil.rmtree('d')\nos.remove('link')\n"
               "os.mkdir('link')\nopen('link/x', 'w').close()\nos.chmod('link', 0)\n"
               "os.mkfifo('fifo')\nopen('d', 'w').close()")
    session.call("rollback", name="here")
    assert session.value(
        "s = os.stat('d/e/run')\n(sorted(os.listdir('.')), os.readlink('link'), oct(s.st_mode), "
        "s.st_mtime, s.st_size, oct(os.stat('d/e').st_mode), "
        "open('d/e/run', 'rb').read() == bytes(range(256)) * 100)") == \
        "(['d', 'link'], 'nowhere', '0o100755', 7.0, 25600, '0o40500', True)"


def test_a_large_workspace_is_kept_by_name_and_not_for_undo(session):
    session.ok("open('big', 'wb').write(b'x' * (10 << 20))")
    session.ok("x = 1\nopen('big', 'ab').write(b'y')")
    assert "too large" in session.call("undo")["lost"]
    assert session.value("import os\n'x' in globals(), os.path.getsize('big') - (10 << 20)") == \
        "(False, 1)"
    session.call("checkpoint", name="big")
    session.ok("os.remove('big')")
    session.call("rollback", name="big")
    assert session.value("os.path.getsize('big') - (10 << 20)") == "1"


def test_a_sparse_file_costs_nothing(session):
    session.ok("x = 1\nwith open('sparse', 'wb') as f: f.truncate(60 << 20)")
    session.run("import os\nos._exit(1)")
    assert session.value("import os\n(x, os.path.getsize('sparse') >> 20)") == "(1, 60)"
    with pytest.raises(Refused, match="too large to be kept"):
        session.call("checkpoint", name="sparse")


def test_what_is_kept_by_name_leaves_memory_to_the_code(session):
    session.ok("open('f', 'wb').write(bytes(10 << 20))")
    session.call("checkpoint", name="one")
    for name in ("two", "three"):
        session.ok(f"open('f', 'ab').write(b'{name}')")
        try:
            session.call("checkpoint", name=name)
        except Refused as refused:
            assert "too large to be kept" in refused.text
    session.ok("hold = bytearray(30 << 20)")
    session.call("rollback", name="one")
    assert session.value("import os\nos.path.getsize('f')") == str(10 << 20)


def test_what_is_written_through_a_map(session):
    session.ok("import mmap\nopen('f', 'wb').write(b'11aa')\nf = open('f', 'r+b')\n"
               "m = mmap.mmap(f.fileno(), 0)")
    session.call("checkpoint", name="here")
    session.ok("m[:4] = b'ZZZZ'")
    session.call("undo")
    assert session.value("open('f').read()") == "'11aa'"
    session.ok("g = open('f', 'r+b')\nm = mmap.mmap(g.fileno(), 0)\nm[:4] = b'YYYY'")
    session.call("rollback", name="here")
    assert session.value("open('f').read()") == "'11aa'"


@pytest.mark.parametrize("code", ["os.chmod('/workspace', 0)",
                                  "for n in range(80):\n    os.mkdir('d')\n    os.chdir('d')"])
def test_odd_workspaces_come_back(session, code):
    session.ok("import os\nopen('a', 'w').write('a')")
    session.ok(code)
    session.call("undo")
    assert session.value("os.chdir('/workspace')\nos.listdir('.')") == "['a']"


def test_while_threads_run_none_can_be_made(session):
    session.ok("x = 1\nimport threading\ngo = threading.Event()\n"
               "thread = threading.Thread(target=go.wait)\nthread.start()")
    with pytest.raises(Refused, match="threads were running"):
        session.call("checkpoint", name="here")
    session.ok("go.set()\nthread.join()")
    session.call("checkpoint", name="here")


def test_a_rollback_ends_what_the_session_started(session):
    session.ok("x = 1")
    session.call("checkpoint", name="here")
    session.ok("import subprocess, threading, time\nsubprocess.Popen(['sleep', '1000'])\n"
               "threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()")
    assert "1 child process" in session.call("rollback", name="here")["lost"]
    assert session.value("import subprocess\n"
                         "subprocess.run(['ps', '-eo', 'args'], capture_output=True, text=True)"
                         ".stdout.count('sleep')") in ("0", "None")


def test_random_numbers_differ_after_each_return(session):
    session.ok("import random\nx = random.random()")
    session.call("checkpoint", name="here")
    seen = set()
    for _ in range(4):
        session.call("rollback", name="here")
        seen.add(session.value("random.random()"))
    assert len(seen) == 4
