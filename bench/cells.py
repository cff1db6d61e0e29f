#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a cell costs before and while it runs, without warden and engine around it: time to fork and
to park it, processor time until it is parked, memory, and the run of print(55) in it. The
reference, in the same run, is a loop of fork, exit and wait in an unconfined Python with the same
modules.

    cells.py [--samples N] [--cells N] [TEMPLATE…]

Memory can only be read by root.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess

import measure

GUEST_BUILD = pathlib.Path(measure.EXECPY).resolve().parent.parent
CELLS = GUEST_BUILD.parent / "bench" / "cells"
MODULES = {"bare": [], "numpy": ["numpy"], "pandas": ["numpy", "pandas"],
           "plot": ["numpy", "pandas", "matplotlib.pyplot"]}
FORK_LOOP = """
import gc, os, sys, time
for name in sys.argv[1:]:
    __import__(name)
gc.collect(), gc.freeze()
times = []
for i in range(110):
    began = time.perf_counter_ns()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    times.append((time.perf_counter_ns() - began) / 1000)
print(sorted(times[10:])[50])
"""


class Cells:
    """The program that plays the warden's part."""

    def __init__(self, template, guest=GUEST_BUILD / "guest" / "execpy-guest"):
        fonts = sorted((GUEST_BUILD / "guest" / "fonts").glob("fontlist-*.json"))[0]
        self.process = subprocess.Popen(
            [CELLS, guest, GUEST_BUILD / "jail" / "execpy-keeper", fonts, template],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.loaded = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"cells ended with {self.process.wait()}")
        return json.loads(line)

    def ask(self, command, answers=1):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return [self.answer() for _ in range(answers)]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def descendants(root):
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = pathlib.Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            parents.setdefault(int(stat.rsplit(")", 1)[1].split()[1]), []).append(int(entry))
    found, todo = [], [root]
    while todo:
        todo += (children := parents.get(todo.pop(), []))
        found += children
    return found


def memory(pid):
    """{kilobytes by name} of smaps_rollup."""
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {line.split(":")[0]: int(line.split()[1]) for line in lines}


def total_pss(root):
    return sum(memory(pid)["Pss"] for pid in descendants(root))


def page_tables(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmPTE"):
            return int(line.split()[1])
    return 0


def marginal(cells, count):
    """Kilobytes of PSS that one more parked cell costs, its init included."""
    cells.ask("park 2")
    few = total_pss(cells.process.pid)
    cells.ask(f"park {count}")
    many = total_pss(cells.process.pid)
    tables = max(page_tables(pid) for pid in descendants(cells.process.pid))
    cells.ask("drop")
    return {"pss_kb": (many - few) / count, "page_tables_kb": tables}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--cells", type=int, default=20)
    parser.add_argument("templates", nargs="*", metavar="TEMPLATE", default=[])
    arguments = parser.parse_args()
    kept = {}
    print(f"{'':8} {'loaded':>8} {'init':>7} {'fork':>7} {'parked':>7} {'CPU':>7} {'print':>12} "
          f"{'closed':>7} {'ended':>7} {'gone':>7} {'fork loop':>9} {'PSS':>7} {'tables':>7}")
    for template in arguments.templates or list(MODULES):
        fork_loop = float(subprocess.run(
            ["/usr/bin/python3", "-I", "-c", FORK_LOOP, *MODULES[template]], check=True, text=True,
            capture_output=True, env={"OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg",
                                      "NUMEXPR_MAX_THREADS": "1"}).stdout)
        cells = Cells(template)
        cells.ask("run 5 5 print(55)", 5)
        samples = cells.ask(f"run {arguments.samples} 20 print(55)", arguments.samples)
        if any(sample["output"] != "55 " for sample in samples):
            raise RuntimeError("a run printed something else")
        facts = marginal(cells, arguments.cells) if os.geteuid() == 0 else {}
        cells.close()
        middle = {key: statistics.median(sample[key] for sample in samples)
                  for key in samples[0] if key != "output"}
        first = [sample["first_us"] for sample in samples]
        print(f"{template:8} {cells.loaded['loaded_us'] / 1000:6.0f}ms {middle['init_us']:7.0f} "
              f"{middle['fork_us']:7.0f} {middle['park_us']:7.0f} {middle['parked_cpu_us']:7.0f} "
              f"{middle['first_us']:5.0f}/p99 {measure.quantile(first, .99):4.0f} "
              f"{middle['closed_us']:6.0f} {middle['ended_us']:7.0f} {middle['gone_us']:7.0f} {fork_loop:9.0f} "
              f"{facts.get('pss_kb', 0):5.0f}kB {facts.get('page_tables_kb', 0):5.0f}kB",
              flush=True)
        kept[template] = {"loaded": cells.loaded, "fork_loop_us": fork_loop, "samples": samples,
                          **facts}
    measure.keep("cells", {"unit": "us", **kept})


if __name__ == "__main__":
    main()
