# SPDX-License-Identifier: Apache-2.0
"""`execpy serve`: its place, its configuration, its signals, what it says, and that it is used."""
import errno
import json
import os
import signal
import socket
import stat
import subprocess
import threading
import time
from pathlib import Path

import pytest

from harness.host import need
from harness import host
from harness.daemon import Daemon, configuration
from harness.product import SLOW

SMALL = configuration({"bare": (1, 1)})


def refused(product, *words, status=125, cwd=None, **options):
    """`execpy serve WORDS…` does not begin, and says why in one line; the line."""
    done = product.execute("serve", "--listen", "none", *words, cwd=cwd, env={"EXECPY_SOCKET": ""}, **options)
    assert done.returncode == status, str(done)
    assert done.stdout == b"" and done.err.startswith("execpy: "), str(done)
    assert len(done.err.splitlines()) == 1, str(done)
    return done.err


# -- its place ----------------------------------------------------------------------------------

def test_a_run_uses_it(serve):
    daemon = serve()
    done = daemon.run("print(55)")
    assert (done.result["status"], done.result["stdout"]) == ("ok", "55\n")
    assert done.result["warm"] is True and done.result["template"] == "bare"
    assert daemon.template("bare")["hits"] == 1
    assert daemon.lines == [f"execpy: serving on {daemon.socket} (templates: bare)"]
    check = daemon.execute("check", "-c", "import os; os.system('id')")
    assert check.returncode == 1, str(check)
    assert daemon.status()["runs"] == 2


def test_who_may_reach_it(serve, product):
    daemon = serve()
    for path in (daemon.socket, Path(f"{daemon.socket}.lock")):
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600, path
        assert path.lstat().st_uid == (os.geteuid() if product.uid is None else product.uid)


@pytest.mark.parametrize("user", [65534])
def test_another_user_is_turned_away(serve, product, user):
    """Even where the modes would let him: the kernel says who he is."""
    need("root")
    daemon = serve()
    os.chmod(daemon.directory, 0o755)
    os.chmod(daemon.socket, 0o666)
    done = subprocess.run(
        ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--",
         str(product.binary), "run", "-c", "print('ran')"], capture_output=True, timeout=30 * SLOW,
        env=product.environment(EXECPY_SOCKET=str(daemon.socket)))
    assert done.returncode == 125 and done.stdout == b"", done
    # Without that check of his own: what the daemon itself makes of him.
    done = subprocess.run(
        ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--", "/usr/bin/python3",
         "-c", "import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); "
               "s.connect(sys.argv[1]); print(s.recv(100))", str(daemon.socket)],
        capture_output=True, timeout=30 * SLOW)
    assert done.stdout in (b"b''\n", b""), done
    assert daemon.run("print(1)").result["status"] == "ok"


def test_where_clients_look(serve, product, place):
    """$XDG_RUNTIME_DIR/execpy.sock is found; a dead one is passed over; a named one must live."""
    daemon = serve()
    assert daemon.socket == place / "execpy.sock"
    found = {"EXECPY_SOCKET": "", "XDG_RUNTIME_DIR": str(place)}
    run = lambda *words, **env: product.execute("run", *words, "-c", "print(1)",    # noqa: E731
                                                daemon=True, env={**found, **env})
    assert run().returncode == 0 and daemon.status()["runs"] == 1
    assert run("--no-daemon").returncode == 0 and daemon.status()["runs"] == 1
    daemon.kill()
    assert daemon.socket.exists()
    assert run().out == "1\n", "without a daemon it starts cold"
    done = run(EXECPY_SOCKET=str(daemon.socket))
    assert done.returncode == 125 and str(daemon.socket) in done.err, str(done)
    assert run("--no-daemon", EXECPY_SOCKET=str(daemon.socket)).out == "1\n"
    daemon.socket.unlink()
    Path(f"{daemon.socket}.lock").unlink()


def test_where_it_serves_by_itself(product, watch, place):
    daemon = Daemon(product, place, SMALL, socket=place / "execpy.sock", wait=False,
                    env={"XDG_RUNTIME_DIR": str(place)})
    try:
        assert daemon.says("serving on")
    finally:
        daemon.close()
    process = product.start("serve", "--listen", "none", "--config", daemon.config, cwd=place,
                            env={"XDG_RUNTIME_DIR": str(place), "EXECPY_SOCKET": ""})
    try:
        assert f"serving on {place}/execpy.sock" in process.stderr.readline().decode()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20 * SLOW) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_user_without_a_runtime_directory_is_told(product, watch, place):
    if product.uid is None and os.geteuid() == 0:
        need_user = product.prefix() or ["setpriv", "--reuid=54321", "--regid=54321",
                                         "--clear-groups", "--"]
        done = subprocess.run([*need_user, str(product.binary), "serve"], capture_output=True,
                              timeout=30 * SLOW, env=product.environment(EXECPY_SOCKET=""))
        assert done.returncode == 2 and b"--socket PATH" in done.stderr, done
    else:
        assert "--socket PATH" in refused(product, status=2, cwd=place)


def test_two_daemons(serve, product, place):
    daemon = serve()
    line = refused(product, "--socket", daemon.socket, cwd=place)
    assert f"a daemon serves there already, process {daemon.pid}" in line
    assert daemon.run("print(1)").result["status"] == "ok"
    assert daemon.stop() == 0
    assert list(place.iterdir()) == [daemon.config], "socket and lock are gone"


def test_many_daemons_start_at_once(product, watch, place):
    """However they race: one serves, the others say so."""
    (place / "serve.yaml").write_text(SMALL)
    processes = [product.start("serve", "--socket", place / "s", "--config", place / "serve.yaml",
                               "--listen", "none",
                               env={"EXECPY_SOCKET": ""}) for _ in range(5)]
    losers = []
    deadline = time.monotonic() + 60 * SLOW
    while len(losers) < 4 and time.monotonic() < deadline:
        losers = [p for p in processes if p.poll() is not None]
        time.sleep(0.05)
    try:
        assert [p.returncode for p in losers] == [125] * 4
        for process in losers:
            assert b"serves there already" in process.communicate()[1]
        [winner] = [p for p in processes if p.poll() is None]
        assert b"serving on" in winner.stderr.readline()
        winner.terminate()
        assert winner.wait(20 * SLOW) == 0
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert sorted(p.name for p in place.iterdir()) == ["serve.yaml"]


def test_a_dead_daemons_socket_is_replaced(serve, product, place):
    first = serve()
    first.kill()
    assert first.socket.exists() and Path(f"{first.socket}.lock").exists()
    second = serve()
    assert second.run("print(2)").result["stdout"] == "2\n"


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_SEQPACKET])
def test_somebody_elses_socket_is_left_alone(product, watch, place, kind):
    path = place / "s"
    with socket.socket(socket.AF_UNIX, kind) as other:
        other.bind(str(path))
        product.give(path)
        other.listen()
        assert "somebody listens there already" in refused(product, "--socket", path, cwd=place)
        with socket.socket(socket.AF_UNIX, kind) as client:
            client.connect(str(path))
    path.unlink()


def test_what_is_no_place_for_a_socket(product, watch, place, base):
    (place / "file").write_text("kept")
    (place / "link").symlink_to("file")
    (place / "directory").mkdir()
    (place / "open").mkdir()
    os.chmod(place / "open", 0o777)
    product.give(*place.iterdir())
    for path, words in (
            (place / "file", "is there and is no socket"),
            (place / "link", "is there and is no socket"),
            (place / "directory", "is there and is no socket"),
            (f"{place}/", "is a directory"),
            (place / "nowhere" / "s", "No such file or directory"),
            (place / "file" / "s", "Not a directory"),
            (place / ("s" * 120), "bytes are possible"),
            ("", "bytes are possible"),
            (place / "open" / "s", "others may write in directory"),
            ("/proc/self/s", "")):
        line = refused(product, "--socket", path, cwd=place)
        assert words in line, (path, line)
    assert (place / "file").read_text() == "kept" and (place / "link").is_symlink()
    assert not (place / "open" / "s").exists()


def test_another_users_directory_is_refused(product, watch, place):
    need("root")
    other = place / "other"
    other.mkdir()
    os.chown(other, 65534, 65534)
    line = refused(product, "--socket", other / "s", cwd=place)
    assert "belongs to user 65534" in line
    assert list(other.iterdir()) == []


def test_sticky_directories_are_fine(serve, product, place):
    os.chmod(place, 0o1777)
    assert serve().run("print(1)").result["status"] == "ok"


def test_a_planted_lock_is_refused(product, watch, place):
    (place / "target").write_text("kept")
    (place / "s.lock").symlink_to("target")
    product.give(place / "target", place / "s.lock")
    assert "lock file" in refused(product, "--socket", place / "s", cwd=place)
    (place / "s.lock").unlink()
    os.mkfifo(place / "s.lock")
    product.give(place / "s.lock")
    assert "lock file" in refused(product, "--socket", place / "s", cwd=place)
    assert (place / "target").read_text() == "kept"


def test_a_full_disk(product, watch, place):
    """The lock file cannot be written, or the socket not be made: one line, and nothing is left."""
    need("root")
    for options in ("size=4k,nr_inodes=1", "size=4k,nr_inodes=2"):
        script = (f"mount -t tmpfs -o mode=0755,{options} tmpfs {place} && "
                  f"exec {' '.join(product.prefix())} {product.binary} serve --listen none --socket {place}/s")
        if product.uid is not None:
            script = script.replace("mode=0755", f"mode=0755,uid={product.uid}")
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True,
                              timeout=60 * SLOW, env=product.environment(EXECPY_SOCKET=""))
        assert done.returncode == 125 and b"No space left on device" in done.stderr, done
        assert len(done.stderr.splitlines()) == 1, done


def test_a_full_log(serve):
    """Nobody can read what it says: it serves all the same."""
    product_lines = serve
    daemon = product_lines(launcher=("sh", "-c", 'exec "$@" 2>/dev/full', "sh"), wait=False)
    deadline = time.monotonic() + 30 * SLOW
    while not daemon.socket.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert daemon.run("print(1)").result["status"] == "ok"


# -- its configuration --------------------------------------------------------------------------

@pytest.mark.parametrize("text, words", [
    ("memroy: 1G", ":1:1: there is no key 'memroy': use templates, memory"),
    ("queue: 1\nqueue: 2", ":2:1: the key 'queue' stands here twice"),
    ("queue: many", ':1:8: queue: cannot read "many"'),
    ("templates: [{name: lab}]", "the template 'lab' is not built in"),
    ("", "the configuration is empty"),
    ("\0", ""),
])
def test_a_wrong_configuration(product, watch, place, text, words):
    (place / "serve.yaml").write_text(text)
    line = refused(product, "--socket", place / "s", "--config", place / "serve.yaml", status=2,
                   cwd=place)
    assert words in line
    assert not (place / "s").exists()


@pytest.mark.parametrize("words", [
    ["--socket"], ["--config", "/nowhere"], ["--config", "/dev/null"], ["--nosuch"], ["more"],
    ["--json"], ["--status", "--quiet"], ["--quiet=yes"]])
def test_wrong_usage(product, watch, place, words):
    refused(product, *words, status=2, cwd=place)


@pytest.mark.parametrize("template, words", [
    ({"modules": ["nosuchmodule"]}, ["lab", "nosuchmodule"]),
    ({"modules": ["json", "xml.nosuch"]}, ["lab", "xml.nosuch"]),
    ({"modules": [], "warm_up": "import threading, time\n"
                                "threading.Thread(target=time.sleep, args=(9,)).start()"},
     ["lab", "thread"]),
    ({"modules": [], "warm_up": "import os, builtins\nbuiltins.kept = os.open('/', os.O_RDONLY)"},
     ["lab", "descriptor"]),
    ({"modules": [], "warm_up": "x = 1\n1 / 0"}, ["lab", "ZeroDivisionError"]),
    ({"modules": [], "warm_up": "def f(:"}, ["lab", "SyntaxError"]),
    ({"modules": [], "warm_up": "import sys\nsys.exit(0)"}, ["lab"]),
    ({"modules": [], "warm_up": "import os\nos._exit(0)"}, ["lab"]),
    ({"modules": [], "warm_up": "import os\nos.abort()"}, ["lab"]),
    ({"modules": [], "warm_up": "raise ValueError('\\x1b[31mred\\x9b\\u202e\\n\\nlines')"},
     ["lab", "ValueError"]),
])
def test_a_template_that_cannot_be(product, watch, place, template, words):
    """Named at the start, with what is wrong with it; no daemon that lacks one."""
    (place / "serve.yaml").write_text(configuration({"bare": (1, 1),
                                                     "lab": {**template, "pool": (1, 1)}}))
    line = refused(product, "--socket", place / "s", "--config", place / "serve.yaml", cwd=place,
                   timeout=60)
    assert all(word in line for word in words), line
    assert not any(c in line.rstrip("\n") for c in "\x1b\x9b\u202e\n"), ascii(line)
    assert not (place / "s").exists()


@pytest.mark.full
def test_a_template_that_never_ends(product, watch, place):
    (place / "serve.yaml").write_text(configuration(
        {"lab": {"modules": [], "warm_up": "while True: pass", "pool": (1, 1)}}))
    line = refused(product, "--socket", place / "s", "--config", place / "serve.yaml", cwd=place,
                   timeout=90)
    assert "lab" in line


def test_a_template_of_ones_own(serve):
    daemon = serve({"bare": (1, 1), "lab": {"modules": ["json", "decimal"], "pool": (1, 1),
                                            "warm_up": "import decimal\ndecimal.Decimal(1) / 3"}})
    done = daemon.run("import sys; print('decimal' in sys.modules)", "--template", "lab")
    assert done.result["stdout"] == "True\n" and done.result["template"] == "lab"
    done = daemon.run("import decimal; print(decimal.Decimal(1))")
    assert (done.result["stdout"], done.result["template"]) == ("1\n", "lab"), "chosen by imports"
    done = daemon.run("print(1)")
    assert done.result["template"] == "bare", "the smallest that covers"
    done = daemon.execute("run", "--template", "nosuch", "-c", "1")
    assert done.returncode == 2 and "auto, bare, lab" in done.err, str(done)


def test_a_sandbox_that_does_not_hold(product, watch, place):
    """The self-test at the start fails closed, and names the layer."""
    mask = (host.helper("mask-syscall"), str(host.syscall_number("landlock_create_ruleset")),
            str(errno.ENOSYS))
    done = product.execute("serve", "--listen", "none", "--socket", place / "s", cwd=place,
                           env={"EXECPY_SOCKET": ""}, launcher=mask)
    assert done.returncode == 125, str(done)
    assert "the sandbox does not hold on this host" in done.err and "andlock" in done.err
    assert not (place / "s").exists()


# -- its signals --------------------------------------------------------------------------------

class Running:
    """A run that goes on; what became of it."""

    def __init__(self, daemon, seconds, *options):
        self.daemon = daemon
        before = daemon.status()["running"]
        self.process = daemon.start("run", "--json", "--policy", "open", "--time", "60s", *options,
                                    "-c", f"import time; time.sleep({seconds}); print('end')")
        deadline = time.monotonic() + 30 * SLOW
        while daemon.status()["running"] == before:
            assert time.monotonic() < deadline, "the run does not begin"
            time.sleep(0.02)

    def result(self, timeout=30):
        out, _ = self.process.communicate(timeout=timeout * SLOW)
        return json.loads(out)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_when_its_runs_have_ended(serve, place, number):
    daemon = serve()
    running = Running(daemon, 1.5)
    daemon.process.send_signal(number)
    deadline = time.monotonic() + 5 * SLOW
    while daemon.socket.exists():
        assert time.monotonic() < deadline, "the socket stays"
        time.sleep(0.01)
    assert daemon.process.poll() is None, "it waits for the run"
    result = running.result()
    assert (result["status"], result["stdout"]) == ("ok", "end\n")
    assert daemon.wait(10) == 0
    assert list(place.iterdir()) == [daemon.config]


def test_without_runs_it_ends_at_once(serve):
    daemon = serve()
    began = time.monotonic()
    assert daemon.stop() == 0
    assert time.monotonic() - began < 1.0 * SLOW


def test_a_second_signal_ends_it_at_once(serve, place):
    daemon = serve()
    running = Running(daemon, 30)
    daemon.process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    assert daemon.process.poll() is None
    began = time.monotonic()
    daemon.process.send_signal(signal.SIGINT)
    assert daemon.wait(10) == 0
    assert time.monotonic() - began < 2.0 * SLOW
    result = running.result()
    assert result["status"] == "internal_error" and result["retry"] is True
    assert list(place.iterdir()) == [daemon.config]


@pytest.mark.full
def test_runs_have_ten_seconds_when_it_ends(serve):
    daemon = serve()
    running = Running(daemon, 40)
    began = time.monotonic()
    assert daemon.stop(timeout=30) == 0
    assert 9 < time.monotonic() - began < 12 + SLOW
    assert running.result()["status"] == "internal_error"


def test_ctrl_c_on_a_terminal(serve):
    """The whole foreground group gets it; the warden ends by its daemon, not by the signal."""
    daemon = serve()
    running = Running(daemon, 1.0)
    os.killpg(daemon.pid, signal.SIGINT)
    assert running.result()["status"] == "ok"
    assert daemon.wait(10) == 0


def test_a_new_configuration_without_a_gap(serve):
    """SIGHUP under load: no run fails, the one that goes on ends, the new templates are there."""
    daemon = serve({"bare": (2, 4)})
    running = Running(daemon, 3)
    old = daemon.roles()["warden"]
    wrong, count, ended = [], [0], threading.Event()

    def load():
        while not ended.is_set():
            done = daemon.run("print(7)", timeout=60)
            count[0] += 1
            if (done.result["status"], done.result["stdout"]) != ("ok", "7\n"):
                wrong.append(str(done))

    threads = [threading.Thread(target=load) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        daemon.config.write_text(configuration(
            {"bare": (1, 2), "lab": {"modules": ["decimal"], "pool": (1, 1)}}))
        daemon.process.send_signal(signal.SIGHUP)
        assert daemon.says("serving on", times=2), daemon.lines
        assert running.result()["stdout"] == "end\n"
        time.sleep(0.5)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert not wrong and count[0] > 5, wrong[:3]
    assert [t["name"] for t in daemon.status()["templates"]] == ["bare", "lab"]
    deadline = time.monotonic() + 15 * SLOW
    while daemon.roles()["warden"] == old or len(daemon.roles()["warden"]) > 1:
        assert time.monotonic() < deadline, "the old warden stays"
        time.sleep(0.05)
    assert daemon.lines[-1] == f"execpy: serving on {daemon.socket} (templates: bare, lab)"


@pytest.mark.parametrize("text, words", [
    ("queue: many\n", "queue: cannot read"),
    (configuration({"lab": {"modules": ["nosuchmodule"], "pool": (1, 1)}}), "nosuchmodule"),
])
def test_a_new_configuration_that_is_wrong_changes_nothing(serve, text, words):
    daemon = serve()
    warden = daemon.roles()["warden"]
    daemon.config.write_text(text)
    daemon.process.send_signal(signal.SIGHUP)
    assert words in daemon.says("the new configuration is not taken"), daemon.lines
    assert daemon.run("print(1)").result["status"] == "ok"
    assert daemon.roles()["warden"] == warden
    # And the next that is right is taken.
    daemon.config.write_text(configuration({"bare": (1, 1), "lab": {"modules": ["json"]}}))
    daemon.process.send_signal(signal.SIGHUP)
    assert daemon.says("serving on", times=2), daemon.lines


def test_many_sighups(serve):
    daemon = serve()
    for _ in range(10):
        daemon.process.send_signal(signal.SIGHUP)
        time.sleep(0.02)
    assert daemon.says("serving on", times=2), daemon.lines
    daemon.settled(2)
    assert len(daemon.roles()["warden"]) == 1
    assert daemon.run("print(1)").result["status"] == "ok"


# -- what it says -------------------------------------------------------------------------------

def listen_for_notes(path):
    notes = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notes.bind(path)
    notes.settimeout(60 * SLOW)
    return notes


@pytest.mark.parametrize("abstract", [False, True])
def test_a_service_manager_is_told(serve, product, place, abstract):
    name = f"@execpy-test-{os.getpid()}" if abstract else str(place / "notify")
    with listen_for_notes("\0" + name[1:] if abstract else name) as notes:
        if not abstract:
            os.chmod(name, 0o777)
        daemon = serve(env={"NOTIFY_SOCKET": name})
        assert notes.recv(4096).decode().split("\n")[0] == "READY=1"
        daemon.process.send_signal(signal.SIGHUP)
        first = notes.recv(4096).decode().split("\n")
        assert first[0] == "RELOADING=1" and first[1].startswith("MONOTONIC_USEC=")
        assert notes.recv(4096).decode().split("\n")[0] == "READY=1"
        assert daemon.stop() == 0
        assert notes.recv(4096).decode() == "STOPPING=1"
    if not abstract:
        os.unlink(name)


@pytest.mark.parametrize("name", ["/nowhere/at/all", "relative", "@", "/" + "x" * 200])
def test_a_service_manager_that_is_not_there(serve, name):
    daemon = serve(env={"NOTIFY_SOCKET": name})
    assert daemon.run("print(1)").result["status"] == "ok"


def test_quiet(serve):
    daemon = serve(None, "--quiet", wait=False)
    deadline = time.monotonic() + 30 * SLOW
    while not daemon.socket.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert daemon.run("print(1)").result["status"] == "ok"
    assert daemon.stop() == 0
    assert daemon.lines == []


KEYS = {"socket", "process", "cgroups", "up_ms", "clients", "running", "waiting", "runs", "misses",
        "refused", "sessions", "memory_bytes", "memory_bound_bytes", "templates"}
TEMPLATE_KEYS = {"name", "pool_min", "pool_max", "target", "parked", "running", "hits", "misses",
                 "parked_bytes", "loaded", "template_bytes", "cells", "age_ms", "why"}


def test_status(serve, product):
    daemon = serve({"bare": (2, 3), "numpy": (1, 1)}, memory="512M")
    daemon.settled(3)
    running = Running(daemon, 1.0)
    status = daemon.status()
    assert set(status) == KEYS
    assert all(set(t) == TEMPLATE_KEYS for t in status["templates"])
    assert status["socket"] == str(daemon.socket)
    assert [status["process"]] == daemon.roles()["warden"]
    assert (status["running"], status["waiting"], status["clients"]) == (1, 0, 1)
    assert status["memory_bound_bytes"] == 512 << 20
    assert 8 << 20 < status["memory_bytes"] < 256 << 20
    bare, numpy = status["templates"]
    assert (bare["name"], bare["pool_min"], bare["pool_max"], bare["running"]) == ("bare", 2, 3, 1)
    assert bare["loaded"] and bare["why"] is None and bare["hits"] == 1 and bare["misses"] == 0
    assert (numpy["name"], numpy["parked"], numpy["running"], numpy["cells"]) == ("numpy", 1, 0, 1)
    assert numpy["template_bytes"] > bare["template_bytes"] > 0
    assert running.result()["status"] == "ok"
    text = product.execute("serve", "--status", env=daemon.environment())
    assert text.returncode == 0 and str(daemon.socket) in text.out
    rows = {line.split()[0]: line.split()[1:] for line in text.out.splitlines() if line}
    assert rows["bare"][2:4] == ["2", "3"] and rows["numpy"][2:4] == ["1", "1"]


def test_status_without_a_daemon(product, watch, place):
    done = product.execute("serve", "--status", "--socket", place / "s", cwd=place)
    assert done.returncode == 125 and "no daemon at" in done.err, str(done)


# -- its warden ends ----------------------------------------------------------------------------

def test_a_warden_that_ends_is_started_again(serve):
    daemon = serve()
    running = Running(daemon, 30)
    [warden] = daemon.roles()["warden"]
    os.kill(warden, signal.SIGKILL)
    began = time.monotonic()
    done = daemon.run("print(2)", timeout=60)       # it waits in the socket's backlog
    assert done.result["stdout"] == "2\n"
    assert time.monotonic() - began < 20 * SLOW
    result = running.result()
    assert result["status"] == "internal_error" and result["retry"] is True
    assert daemon.says("the warden ended") and daemon.says("serving on", times=2)
    assert daemon.roles()["warden"] != [warden]


def test_a_warden_that_keeps_ending_is_given_time(serve):
    """0, 50, 100, … ms between starts, and never more than a second."""
    daemon = serve({"bare": (0, 1)})
    times = []
    for turn in range(5):
        deadline = time.monotonic() + 60 * SLOW
        assert daemon.says("serving on", times=turn + 1), daemon.lines
        [warden] = daemon.roles()["warden"]
        os.kill(warden, signal.SIGKILL)
        times.append(time.monotonic())
        assert time.monotonic() < deadline
    assert daemon.says("serving on", times=6), daemon.lines
    assert daemon.run("print(1)").result["status"] == "ok"
    assert daemon.stop() == 0
