# SPDX-License-Identifier: Apache-2.0
"""`execpy session` and `execpy run --session`: what each action does, prints, and ends with."""
import io
import json
import re
import signal
import tarfile
import time

import pytest

from harness.product import slowly

KEYS = {"id", "state", "ended", "template", "runs", "age_ms", "unused_ms", "idle_ms", "life_ms",
        "memory_bytes", "limits", "checkpoints", "lost"}


class Session:
    """A session of the module's daemon, by the commands."""

    def __init__(self, daemon, place, *options):
        self.daemon, self.place = daemon, place
        done = self.execute("create", *options)
        assert done.returncode == 0 and done.err == "", str(done)
        assert re.fullmatch(r"ses_[0-9a-z]{26}\n", done.out), str(done)
        self.id = done.out.strip()

    def execute(self, action, *words, **more):
        return self.daemon.execute("session", action, *words, cwd=self.place, **more)

    def act(self, action, *words, **more):
        """An action on this session that succeeds; what it prints."""
        done = self.execute(action, self.id, *words, **more)
        assert done.returncode == 0, str(done)
        return done.out

    def info(self):
        found = json.loads(self.act("info", "--json"))
        assert set(found) == KEYS, found
        return found

    def run(self, code, *options):
        """The result of a run; its policy is the session's."""
        product = self.daemon.product
        return product.parse(self.daemon.execute(
            "run", "--json", "--session", self.id, *options, "-c", code, cwd=self.place)).result

    def value(self, code):
        result = self.run(code)
        assert result["status"] == "ok", result
        return result["value"] and result["value"]["text/plain"]

    def end(self):
        self.execute("end", self.id)


@pytest.fixture
def create(shared, watch, place):
    """create(*options) -> Session, ended after the test."""
    created = []

    def create(*options):
        created.append(Session(shared, place, *options))
        return created[-1]
    yield create
    for session in created:
        session.end()


@pytest.fixture
def session(create):
    return create("--policy", "open")


def refusal(done, *words, status=1):
    """Ended with this status and one line on stderr that has these words."""
    assert done.returncode == status and done.out == "", str(done)
    assert len(done.err.splitlines()) == 1 and done.err.startswith("execpy: "), str(done)
    for word in words:
        assert word in done.err, str(done)


# -- its life -----------------------------------------------------------------------------------------

def test_variables_stay(session):
    assert session.run("x = 41")["session"]["run"] == 1
    result = session.run("x += 1; x")
    assert result["value"]["text/plain"] == "42"
    assert result["session"] == {"id": session.id, "run": 2, "restored": False, "lost": [], "deleted": []}
    assert session.info()["runs"] == 2


def test_run_is_run_session(session):
    """`execpy session run ID …` takes what `execpy run` takes."""
    done = session.execute("run", session.id, "-c", "import sys; y = sys.argv[1:]; print(y)", "--", "a", "-b")
    assert (done.out, done.err, done.returncode) == ("['a', '-b']\n", "", 0), str(done)
    done = session.execute("run", session.id, "-", input=b"print(y)\n")
    assert done.out == "['a', '-b']\n", str(done)
    assert json.loads(session.execute("run", session.id, "--json", "-c", "1").out)["session"]["run"] == 3


def test_files_of_a_run(session, place, shared):
    (place / "in.txt").write_text("in")
    shared.product.give(place / "in.txt")
    result = session.run("open('out.txt', 'w').write(open('in.txt').read())", "--file", place / "in.txt",
                         "--out", place / "here")
    assert (place / "here/out.txt").read_text() == "in"
    assert [f["path"] for f in result["files"]] == ["out.txt"]
    result = session.run("import os; os.remove('out.txt')")
    assert result["files"] == [] and result["session"]["deleted"] == ["out.txt"]


def test_create_tells_all_as_json(shared, watch, place):
    done = shared.execute("session", "create", "--json", "--memory", "64M", "--processes", "16", "--disk", "1M",
                          "--time", "2s", "--cpu", "1s", "--output", "64K", "--idle", "2m", "--life", "1h")
    info = json.loads(done.out)
    assert set(info) == KEYS and info["state"] == "idle" and info["ended"] is None, info
    assert info["limits"] == {"time_ms": 2000, "cpu_ms": 1000, "memory_bytes": 64 << 20, "processes": 16,
                              "output_bytes": 64 << 10, "disk_bytes": 1 << 20}
    assert (info["idle_ms"], info["life_ms"], info["runs"]) == (120_000, 3600_000, 0)
    assert info["template"] == "bare" and info["checkpoints"] == [] and info["lost"] == []
    assert shared.execute("session", "end", info["id"]).returncode == 0


def test_limits_of_the_session_are_its_runs(create):
    session = create("--time", slowly(700), "--memory", "64M")
    limits = session.run("1", *[])["limits"]
    assert limits["memory_bytes"] == 64 << 20
    done = session.execute("run", session.id, "--time", slowly(300), "-c", "while True: pass")
    assert done.returncode == 124, str(done)


def test_policy_of_the_session_is_its_runs(create):
    assert create().run("import os; os.system('true')")["status"] == "blocked"
    session = create("--policy", "open")
    assert session.run("import os; os.getpid()")["policy"] == "open"
    assert session.run("import os; os.system('true')", "--policy", "strict")["status"] == "blocked"


def test_template(create):
    session = create("--template", "numpy")
    assert session.info()["template"] == "numpy"
    assert session.run("import numpy; numpy.arange(3)")["template"] == "numpy"


def test_list(create, shared):
    assert shared.execute("session", "list", "--json").out == "[]\n"
    done = shared.execute("session", "list")
    assert (done.out, done.err, done.returncode) == ("", "no sessions\n", 0)
    one, two = create(), create("--policy", "open")
    two.run("1")
    found = {info["id"]: info for info in json.loads(shared.execute("session", "list", "--json").out)}
    assert set(found) == {one.id, two.id} and all(set(info) == KEYS for info in found.values())
    assert (found[one.id]["runs"], found[two.id]["runs"]) == (0, 1)
    heads, *rows = shared.execute("session", "list").out.splitlines()
    assert heads.split() == ["id", "template", "runs", "memory", "age", "unused", "state"]
    assert {row.split()[0] for row in rows} == {one.id, two.id}
    assert all(row.split()[-1] == "idle" and len(row) <= 100 for row in rows), rows


def test_info(create):
    session = create("--time", "3s")
    session.run("x = 1")
    session.act("checkpoint", "a b")
    text = session.act("info")
    for line in (f"id +{session.id}", "template +bare", "state +idle", "runs +1", "checkpoints +a b",
                 r"limits +time 3 s, cpu 5 s, memory 100 MiB, processes 64, output 1 MiB, disk 64 MiB"):
        assert re.search(f"^{line}$", text, re.MULTILINE), (line, text)
    assert 0 < session.info()["memory_bytes"] < 100 << 20


def test_ends_when_it_is_unused(create):
    session = create("--idle", "300ms")
    deadline = time.monotonic() + 20
    while json.loads(session.execute("list", "--json").out):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    refusal(session.execute("info", session.id), session.id, "ended", "not used")


# -- what goes wrong ----------------------------------------------------------------------------------

@pytest.mark.parametrize("code,status,restored", [
    ("1/0", 1, False), ("import sys; sys.exit(7)", 7, False), ("import ctypes; ctypes.string_at(0)", 139, True),
    ("while True: pass", 124, True), ("b = b'x' * (1 << 30)", 137, None),
])
def test_exit_status_and_what_stays(session, code, status, restored):
    session.run("x = 'kept'")
    done = session.execute("run", session.id, "--time", slowly(400), "-c", code)
    assert done.returncode == status, str(done)
    # Over the memory limit it may end with MemoryError, and then nothing is lost.
    assert restored is None or ("session restored to before this run" in done.err) is restored, str(done)
    assert session.value("x") == "'kept'"


@pytest.mark.parametrize("words", [
    ["info"], ["run", "-c", "1"], ["checkpoint", "a"], ["rollback", "a"], ["undo"], ["drop", "a"],
    ["interrupt"], ["end"], ["files"], ["files", "list"], ["files", "get", "a"], ["files", "delete", "a"],
    ["files", "rename", "a", "b"], ["files", "tar-out", "x.tar"],
], ids=" ".join)
def test_no_such_session(session, place, words):
    action, *rest = words
    for id in ("ses_nosuch", "x" * 300):
        done = session.execute(action, id, *rest)
        refusal(done, id[:20])
    session.end()
    refusal(session.execute(action, session.id, *rest), session.id, "ended")
    assert [p.name for p in place.iterdir()] == []


def test_info_of_one_that_has_ended_is_still_json(session):
    session.run("1")
    session.end()
    done = session.execute("info", session.id, "--json")
    info = json.loads(done.out)
    assert done.returncode == 1 and info["state"] == "ended" and info["ended"], str(done)


def test_wrong_policy_of_a_run_is_no_missing_session(session):
    refusal(session.execute("run", session.id, "--policy", "nosuch", "-c", "1"), "nosuch", status=2)
    refusal(session.execute("run", session.id, "--policy", "./nosuch.yaml", "-c", "1"), "nosuch", status=2)


def test_without_a_daemon(product, watch, place):
    nowhere = {"EXECPY_SOCKET": str(place / "none")}
    for words in (["session", "create"], ["session", "list"], ["session", "info", "ses_x"],
                  ["run", "--session", "ses_x", "-c", "1"], ["shell", "--session", "ses_x"]):
        refusal(product.execute(*words, cwd=place, env=nowhere, daemon=True), "execpy serve", "none")


WRONG = {
    "nothing": [], "unknown": ["nosuch"], "option_first": ["--json"],
    "create_with_word": ["create", "x"], "create_bad_limit": ["create", "--memory", "much"],
    "create_bad_idle": ["create", "--idle", "soon"], "create_zero_idle": ["create", "--idle", "0"],
    "list_with_word": ["list", "x"], "info_of_none": ["info"], "info_of_two": ["info", "a", "b"],
    "option_of_create": ["info", "a", "--memory", "1G"], "checkpoint_no_name": ["checkpoint", "a"],
    "end_json": ["end", "a", "--json"], "run_of_none": ["run"], "run_option": ["run", "-c", "1"],
    "run_memory": ["run", "a", "--memory", "1G", "-c", "1"], "run_template": ["run", "a", "--template", "bare", "-c", "1"],
    "run_disk": ["run", "a", "--disk", "1G", "-c", "1"], "run_processes": ["run", "a", "--processes", "3", "-c", "1"],
    "run_no_daemon": ["run", "a", "--no-daemon", "-c", "1"], "run_no_code": ["run", "a"],
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_usage(product, watch, place, name):
    refusal(product.execute("session", *WRONG[name], cwd=place), status=2)


@pytest.mark.parametrize("words", [["nosuch"], ["get"], ["get", "a", "b", "c"], ["put"], ["put", "nosuch.txt"],
                                   ["delete"], ["rename", "a"], ["tar-in", "nosuch.tar"], ["get", "a", "--json"]],
                         ids=" ".join)
def test_wrong_usage_of_files(session, words):
    refusal(session.execute("files", session.id, *words), status=2)


def test_wrong_options_of_create(shared, watch, place):
    for option, value in (("--policy", "nosuch"), ("--template", "nosuch")):
        done = shared.execute("session", "create", option, value)
        assert done.returncode != 0 and done.out == "" and "nosuch" in done.err, str(done)
        assert len(done.err.splitlines()) == 1
    assert shared.execute("session", "list", "--json").out == "[]\n"


def test_help(product, watch, place):
    done = product.execute("session", "--help", cwd=place)
    assert done.returncode == 0 and done.err == ""
    for word in ("create", "list", "info ID", "run ID", "checkpoint ID NAME", "rollback ID NAME", "undo ID",
                 "drop ID NAME", "interrupt ID", "end ID", "tar-out", "tar-in", "--idle", "--life"):
        assert word in done.out, word
    assert max(len(line) for line in done.out.splitlines()) <= 100
    assert product.execute("session", "create", "--help", cwd=place).out == done.out
    assert "session" in product.execute("--help", cwd=place).out


# -- checkpoints --------------------------------------------------------------------------------------

def test_checkpoint_and_rollback(session):
    session.run("x = 1; open('f', 'w').write('one')")
    assert session.act("checkpoint", "first") == ""
    session.run("x = 2; open('f', 'w').write('two')")
    assert json.loads(session.act("rollback", "first", "--json"))["checkpoints"] == ["first"]
    assert session.value("x, open('f').read()") == "(1, 'one')"
    assert session.act("drop", "first") == "" and session.info()["checkpoints"] == []
    refusal(session.execute("rollback", session.id, "first"), "first")
    refusal(session.execute("drop", session.id, "first"), "first")


def test_undo(session):
    session.run("x = 1")
    session.run("x = 2")
    assert session.act("undo") == "" and session.value("x") == "1"


def test_undo_at_once(session):
    refusal(session.execute("undo", session.id))


def test_what_a_rollback_loses_is_told(session):
    session.run("import subprocess; p = subprocess.Popen(['sleep', '100'])")
    session.act("checkpoint", "a")
    done = session.execute("rollback", session.id, "a")
    assert done.returncode == 0 and done.err.startswith("lost: "), str(done)


def test_fork(session):
    session.run("x = 1; open('f', 'w').write('one')")
    lines = session.act("fork", "2").split()
    assert len({session.id, *lines}) == 3
    told = json.loads(session.act("fork", "--json", "--same-random"))
    assert [set(info) for info in told] == [KEYS] and told[0]["runs"] == 1
    for branch in [*lines, told[0]["id"]]:
        done = session.execute("run", branch, "-c", "print(x, open('f').read())")
        assert done.out == "1 one\n", str(done)
        assert session.execute("end", branch).returncode == 0
    for words in (["0"], ["129"], ["x"], ["1", "2"]):
        done = session.execute("fork", session.id, *words)
        assert done.returncode in (1, 2) and done.err.startswith("execpy: "), str(done)
    refusal(session.execute("fork", "ses_nosuch"))
    session.run("import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()")
    refusal(session.execute("fork", session.id), "threads were running")


@pytest.mark.parametrize("name", ["", "x" * 64])
def test_names_that_are_none(session, name):
    refusal(session.execute("checkpoint", session.id, name))


# -- a run that goes on -------------------------------------------------------------------------------

def test_interrupt(session, place):
    session.run("x = 1")
    run = session.daemon.start("run", "--session", session.id, "--time", "60s", "--cpu", "60s", "-c",
                               "x = 2; print('begun', flush=True); import time; time.sleep(50)", cwd=place)
    assert run.stdout.readline() == b"begun\n"
    assert session.info()["state"] == "busy"
    assert "busy" in session.execute("list").out
    refusal(session.execute("checkpoint", session.id, "a"))
    assert session.act("interrupt") == ""
    out, err = run.communicate(timeout=30)
    assert run.returncode == 130 and b"KeyboardInterrupt" in err, (out, err)
    assert session.value("x") == "2"
    refusal(session.execute("interrupt", session.id))


def test_control_c(session, place):
    """SIGINT to the command is KeyboardInterrupt in the session."""
    session.run("x = 1")
    run = session.daemon.start("run", "--session", session.id, "--time", "60s", "--cpu", "60s", "-c",
                               "x = 2; print('begun', flush=True); import time; time.sleep(50)", cwd=place)
    assert run.stdout.readline() == b"begun\n"
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=30)
    assert run.returncode == 130 and b"KeyboardInterrupt" in err, (out, err)
    assert session.value("x") == "2"


def test_end_while_a_run_goes_on(session, place):
    run = session.daemon.start("run", "--session", session.id, "--time", "60s", "--cpu", "60s", "-c",
                               "print('begun', flush=True); import time; time.sleep(50)", cwd=place)
    assert run.stdout.readline() == b"begun\n"
    session.end()
    out, err = run.communicate(timeout=30)
    assert run.returncode == 130 and b"cancelled" in err, (run.returncode, out, err)


# -- files --------------------------------------------------------------------------------------------

def test_files(session, place, shared):
    (place / "a.txt").write_text("a")
    (place / "b.bin").write_bytes(bytes(range(256)))
    shared.product.give(place / "a.txt", place / "b.bin")
    assert session.act("files", "put", "a.txt", "b.bin:deep/er/b.bin") == ""
    assert session.value("open('a.txt').read()") == "'a'"
    session.run("open('c.txt', 'w').write('ccc')")

    found = {f["path"]: f for f in json.loads(session.act("files", "list", "--json"))}
    assert {p: (f["type"], f["size"]) for p, f in found.items() if f["type"] == "file"} == {
        "a.txt": ("file", 1), "deep/er/b.bin": ("file", 256), "c.txt": ("file", 3)}
    assert abs(found["c.txt"]["modified_ms"] / 1000 - time.time()) < 100
    lines = session.act("files", "list").splitlines()
    assert any(re.fullmatch(r" +3  20\d\d-\d\d-\d\d \d\d:\d\d  c\.txt", line) for line in lines), lines
    assert session.act("files") == session.act("files", "list")

    assert session.act("files", "get", "c.txt") == "" and (place / "c.txt").read_text() == "ccc"
    assert session.act("files", "get", "c.txt", "-") == "ccc"
    session.act("files", "get", "deep/er/b.bin", place)
    assert (place / "b.bin").read_bytes() == bytes(range(256))
    session.act("files", "rename", "c.txt", "deep/d.txt")
    refusal(session.execute("files", session.id, "rename", "a.txt", "deep/d.txt"), "deep/d.txt")
    session.act("files", "delete", "a.txt", "deep/er/b.bin")
    left = [f["path"] for f in json.loads(session.act("files", "list", "--json")) if f["type"] == "file"]
    assert left == ["deep/d.txt"]


def test_get_replaces_only_by_what_is_whole(session, place, shared):
    (place / "kept.txt").write_text("mine")
    shared.product.give(place / "kept.txt")
    refusal(session.execute("files", session.id, "get", "kept.txt"), "kept.txt")
    refusal(session.execute("files", session.id, "get", "../kept.txt"))
    assert (place / "kept.txt").read_text() == "mine" and [p.name for p in place.iterdir()] == ["kept.txt"]
    session.run("open('kept.txt', 'w').write('new')")
    session.act("files", "get", "kept.txt")
    assert (place / "kept.txt").read_text() == "new" and [p.name for p in place.iterdir()] == ["kept.txt"]


def test_put_beyond_the_disk(create, place, shared):
    session = create("--disk", "64K")
    (place / "big").write_bytes(bytes(1 << 20))
    shared.product.give(place / "big")
    refusal(session.execute("files", session.id, "put", "big"), "big")


def test_archives(session, create, place):
    session.run("import os; os.makedirs('d'); open('d/x', 'w').write('x' * 1000); open('ü', 'w').write('y'); "
                "os.chmod('ü', 0o755)")
    data = session.execute("files", session.id, "tar-out").stdout
    session.act("files", "tar-out", "all.tar")
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        names = {member.name.removeprefix("./"): member for member in archive if member.isreg()}
        assert set(names) == {"d/x", "ü"} and names["d/x"].size == 1000
    other = create("--policy", "open")
    other.act("files", "tar-in", "all.tar")
    assert other.value("open('d/x').read() == 'x' * 1000, open('ü').read()") == "(True, 'y')"
    again = create("--policy", "open")
    again.act("files", "tar-in", input=data)
    assert again.value("open('ü').read()") == "'y'"


def test_archives_that_are_bad(session, place):
    refusal(session.execute("files", session.id, "tar-in", input=b"no archive at all" * 100))
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        member = tarfile.TarInfo("../outside")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    refusal(session.execute("files", session.id, "tar-in", input=made.getvalue()), "outside")
