# SPDX-License-Identifier: Apache-2.0
"""Many clients at once: runs a second until the pool drains and sustained, beside a loop of fork,
exit and wait of an interpreter that has imported and warmed up the same; and what a run costs in
processor time, with the cell that takes its place."""
import json
import random
import statistics
import subprocess
import time

from . import process_tree
from .contestants import bubblewrap_words, engine_words, fork_server, server_words
from .daemon import Daemon
from .runner import BUILD, CLIENT, ENVIRONMENT, PLACE, PYTHON, WARM_UP, Unable, place
from .workloads import WARM_UPS, Workload

CLIENTS = (1, 2, 4, 8)
POOL = 48
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
TEMPLATES = ("bare", "plot")
SECONDS, REPEATS = 3, 3
QUICK_SECONDS, QUICK_REPEATS = 1, 1
PATIENCE_S = 120


def run(words, environment, directory, patience_s=PATIENCE_S):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          timeout=patience_s, env=environment, cwd=directory, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise Unable((done.stdout + done.stderr).strip()[-300:]) from error


def rate(told):
    return told["runs"] / told["seconds"]


class Execpy:
    """Through a daemon that keeps one template."""

    def __init__(self, template):
        self.template = template
        self.daemon = Daemon(f"load {template}", {template: (POOL, POOL)})
        self.directory = place("load", template)
        self.workload = Workload("print", "print(55)", "print(55)", template, output="55\n")
        (self.directory / "main.py").write_text(self.workload.code)
        self.words = engine_words(self.workload, self.directory, template)

    def load(self, clients, *words):
        self.daemon.settle()
        return run([*self.words, "--load", clients, *words], self.daemon.environment, self.directory)

    def burst(self, clients, seconds):
        """As many runs as there are cells, once the pool is full again after each client's first."""
        return self.load(clients, "--seconds", 60, "--runs", POOL, "--settle", 2000)

    def sustained(self, clients, seconds):
        self.daemon.settle()
        before = process_tree.cpu_seconds(self.daemon.process.pid)
        told = self.load(clients, "--seconds", seconds)
        self.daemon.settle()
        cost = process_tree.cpu_seconds(self.daemon.process.pid) - before
        # The clients' first runs cost, too.
        told["cpu_ms"] = 1000 * cost / (told["runs"] + clients)
        return told

    def stop(self):
        self.daemon.stop()


def fork_loop(template, tunables):
    files = [WARM_UP / name for name in WARM_UPS[template]]
    return lambda clients, seconds: run([BUILD / "bench" / "fork-loop", clients, seconds, *files],
                                        {**ENVIRONMENT, **tunables}, None)


def forked(template):
    """The fork server of the comparison, with this template's imports and print(55)."""
    workload = Workload(f"load {template}", "print(55)", "print(55)", template, output="55\n")
    server = fork_server(workload)
    directory = place("load", f"fork server {template}")
    (directory / "main.py").write_text(workload.code)
    path = PLACE / "fork server" / workload.name / "socket"
    words = server_words(workload, "fork server", "server", directory, path)
    return server, lambda clients, seconds: run([*words, "--load", clients, "--seconds", seconds],
                                                ENVIRONMENT, directory)


def bubblewrapped():
    directory = place("load", "bubblewrap")
    (directory / "expected").write_text("55\n")
    words = [CLIENT, "--expect-status", "0", "--expect-output", directory / "expected"]
    command = [*bubblewrap_words(directory), PYTHON, "-I", "-c", "print(55)"]
    return lambda clients, seconds: run([*words, "--load", clients, "--seconds", seconds, "--", *command],
                                        ENVIRONMENT, directory)


def measure_template(template, seed, quick):
    order = random.Random(f"{seed} load {template}")
    execpy = Execpy(template)
    server, server_load = forked(template)
    ways = {"execpy, until the pool drains": execpy.burst, "execpy, sustained": execpy.sustained,
            "fork, exit, wait": fork_loop(template, {}),
            "fork, exit, wait, huge pages": fork_loop(template, HUGE_PAGES),
            "fork server in bubblewrap": server_load}
    if template == "bare":
        ways["bubblewrap + python3"] = bubblewrapped()
    told = {way: {clients: [] for clients in CLIENTS} for way in ways}
    seconds, repeats = (QUICK_SECONDS, QUICK_REPEATS) if quick else (SECONDS, REPEATS)
    try:
        for _ in range(repeats):
            turns = [(way, clients) for way in ways for clients in CLIENTS]
            order.shuffle(turns)
            for way, clients in turns:
                told[way][clients].append(ways[way](clients, seconds))
                time.sleep(0.2)
    finally:
        execpy.stop()
        server.stop()
    return told


def middle(found, key=None):
    return statistics.median(rate(one) if key is None else one[key] for one in found)


def share(ways, clients):
    """Of the faster of the two loops, with as many clients."""
    loops = [middle(ways[way][clients]) for way in ways if way.startswith("fork, exit")]
    return middle(ways["execpy, sustained"][clients]) / max(loops)


def show(template, told):
    print(f"\nprint(55) in template {template}: runs a second with " +
          ", ".join(f"{clients}" for clients in CLIENTS) + " clients")
    for way, found in told.items():
        print(f"{way:34}" + "".join(f"{middle(one):10.1f}" for one in found.values()))
    print(f"{'share of the faster loop':34}" + "".join(f"{share(told, clients):10.2f}" for clients in CLIENTS))
    print(f"{'processor time a run, ms':34}" + "".join(
        f"{middle(told['execpy, sustained'][clients], 'cpu_ms'):10.2f}" for clients in CLIENTS))
