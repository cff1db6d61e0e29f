# SPDX-License-Identifier: Apache-2.0
"""What the kernel says of a daemon and of everything below it."""
import os
import pathlib
import time

TICKS = os.sysconf("SC_CLK_TCK")
CGROUPS = pathlib.Path("/sys/fs/cgroup")


def read(pid, name):
    """A file of /proc; None when the process is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except OSError:
        return None


def fields(pid):
    """The fields of `stat` behind the name: state, parent …"""
    text = read(pid, "stat")
    return text.rpartition(")")[2].split() if text else None


def children_of_all():
    children = {}
    for entry in os.listdir("/proc"):
        found = fields(entry) if entry.isdigit() else None
        if found:
            children.setdefault(int(found[1]), []).append(int(entry))
    return children


def tree(root):
    """The pids of a process and of all below it."""
    children = children_of_all()
    pids, ahead = [], [root]
    while ahead:
        pid = ahead.pop()
        pids.append(pid)
        ahead += children.get(pid, [])
    return pids


def cpu_seconds(root):
    """User and system time of all of it, and of all that it has waited for."""
    total = 0
    for pid in tree(root):
        if found := fields(pid):
            total += sum(int(number) for number in found[11:15])
    return total / TICKS


def pss_bytes(pids):
    total = 0
    for pid in pids:
        for line in (read(pid, "smaps_rollup") or "").splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


def available_bytes():
    for line in open("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def rss_bytes(pid):
    for line in (read(pid, "status") or "").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def name(pid):
    return (read(pid, "comm") or "").strip()


def cgroup_directories(pids):
    """Those that hold these processes, in every hierarchy, as far as they are ours."""
    found = set()
    for pid in pids:
        for line in (read(pid, "cgroup") or "").splitlines():
            _, controllers, path = line.split(":", 2)
            if "/execpy." in path:
                place = controllers.removeprefix("name=") if controllers else ""
                found.add(CGROUPS / place / path.lstrip("/"))
    return found


def cgroup_count(pids):
    """All directories of the wardens that these processes belong to."""
    roots = set()
    for directory in cgroup_directories(pids):
        while not directory.name.startswith("execpy."):
            directory = directory.parent
        roots.add(directory)
    return sum(1 for root in roots for _ in os.walk(root))


def mounts(pids):
    """Over all mount namespaces among them, each counted once, and our own."""
    seen, total = set(), 0
    for pid in ["self", *pids]:
        try:
            space = os.readlink(f"/proc/{pid}/ns/mnt")
        except OSError:
            continue
        if space not in seen:
            seen.add(space)
            total += len((read(pid, "mountinfo") or "").splitlines())
    return total


def descriptors(pids):
    total = 0
    for pid in pids:
        try:
            total += len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            pass
    return total


def settle(root, still_s=1.0, patience_s=600):
    """Waits until the number of processes has not changed for a while; returns the pids."""
    deadline = time.monotonic() + patience_s
    last, since = None, time.monotonic()
    while time.monotonic() < deadline:
        pids = tree(root)
        if last is None or len(pids) != len(last):
            since = time.monotonic()
        elif time.monotonic() - since >= still_s:
            return pids
        last = pids
        time.sleep(0.1)
    raise RuntimeError(f"not still after {patience_s} s")
