# SPDX-License-Identifier: Apache-2.0
"""The witness: what the host looked like before a case, and that it looks the same after it.

It asserts the post-conditions a to d of every attack (cgroups, mounts, processes, files and the
secret); e, f and g (time, one valid result, the next run) belong to the run: see product.py.
"""
import contextlib
import ctypes
import hashlib
import os
import secrets
import shutil
import tempfile
import time
from pathlib import Path

from . import host

# Where code that got out would leave a file with the case's mark in its name.
OUTSIDE = ("/", "/tmp", "/var/tmp", "/dev/shm", "/dev", "/run", "/etc", "/usr", "/usr/lib",
           "/usr/bin", "/usr/local", "/usr/lib/python3", "/usr/lib/python3/dist-packages", "/var",
           "/root", "/home", "/srv", "/opt", "/workspace")
PATIENCE = 1.0 * host.SLOW  # seconds in which what is being torn down may still be seen


# Children (Popen) that somebody waits for: their status is not to be taken away by reaping
# orphans. Their pids are used again once they have ended.
waited_for = set()
# Daemons that outlive a test: what they consist of changes, and is counted (harness/daemon.py).
exempt = set()


def become_subreaper():
    """Orphans of every process started below come back to this process, so none is overlooked."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(36, 1, 0, 0, 0)


def descendants(exempted=False):
    """[(pid, name, state)] of every live process below this one; reaps what has ended.

    exempted: also those of a daemon that serves more than one test."""
    waited_for.difference_update([p for p in waited_for if p.returncode is not None])
    not_ours = {process.pid for process in waited_for}
    parents, info = {}, {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as stat:
                head, tail = stat.read().rsplit(b")", 1)
        except OSError:
            continue
        state, parent = tail.split()[:2]
        parents.setdefault(int(parent), []).append(int(entry))
        info[int(entry)] = (head.split(b"(", 1)[1].decode(errors="replace"), state.decode())
    found, queue = [], [os.getpid()]
    while queue:
        for pid in parents.get(queue.pop(), ()):
            if pid in exempt and not exempted:
                continue
            queue.append(pid)
            name, state = info[pid]
            if state in "ZX":
                if pid not in not_ours:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(pid, os.WNOHANG)
            else:
                found.append((pid, name, state))
    return found


def our_cgroups():
    """Directories named execpy* beneath each cgroup mount."""
    found = set()
    for mount, _, _ in host.cgroup_mounts():
        for base, names, _ in os.walk(mount):
            for name in names:
                if name.startswith("execpy"):
                    found.add(os.path.join(base, name))
            if base.count("/") - str(mount).count("/") > 6:
                names.clear()
    return found


def cgroup_is_left(path):
    """True when no process is in the directory or beneath it, and none can be about to enter it.

    On a shared machine there may be runs that are not of this suite: a directory whose name holds
    the pid of a live process that did not come from here belongs to one of them."""
    ours = {pid for pid, _, _ in descendants()}
    for part in Path(path).name.split("."):
        if part.isdigit() and int(part) not in ours and os.path.exists(f"/proc/{part}"):
            return False
    for base, _, _ in os.walk(path):
        try:
            if Path(base, "cgroup.procs").read_text().strip():
                return False
        except OSError:
            pass
    return True


def mounts():
    return Path("/proc/self/mountinfo").read_text().splitlines()


def snapshot(directory):
    """Every file beneath a directory: kind, mode, owner, size, time and content."""
    found = {}
    for base, names, files in os.walk(directory):
        for name in names + files:
            path = os.path.join(base, name)
            st = os.lstat(path)
            content = ""
            if os.path.isfile(path) and not os.path.islink(path):
                content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
            found[os.path.relpath(path, directory)] = (
                st.st_mode, st.st_uid, st.st_nlink, st.st_size, st.st_mtime_ns, content)
    return found


def marked(mark):
    """Names outside that carry the mark of a case."""
    found = []
    for directory in OUTSIDE:
        with contextlib.suppress(OSError):
            found += [f"{directory}/{name}" for name in os.listdir(directory) if mark in name]
    with contextlib.suppress(OSError):
        found += [line for line in Path("/proc/net/unix").read_text().splitlines() if mark in line]
    return found


def system_v():
    return [Path("/proc/sysvipc", name).read_text().splitlines()[1:]
            for name in ("shm", "sem", "msg") if Path("/proc/sysvipc", name).exists()]


class Canary:
    """A directory outside every run with a secret, a file and a tree that must stay as they are."""

    def __init__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="canary-"))
        os.chmod(self.directory, 0o755)
        self.secret = "canary" + secrets.token_hex(12)
        self.path = self.directory / "canary.txt"
        self.secret_path = self.directory / "secret.txt"
        self.path.write_text("this file never changes\n")
        self.secret_path.write_text(self.secret + "\n")
        (self.directory / "tree").mkdir()
        (self.directory / "tree" / "inner.txt").write_text("inner\n")
        for path in (self.path, self.secret_path, self.directory / "tree" / "inner.txt"):
            os.chmod(path, 0o666)
        os.chmod(self.directory / "tree", 0o777)

    def close(self):
        shutil.rmtree(self.directory, ignore_errors=True)


class Witness:
    """Created before a case; `check()` after it raises with everything that is not as it was."""

    def __init__(self, canary):
        self.canary = canary
        self.mark = "mark" + secrets.token_hex(6)
        self.processes = {pid for pid, _, _ in descendants()}
        self.cgroups = our_cgroups()
        self.mounts = mounts()
        self.files = snapshot(canary.directory)
        self.ipc = system_v()
        self.hostname = os.uname().nodename
        self.daemon_check = None  # set by a suite that has a daemon: what it consists of
        self.patience = PATIENCE

    def _differences(self, since):
        """What is not as it was; `since` holds what was left when asked before, and is updated:
        a cgroup counts only while the same one is there all the time."""
        alive = [p for p in descendants() if p[0] not in self.processes]
        if alive:
            yield f"processes are left: {alive}"
        groups = {g for g in our_cgroups() - self.cgroups if cgroup_is_left(g)}
        if "cgroups" in since:
            groups &= since["cgroups"]
        since["cgroups"] = groups
        if groups:
            yield f"cgroups are left: {sorted(groups)}"
        now = mounts()
        if now != self.mounts:
            yield ("mounts of the host changed: "
                   f"new {sorted(set(now) - set(self.mounts))}, gone {sorted(set(self.mounts) - set(now))}")
        found = marked(self.mark)
        if found:
            yield f"the code left something outside: {found}"
        files = snapshot(self.canary.directory)
        if files != self.files:
            changed = {k for k in files.keys() | self.files.keys()
                       if files.get(k) != self.files.get(k)}
            yield f"the canary's directory changed: {sorted(changed)}"
        if system_v() != self.ipc:
            yield f"System V objects changed: {system_v()}"
        if os.uname().nodename != self.hostname:
            yield f"the host's name changed to {os.uname().nodename}"
        if self.daemon_check:
            yield from self.daemon_check()

    def check(self):
        deadline, since = time.monotonic() + self.patience, {}
        while True:
            differences = list(self._differences(since))
            if not differences:
                return
            if time.monotonic() > deadline:
                raise AssertionError("; ".join(differences))
            time.sleep(0.02)

    def check_no_secret(self, *outputs):
        for output in outputs:
            data = output if isinstance(output, bytes) else str(output).encode("utf-8", "replace")
            assert self.canary.secret.encode() not in data, "the canary's secret is in an output"
