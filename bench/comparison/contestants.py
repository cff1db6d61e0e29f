# SPDX-License-Identifier: Apache-2.0
"""The ways in which a workload is run, each in its own best mode, and what each isolates."""
import functools
import pathlib
import re
import shutil
import socket
import subprocess
import time

import measure
from . import containers, daemon
from .runner import (CLIENT, ENVIRONMENT, PATIENCE_S, PEERS, PLACE, PYTHON, Runner, Unable,
                     WARM_UP, end, font_cache, needs, place, programs)
from .workloads import MIB, TEMPLATES, WARM_UPS

MEMORY = 100 * MIB
PROCESSES = 64
# Where the address space is all that can be limited: the interpreter's own, and 100 MiB.
SMALL_ADDRESS_SPACE = 128 * MIB
LARGE_ADDRESS_SPACE = 2048 * MIB
PYODIDE = "pyodide@0.25.1"  # CPython 3.11, as Debian 12 has it
MADE = "plot.png"
POOL = (16, 16)
DIST_PACKAGES = 'import sys; sys.path.append("/usr/lib/python3/dist-packages")\n'

ENDINGS = {
    "result": {"ok": "ok", "error": "error", "memory_limit": "memory_limit", "timeout": "timeout"},
    "execpy": {"ok": "0", "error": "1", "memory_limit": "137", "timeout": "124"},
    "command": {"ok": "0", "error": "1", "memory_limit": "1", "timeout": "signal 9"},
    "container": {"ok": "0", "error": "1", "memory_limit": "137", "timeout": "137"},
    "server": {"ok": "0", "error": "1", "memory_limit": "1", "timeout": "signal 9"},
    "pyodide": {"ok": "0", "error": "1", "timeout": "1"},
}


def reference_file(workload):
    """The file that the workload makes, made by the plain interpreter."""
    directory = place("reference", workload.name)
    (directory / "main.py").write_text(workload.code)
    subprocess.run([PYTHON, "-I", "main.py"], cwd=directory, check=True, timeout=60,
                   env={**ENVIRONMENT, "MPLCONFIGDIR": str(font_cache())})
    return directory / MADE


def expectations(workload, kind, directory):
    """The client's options that say what has to come out."""
    words = ["--expect-status", ENDINGS[kind][workload.ending]]
    if workload.output is not None:
        (directory / "expected").write_text(workload.output)
        words += ["--expect-output", directory / "expected"]
    texts = list(workload.texts)
    if kind == "result":
        texts += workload.result_texts
    elif workload.ending == "memory_limit":
        texts += {"execpy": ["the memory limit of 100 MiB was reached"],
                  "container": []}.get(kind, ["MemoryError"])
    elif workload.ending == "timeout" and kind == "execpy":
        texts.append("the time limit of 200 ms was reached")
    for text in texts:
        words += ["--expect-text", text]
    if workload.fetches:
        words += ["--expect-file", reference_file(workload)]
    return words


class Contestant:
    """name: in the raw results; title: in tables; key: always 200 samples, since a target is
    measured by it; pause_ms: idleness before each sample."""

    def __init__(self, name, title, start, key=False, pause_ms=0, column="peer"):
        self.name, self.title, self.start = name, title, start
        self.key, self.pause_ms, self.column = key, pause_ms, column


# Whole commands.

def command(workload, name, kind, make, cgroup=False, prefix="", fetched=MADE):
    """`make(directory, script)` gives the words that run script, which is in directory."""
    directory = place(name, workload.name)
    script = directory / "main.py"
    script.write_text(prefix + workload.code)
    environment = dict(ENVIRONMENT)
    if workload.template == "plot":
        shutil.copytree(font_cache(), directory / ".matplotlib")
        environment["MPLCONFIGDIR"] = str(directory / ".matplotlib")
    words = [CLIENT, *expectations(workload, kind, directory)]
    if not cgroup:
        words += ["--address-space", SMALL_ADDRESS_SPACE if workload.ending == "memory_limit"
                  else LARGE_ADDRESS_SPACE]
    if workload.fetches:
        words += ["--fetch", directory / fetched]
    made = make(directory, script, environment)
    return Runner([*words, "--", *made], environment, directory)


def limit_time(workload):
    return ["timeout", "-s", "KILL", f"{workload.time_ms / 1000}"] if workload.time_ms else []


def cold(workload):
    def make(directory, script, environment):
        limits = ["--time", f"{workload.time_ms}ms"] if workload.time_ms else []
        files = ["--out", directory / "out"] if workload.fetches else []
        return [measure.EXECPY, "run", "--no-daemon", *limits, *files, script]
    return command(workload, "cold", "execpy", make, cgroup=True, fetched=f"out/{MADE}")


def plain(workload):
    return command(workload, "python3", "command", lambda directory, script, environment:
                   [*limit_time(workload), PYTHON, script])


def plain_small(workload):
    return command(workload, "python3 -I -S", "command", lambda directory, script, environment:
                   [*limit_time(workload), PYTHON, "-I", "-S", script],
                   prefix="" if workload.template == "bare" else DIST_PACKAGES)


def bubblewrap_words(workspace):
    return ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
            "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib",
            "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin",
            *(word for path in containers.SETTINGS for word in ("--ro-bind-try", path, path)),
            "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
            "--bind", workspace, "/workspace", "--chdir", "/workspace"]


def bubblewrap(workload):
    needs("bwrap")

    def make(directory, script, environment):
        environment["MPLCONFIGDIR"] = "/workspace/.matplotlib"
        return [*limit_time(workload), *bubblewrap_words(directory), PYTHON, "-I", "main.py"]
    return command(workload, "bubblewrap", "command", make)


def firejail(workload):
    needs("firejail")

    def make(directory, script, environment):
        environment["MPLCONFIGDIR"] = str(pathlib.Path.home() / ".matplotlib")
        environment["HOME"] = str(pathlib.Path.home())
        return [*limit_time(workload), "firejail", "--quiet", "--noprofile", "--net=none",
                f"--private={directory}", "--private-dev", "--private-tmp", "--caps.drop=all",
                "--nonewprivs", "--seccomp", f"--rlimit-nproc={PROCESSES}", PYTHON, "-I", "main.py"]
    return command(workload, "firejail", "command", make)


def container(workload, name, words):
    def make(directory, script, environment):
        inside = {**ENVIRONMENT, "MPLCONFIGDIR": "/workspace/.matplotlib"}
        (directory / "bundle").mkdir()
        containers.bundle(directory / "bundle", directory,
                          [*limit_time(workload), PYTHON, "-I", "main.py"], inside, MEMORY, PROCESSES)
        return [*words(directory / "state", directory / "bundle"), "bench-{n}"]
    return command(workload, name, "container", make, cgroup=True)


def runc(workload):
    needs("runc")
    return container(workload, "runc", lambda state, bundle:
                     ["runc", "--root", state, "run", "-b", bundle])


def gvisor(workload):
    needs("runsc")
    return container(workload, "gvisor", lambda state, bundle:
                     ["timeout", "-s", "KILL", "60", "runsc", "--root", state, "--platform=ptrace",
                      "--network=none", "run", "-bundle", bundle])


def pyodide_package():
    """The npm package, fetched once."""
    needs("node")
    directory = PLACE / "pyodide"
    if not (directory / "package" / "pyodide.mjs").exists():
        directory.mkdir(parents=True, exist_ok=True)
        try:
            packed = subprocess.run([needs("npm"), "pack", "--silent", PYODIDE], cwd=directory,
                                    capture_output=True, text=True, check=True, timeout=120)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise Unable(f"npm cannot fetch {PYODIDE}: {error}") from error
        shutil.unpack_archive(directory / packed.stdout.split()[-1], directory, "gztar")
    return directory / "package"


def pyodide_words(workload, mode, argument):
    return ["node", PEERS / "pyodide.mjs", pyodide_package(), mode, argument,
            *TEMPLATES[workload.template]]


@functools.cache
def pyodide_lacks(template):
    """Why Pyodide cannot load the template's modules; None when it can."""
    script = place("pyodide probe") / "main.py"
    script.write_text("")
    done = subprocess.run(["node", PEERS / "pyodide.mjs", pyodide_package(), "once", script,
                           *TEMPLATES[template]], capture_output=True, text=True, timeout=PATIENCE_S,
                          env=ENVIRONMENT, check=False)
    told = re.search(r"^unable: (.*)", done.stdout, re.MULTILINE)
    return None if done.returncode == 0 else told[1] if told else done.stderr[-200:]


def pyodide_fits(workload):
    pyodide_package()
    if workload.ending == "memory_limit":
        raise Unable("Pyodide's memory cannot be limited to 100 MiB")
    if reason := pyodide_lacks(workload.template):
        raise Unable(reason)


def pyodide(workload):
    pyodide_fits(workload)

    def make(directory, script, environment):
        return [*limit_time(workload), *pyodide_words(workload, "once", script)]
    return command(workload, "pyodide", "command", make, cgroup=True)


# Servers that are kept.

def listening(process, path):
    """Waits for the server's socket; what it says instead is the reason."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Unable(process.stdout.read().decode(errors="replace").strip()
                         .removeprefix("unable: ")[-200:])
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(path))
            return
        except OSError:
            time.sleep(0.02)
    raise Unable(f"not ready in {PATIENCE_S} s")


def server_words(workload, name, kind, directory, path):
    words = [CLIENT, "--code", directory / "main.py", "--time", workload.time_ms,
             "--server", path, *expectations(workload, kind, directory)]
    return [*words, *(["--fetch", MADE] if workload.fetches else [])]


def served(workload, name, kind, make):
    directory = place(name, workload.name)
    (directory / "main.py").write_text(workload.code)
    environment = dict(ENVIRONMENT)
    path = directory / "socket"
    words = make(directory, path, environment)
    process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=directory,
                               env=environment, start_new_session=True)
    try:
        listening(process, path)
    except Unable:
        end(process)
        raise
    return Runner(server_words(workload, name, kind, directory, path), environment, directory,
                  [process])


def fork_server(workload):
    needs("bwrap")

    def make(directory, path, environment):
        shutil.copytree(font_cache(), directory / ".matplotlib")
        shutil.copy(PEERS / "fork_server.py", directory)
        for name in WARM_UPS[workload.template]:
            shutil.copy(WARM_UP / name, directory / f"warm_up_{name}")
        environment["MPLCONFIGDIR"] = "/workspace/.matplotlib"
        return [*bubblewrap_words(directory), PYTHON, "-I", "fork_server.py", "socket",
                *(f"warm_up_{name}" for name in WARM_UPS[workload.template])]
    return served(workload, "fork server", "server", make)


def pyodide_kept(workload):
    pyodide_fits(workload)

    def make(directory, path, environment):
        return pyodide_words(workload, "serve", path)
    return served(workload, "pyodide kept", "pyodide", make)


# References.

def kept(workload):
    if workload.ending not in ("ok", "error"):
        raise Unable("nothing there could end it")
    directory = place("kept", workload.name)
    (directory / "main.py").write_text(workload.code)
    (directory / "expected").write_text(workload.output)
    file = reference_file(workload) if workload.fetches else "-"
    return Runner([PYTHON, "-I", PEERS / "kept.py", directory / "main.py",
                   ENDINGS["command"][workload.ending], directory / "expected", file,
                   *workload.texts], {**ENVIRONMENT, "MPLCONFIGDIR": str(font_cache())}, directory)


# execpy, through its library.

def engine_words(workload, directory, template=None):
    words = [CLIENT, "--programs", programs(), "--code", directory / "main.py",
             "--time", workload.time_ms, *expectations(workload, "result", directory)]
    if template:
        words += ["--template", template]
    return [*words, *(["--fetch", MADE] if workload.fetches else [])]


def on_demand(workload):
    directory = place("on demand", workload.name)
    (directory / "main.py").write_text(workload.code)
    return Runner([*engine_words(workload, directory), "--no-daemon"], ENVIRONMENT, directory)


def through_daemon(name, *words):
    """Contestants that share the daemon."""
    def start(workload):
        directory = place(name, workload.name)
        (directory / "main.py").write_text(workload.code)
        return daemon.shared(*POOL).client([*engine_words(workload, directory), *words])
    return start


def command_line(workload):
    def make(directory, script, environment):
        environment.update(daemon.shared(*POOL).environment)
        limits = ["--time", f"{workload.time_ms}ms"] if workload.time_ms else []
        files = ["--out", directory / "out"] if workload.fetches else []
        return [measure.EXECPY, "run", *limits, *files, script]
    return command(workload, "command line", "execpy", make, cgroup=True, fetched=f"out/{MADE}")


CONTESTANTS = [
    Contestant("hit", "execpy, pool hit", through_daemon("hit"), key=True, column="hit"),
    Contestant("idle", "execpy, pool hit after 200 ms of idleness", through_daemon("idle"),
               key=True, pause_ms=200, column="idle"),
    # No parked cell has a disk of this size: one is made for the run at once.
    Contestant("miss", "execpy, pool miss", through_daemon("miss", "--disk", 48 * MIB), key=True,
               column="miss"),
    Contestant("command line", "execpy run, with a daemon", command_line, column="command line"),
    Contestant("on demand", "execpy, forked on demand", on_demand, key=True, column="on demand"),
    Contestant("cold", "execpy, cold", cold, column="cold"),
    Contestant("fork server", "fork server in bubblewrap", fork_server),
    Contestant("pyodide kept", "Pyodide, kept", pyodide_kept),
    Contestant("python3", "python3", plain),
    Contestant("python3 -I -S", "python3 -I -S", plain_small),
    Contestant("bubblewrap", "bubblewrap + python3", bubblewrap, key=True),
    Contestant("firejail", "firejail + python3", firejail),
    Contestant("runc", "runc + python3", runc),
    Contestant("gvisor", "gVisor (ptrace) + python3", gvisor),
    Contestant("pyodide", "Pyodide, loaded for the run", pyodide),
    Contestant("kept", "warm interpreter, no isolation", kept, key=True, column="reference"),
]
