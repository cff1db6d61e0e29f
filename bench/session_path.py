#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a run in a session makes the machine do until its result is there: system calls, page
faults and switches, process by process. Unlike times these do not depend on what else it does.

    session_path.py [TEMPLATE [SETUP [CRASH]]]

Root, and the kernel's tracing (/sys/kernel/tracing). With CRASH each run is preceded by it."""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import measure

TRACING = pathlib.Path("/sys/kernel/tracing/instances/execpy-session-path")
EVENTS = ("raw_syscalls/sys_enter", "raw_syscalls/sys_exit", "sched/sched_switch",
          "exceptions/page_fault_user")
CLIENT = pathlib.Path(measure.EXECPY).parents[2] / "bench" / "bench-session"
STEP = "x = globals().get('x', 0) + 1\nx"
RUNS, GAP_MS = 60, 20
SLEEP = 230  # clock_nanosleep, by which the client parts its runs
LINE = re.compile(r"^\s*(.+)-(\d+)\s+\[\d+\]\s+\S+\s+[\d.]+: (\w+): (.*)$")


def children(pid):
    return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()]


def family(pid):
    try:
        return [pid] + [one for child in children(pid) for one in family(child)]
    except OSError:
        return []


def comm(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def roles(daemon, client):
    """pid → what it is. The judge is that child of the keeper that has children."""
    names = {client: "client"}
    for pid in family(daemon):
        try:
            if comm(pid) == "execpy-warden":
                names[pid] = "warden"
            elif comm(pid) == "execpy-keeper":
                names.update((child, "judge") for child in children(pid) if children(child))
        except OSError:
            pass
    return names


def count(lines, names):
    """[Counter of (process, what)] a run, from the client's waking to its next sleep."""
    runs, now = [], None
    for line in lines:
        match = LINE.match(line)
        if not match:
            continue
        who, pid, event, what = match[1], int(match[2]), match[3], match[4]
        if names.get(pid) == "client" and f"NR {SLEEP} " in what:
            if now is not None and event == "sys_enter":
                runs.append(now)
            now = collections.Counter() if event == "sys_exit" else None
        if now is None:
            continue
        name = names.get(pid, "runners" if who.startswith("memfd:") else None)
        if name and event == "sys_enter":
            now[name, "system calls"] += 1
        elif name and event == "page_fault_user":
            now[name, "page faults"] += 1
        elif event == "sched_switch":
            match = re.search(r"next_comm=(.*) next_pid=(\d+)", what)
            name = names.get(int(match[2]), "runners" if match[1].startswith("memfd:") else None)
            if name:
                now[name, "times on"] += 1
    return runs[5:]


def trace(arguments, place):
    configuration = pathlib.Path(place, "configuration")
    configuration.write_text(f"templates:\n  - name: {arguments[0]}\n    pool: {{min: 1, max: 1}}\n")
    daemon = subprocess.Popen([measure.EXECPY, "serve", "--listen", "none", "--socket",
                               f"{place}/socket", "--config", configuration], stderr=subprocess.PIPE, text=True)
    try:
        next(line for line in daemon.stderr if "serving on" in line)
        pids = " ".join(str(pid) for pid in [*family(daemon.pid), os.getpid()])
        for name, value in (("buffer_size_kb", "20000"), ("options/event-fork", "1"),
                            ("set_event_pid", pids)):
            (TRACING / name).write_text(value)
        for event in EVENTS:
            (TRACING / "events" / event / "enable").write_text("1")
        client = subprocess.Popen([CLIENT, f"{place}/socket", arguments[0], "300", str(GAP_MS),
                                   str(RUNS), arguments[1], STEP, *arguments[2:]],
                                  stdout=subprocess.DEVNULL)
        time.sleep(1)
        names = roles(daemon.pid, client.pid)
        if client.wait() or sorted(names.values()) != ["client", "judge", "warden", "warden"]:
            raise RuntimeError(f"the session did not do what it should: {names}")
        (TRACING / "tracing_on").write_text("0")
        return (TRACING / "trace").read_text().split("\n"), names
    finally:
        daemon.terminate()
        daemon.wait()


def main():
    arguments = [*sys.argv[1:], "bare", "1"][:max(2, len(sys.argv) - 1)]
    TRACING.mkdir()
    try:
        with tempfile.TemporaryDirectory() as place:
            lines, names = trace(arguments, place)
    finally:
        TRACING.rmdir()
    runs = count(lines, names)
    what = ("system calls", "page faults", "times on")
    print(f"a run, mean of {len(runs)}{'':14}" + "".join(f"{one:>16}" for one in what))
    for name in ("client", "warden", "judge", "runners"):
        print(f"{name:34}" + "".join(f"{sum(run[name, one] for run in runs) / len(runs):16.1f}"
                                     for one in what))


main()
