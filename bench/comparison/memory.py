# SPDX-License-Identifier: Apache-2.0
"""What parked cells weigh: the proportional set size of all processes of a daemon, and the memory
that the machine has left, with few and with many cells of one template; the difference is what one
more cell costs. And whether a thousand of them slow a run."""
import os
import resource
import statistics

from . import process_tree
from .contestants import engine_words
from .daemon import Daemon
from .runner import Unable, place
from .workloads import TEMPLATES, Workload

FEW, MANY = 4, 36
# The warden holds 25 descriptors for each cell; not every host allows it as many as it takes.
DESCRIPTORS = 26
QUICK_MANY = 12
THOUSAND, SMALL = 1000, 16
ROUNDS, EACH = 40, 5


def weigh(template, cells):
    daemon = Daemon(f"memory {template} {cells}", {template: (cells, cells)}, memory="16G")
    try:
        client = daemon.client(words(template))
        client.go(2)
        client.stop()
        pids = daemon.settle()
        return {"cells": cells, "processes": len(pids), "pss": process_tree.pss_bytes(pids),
                "available": process_tree.available_bytes()}
    finally:
        daemon.stop()


def words(template):
    workload = Workload("print", "print(55)", "print(55)", template, output="55\n")
    directory = place("memory", template)
    (directory / "main.py").write_text(workload.code)
    return engine_words(workload, directory, template)


def marginal(few, many, key):
    return abs(many[key] - few[key]) / (many["cells"] - few["cells"])


def measure_templates(quick):
    if os.geteuid() != 0:
        raise Unable("only root may read the memory of processes of other ids")
    told = {}
    for template in TEMPLATES:
        few, many = weigh(template, FEW), weigh(template, QUICK_MANY if quick else MANY)
        told[template] = {"few": few, "many": many,
                          "pss_bytes": marginal(few, many, "pss"),
                          "available_bytes": marginal(few, many, "available")}
    return told


def measure_thousand(quick):
    """print(55) with a few and with a thousand cells parked, in turns."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    cells = min(100 if quick else THOUSAND, most // DESCRIPTORS)
    before = process_tree.available_bytes()
    crowd = Daemon("thousand", {"bare": (cells, cells)}, memory="16G")
    try:
        crowded = crowd.client(words("bare"))
        crowded.go(2)
        pids = crowd.settle()
        told = {"cells": cells, "processes": len(pids), "pss": process_tree.pss_bytes(pids),
                "memory": before - process_tree.available_bytes()}
        few = Daemon("few", {"bare": (SMALL, SMALL)})
        try:
            alone = few.client(words("bare"))
            told["few_ms"], told["many_ms"] = [], []
            for _ in range(4 if quick else ROUNDS):
                for client, samples in ((alone, "few_ms"), (crowded, "many_ms")):
                    client.go(1)
                    told[samples] += [round(ms, 4) for ms, rest in client.go(EACH) if rest[2] == "1"]
            alone.stop()
        finally:
            few.stop()
        crowded.stop()
        return told
    finally:
        crowd.stop()


def show(templates, thousand):
    print("\nmemory of one more parked cell, MB: proportional set size; taken from the machine")
    for template, told in templates.items():
        print(f"{template:10} {told['pss_bytes'] / 1e6:8.2f} {told['available_bytes'] / 1e6:8.2f}")
    few, many = statistics.median(thousand["few_ms"]), statistics.median(thousand["many_ms"])
    cells = thousand["cells"]
    print(f"{cells} parked cells of bare: {thousand['pss'] / cells / 1e6:.2f} MB each, "
          f"{thousand['memory'] / cells / 1e6:.2f} MB of the machine's; "
          f"print(55) {many:.3f} ms, with {SMALL} cells {few:.3f} ms ({many / few:.2f} times)")
