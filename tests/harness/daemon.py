# SPDX-License-Identifier: Apache-2.0
"""A daemon of the product: started, asked, looked at by way of /proc, and ended.

Its processes are told apart by where they stand in the tree:

    execpy serve ┬ janitor ─ warden ─ keeper ┬ template
                 └ server                    ├ init, one a cell
                                             └ main process, one a cell
"""
import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

from . import witness

START_S = 60.0


def children():
    """{pid: [pids of its live children]} of all processes."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError):
            tail = Path("/proc", entry, "stat").read_bytes().rsplit(b")", 1)[1].split()
            if tail[0] not in b"ZX":
                found.setdefault(int(tail[1]), []).append(int(entry))
    return found


def below(pid, tree=None):
    """Every live process below this one."""
    tree = tree or children()
    found, queue = [], [pid]
    while queue:
        more = tree.get(queue.pop(), ())
        found += more
        queue += more
    return found


def count(path):
    """Entries of a directory of /proc; 0 when the process has ended."""
    try:
        return len(os.listdir(path))
    except OSError:
        return 0


@contextlib.contextmanager
def stopped(pid):
    """Nothing is done by the process meanwhile."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def configuration(templates, **numbers):
    """The text of a configuration: {name: (min, max)}, or {name: {key: value}}; and numbers."""
    lines = [f"{key}: {value}" for key, value in numbers.items()] + ["templates:"]
    for name, what in templates.items():
        if not isinstance(what, dict):
            what = {"pool": what}
        lines.append(f"  - name: {name}")
        if "modules" in what:
            lines.append(f"    modules: [{', '.join(what['modules'])}]")
        if "warm_up" in what:
            lines.append(f"    warm_up: {json.dumps(what['warm_up'])}")
        if "pool" in what:
            lines.append(f"    pool: {{min: {what['pool'][0]}, max: {what['pool'][1]}}}")
    return "\n".join(lines) + "\n"


class Daemon:
    """`execpy serve` with this configuration (text); ready when it says that it serves."""

    def __init__(self, product, directory, text=None, *options, socket=None, env=None, wait=True,
                 launcher=(), listen=("none",)):
        self.product, self.directory = product, Path(directory)
        self.socket = Path(socket or self.directory / "execpy.sock")
        self.config = self.directory / "serve.yaml"
        words = ["serve", "--socket", self.socket]
        for address in listen:
            words += ["--listen", address]
        if text is not None:
            self.config.write_text(text)
            words += ["--config", self.config]
        self.log, self.told = [], threading.Condition()
        self.process = product.start(*words, *options, cwd=self.directory, launcher=launcher,
                                     env={"EXECPY_SOCKET": "", **(env or {})})
        self.pid = self.process.pid
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        witness.exempt.add(self.pid)
        if wait and not self.says("serving on"):
            self.kill()
            raise AssertionError(f"the daemon does not serve: {self.log}")

    def _read(self):
        for line in self.process.stderr:
            with self.told:
                self.log.append(line.decode("utf-8", "surrogateescape").rstrip("\n"))
                self.told.notify_all()
        with self.told:
            self.log.append(None)
            self.told.notify_all()

    @property
    def lines(self):
        with self.told:
            return [line for line in self.log if line is not None]

    def says(self, words, times=1, seconds=START_S):
        """Waits for so many lines with these words; None when it ended or was silent."""
        found = lambda: [line for line in self.log if line and words in line]
        with self.told:
            self.told.wait_for(lambda: len(found()) >= times or None in self.log,
                               seconds * self.product.SLOW)
            return found()[-1] if len(found()) >= times else None

    # -- its clients ----------------------------------------------------------------------------

    def environment(self, **more):
        return {"EXECPY_SOCKET": str(self.socket), **more}

    def execute(self, *words, env=None, **options):
        """A command of the product that uses this daemon."""
        return self.product.execute(*words, env=self.environment(**(env or {})), daemon=True,
                                    **options)

    def start(self, *words, env=None, **options):
        return self.product.start(*words, env=self.environment(**(env or {})), daemon=True,
                                  **options)

    def run(self, code, *options, **more):
        return self.product.run(code, "--policy", "open", *options, env=self.environment(),
                                daemon=True, **more)

    def status(self):
        done = self.product.execute("serve", "--status", "--json", "--socket", self.socket)
        assert done.returncode == 0, str(done)
        return json.loads(done.out)

    def template(self, name):
        return next(t for t in self.status()["templates"] if t["name"] == name)

    # -- its processes --------------------------------------------------------------------------

    def roles(self):
        """{role: [pid]} of what it consists of now."""
        tree = children()
        found = {"janitor": [], "server": []}
        for pid in tree.get(self.pid, ()):
            with contextlib.suppress(OSError):
                name = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
                found["server" if name == b"execpy-server" else "janitor"].append(pid)
        found["warden"] = [p for pid in found["janitor"] for p in tree.get(pid, ())]
        found["keeper"] = [p for pid in found["warden"] for p in tree.get(pid, ())]
        for role in ("template", "init", "cell", "user"):
            found[role] = []
        for pid in [p for keeper in found["keeper"] for p in tree.get(keeper, ())]:
            with contextlib.suppress(OSError):
                name = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
                leader = os.getsid(pid) == pid
                ours = b"guest" not in name
                found["init" if ours else "cell" if leader else "template"].append(pid)
                found["user"] += below(pid, tree)
        return found

    def everything(self):
        """Pids of all that belongs to it, itself included."""
        return [self.pid, *below(self.pid)]

    def counts(self):
        """What a run must not make more of, once it has been replaced by a parked cell."""
        roles = self.roles()
        pids = self.everything()
        found = {role: len(roles[role]) for role in roles}
        found["processes"] = len(pids)
        found["threads"] = sum(count(f"/proc/{pid}/task") for pid in pids)
        for role in ("keeper", "template", "warden"):
            found[f"descriptors of {role}s"] = sum(count(f"/proc/{p}/fd") for p in roles[role])
        found["descriptors of the daemon"] = count(f"/proc/{self.pid}/fd")
        return found

    def settled(self, cells, seconds=30):
        """The counts once so many cells are parked and nothing changes any more."""
        deadline, before = time.monotonic() + seconds * self.product.SLOW, None
        while True:
            now = self.counts()
            if now == before and now["cell"] == now["init"] == cells and not now["user"]:
                return now
            assert time.monotonic() < deadline, f"it does not settle: {now}"
            before = now
            time.sleep(0.05)

    def settle(self, cells):
        """From now on it must come back to what it consists of now."""
        self.parked = self.settled(cells, START_S)
        self.parked["warden's pid"] = self.roles()["warden"]

    def differences(self):
        """What there is more, or less, than when it had settled."""
        now = self.counts()
        now["warden's pid"] = self.roles()["warden"]
        for name, was in self.parked.items():
            if now[name] != was:
                yield f"the daemon has another {name}: {was}, now {now[name]}"

    # -- its end --------------------------------------------------------------------------------

    def stop(self, number=signal.SIGTERM, timeout=20):
        """Asks it to end; its exit status."""
        self.process.send_signal(number)
        return self.wait(timeout)

    def wait(self, timeout=20):
        try:
            return self.process.wait(timeout * self.product.SLOW)
        finally:
            if self.process.poll() is not None:
                self._forget()

    def kill(self):
        """kill -9, and what it leaves behind is seen as anybody's."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        self._forget()

    def _forget(self):
        witness.exempt.discard(self.pid)
        self.reader.join(5)
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()

    def close(self):
        if self.process.poll() is None:
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                self.kill()
