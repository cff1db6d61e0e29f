# SPDX-License-Identifier: Apache-2.0
"""What is left of runs: the time from a result until the cell's processes and cgroups are gone,
and what ten thousand runs leave behind."""
import statistics
import time

from . import process_tree
from .contestants import engine_words
from .daemon import Daemon
from .load import run
from .runner import Unable, place
from .workloads import TEMPLATES, WORKLOADS, Workload

POOL = 4
SAMPLES, QUICK_SAMPLES = 60, 5
RUNS, QUICK_RUNS = 10000, 200
BAD_RUNS, QUICK_BAD_RUNS = 50, 2
PATIENCE_S = 10


def words(workload, template):
    directory = place("aftermath", f"{workload.name} {template}")
    (directory / "main.py").write_text(workload.code)
    return engine_words(workload, directory, template)


def printing(template):
    return words(Workload("print", "print(55)", "print(55)", template, output="55\n"), template)


def gone(pid):
    return process_tree.read(pid, "stat") is None


def reclaim_once(client, daemon):
    """Milliseconds from the result until nothing of the cell is left. The cell that will be taken
    is not known before: it is the one of those parked that goes."""
    before = set(daemon.settle())
    directories = {pid: process_tree.cgroup_directories([pid]) for pid in before}
    _, rest = client.go(1)[0]
    result_ns, last_ns, left = int(rest[0]), None, set(before)
    end_ns = result_ns + PATIENCE_S * 10**9
    while (now_ns := time.monotonic_ns()) < end_ns:
        ended = {pid for pid in left if gone(pid)}
        if ended:
            left -= ended
            last_ns = now_ns
        # Main process and init; then their cgroups.
        if len(before) - len(left) >= 2:
            break
    if len(before) - len(left) < 2:
        raise Unable(f"the cell was still there after {PATIENCE_S} s")
    pending = set().union(*(directories[pid] for pid in before - left))
    pending -= set().union(*(directories[pid] for pid in left))
    while pending and time.monotonic_ns() < end_ns:
        pending = {directory for directory in pending if directory.exists()}
        last_ns = time.monotonic_ns()
    if pending:
        raise Unable(f"{len(pending)} cgroups were still there after {PATIENCE_S} s")
    return max(0, last_ns - result_ns) / 1e6


def measure_reclaim(quick):
    told = {}
    for template in TEMPLATES:
        daemon = Daemon(f"reclaim {template}", {template: (POOL, POOL)})
        client = daemon.client(printing(template))
        try:
            client.go(2)
            told[template] = [round(reclaim_once(client, daemon), 3)
                              for _ in range(QUICK_SAMPLES if quick else SAMPLES)]
        finally:
            client.stop()
            daemon.stop()
    return told


def look(daemon):
    pids = daemon.settle()
    # The daemon's child is the warden's janitor, whose first child is the warden.
    children = process_tree.children_of_all()
    warden = min(children[children[daemon.process.pid][0]])
    return {
        "processes": len(pids),
        "zombies": sum(process_tree.fields(pid)[0] == "Z" for pid in pids if process_tree.fields(pid)),
        "cgroups": process_tree.cgroup_count(pids),
        "mounts": process_tree.mounts(pids),
        "descriptors": process_tree.descriptors(pids),
        "warden_rss": process_tree.rss_bytes(warden),
        "daemon_rss": process_tree.rss_bytes(daemon.process.pid),
    }


def measure_leaks(quick):
    """After a few hundred runs, after ten thousand, and after some of every other workload."""
    daemon = Daemon("leaks", {name: (POOL, POOL) for name in TEMPLATES})
    load = lambda line, clients, runs: run([*line, "--load", clients, "--runs", runs, "--seconds", 3600],
                                           daemon.environment, daemon.directory, patience_s=3600)
    try:
        for template in TEMPLATES:
            load(printing(template), 2, 50)
        told = {"runs": QUICK_RUNS if quick else RUNS, "before": look(daemon)}
        load(printing("bare"), 2, told["runs"])
        told["after"] = look(daemon)
        for workload in WORKLOADS:
            load(words(workload, "auto"), 2, QUICK_BAD_RUNS if quick else BAD_RUNS)
        told["after_all_workloads"] = look(daemon)
        return told
    finally:
        daemon.stop()


def show(reclaim, leaks):
    print("\nfrom the result until the cell's processes and cgroups are gone, ms")
    for template, samples in reclaim.items():
        ordered = sorted(samples)
        print(f"{template:10} p50 {statistics.median(samples):7.2f}   p90 {ordered[len(ordered) * 9 // 10]:7.2f}"
              f"   most {ordered[-1]:7.2f}")
    print(f"\n{'':14}{'before':>14}{leaks['runs']:>10} runs{'all workloads':>16}")
    for key, before in leaks["before"].items():
        print(f"{key:14}{before:>14}{leaks['after'][key]:>15}{leaks['after_all_workloads'][key]:>16}")
