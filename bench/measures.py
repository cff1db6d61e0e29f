#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What each measure of speed gives: the guest is built once for each without that one (the build
option `slow_without`), and all of them make and run cells in turns.

    measures.py [--report] [--rounds N] [--templates N] [TEMPLATE…]

Each round makes a few cells of every build, in random order; after some rounds all templates are
loaded anew, since where things lie in them is never the same. Times are the tenth percentile: what
else the machine does only adds to them. Writes docs/performance.md; with --report from the samples
that are there. Root is needed, to read the memory of cells.
"""
import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys

import measure
from cells import Cells, GUEST_BUILD, marginal

EACH, CELLS = 5, 15
BEGIN = "<!-- measures: made by bench/measures.py; do not edit -->"
END = "<!-- measures: end -->"
DOCUMENT = measure.ROOT / "docs" / "performance.md"
TITLES = {
    "none": "all of them",
    "huge_pages": "without huge pages below arenas and heap",
    "filled_holes": "without filling the holes in both before the first fork",
    "template_rehearsals": "without the template's 20 rehearsals",
    "cell_rehearsal": "without each cell's rehearsal before it parks",
    "prepared_streams": "without standard streams made in the template",
    "numpy_in_place": "without seeding numpy in place",
    "huge_interpreter": "without the interpreter's code in huge pages",
}
COLUMNS = {"fork_us": "fork, µs", "parked_faults": "page faults until parked",
           "parked_cpu_us": "processor time until parked, µs",
           "closed_us": "print(55), µs", "ended_us": "… to its process's end, µs"}


def variants():
    text = (measure.ROOT / "meson_options.txt").read_text()
    return re.findall(r"'(\w+)'", re.search(r"'slow_without'.*?choices: \[(.*?)\]", text, re.DOTALL)[1])


def build(name):
    """The guest program without the measure `name`."""
    if name == "none":
        return GUEST_BUILD / "guest" / "execpy-guest"
    directory = GUEST_BUILD.parent / "slow" / name
    if not (directory / "build.ninja").exists():
        subprocess.run(["meson", "setup", str(directory), str(measure.ROOT), f"-Dslow_without={name}"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", str(directory), "src/guest/execpy-guest"], check=True,
                   stdout=subprocess.DEVNULL)
    return directory / "src" / "guest" / "execpy-guest"


def compare(template, guests, rounds, loads):
    """{variant: {column: […], …, "pss_kb": […]}}"""
    found = {name: {column: [] for column in (*COLUMNS, "pss_kb")} for name in guests}
    for _ in range(loads):
        cells = {name: Cells(template, guest) for name, guest in guests.items()}
        for number in range(-1, rounds):
            for name in random.sample(list(cells), len(cells)):
                runs = cells[name].ask(f"run {EACH} 20 print(55)", EACH)
                if any(run["output"] != "55 " for run in runs):
                    raise RuntimeError(f"{name}: a run printed something else")
                for column in COLUMNS if number >= 0 else ():
                    found[name][column] += [run[column] for run in runs]
        for name, one in cells.items():
            found[name]["pss_kb"].append(marginal(one, CELLS)["pss_kb"])
            one.close()
    return found


def table(template, found):
    lines = [f"| template {template}, tenth percentile | " + " | ".join(COLUMNS.values()) + " | a parked cell, MB |",
             "|---" + "|--:" * (len(COLUMNS) + 1) + "|"]
    for name, facts in found.items():
        times = [measure.quantile(facts[column], .1) for column in COLUMNS]
        lines.append(f"| {TITLES[name]} | " + " | ".join(f"{time:,.0f}" for time in times)
                     + f" | {statistics.mean(facts['pss_kb']) / 1000:.2f} |")
    return [*lines, ""]


def write(facts):
    document, machine = DOCUMENT.read_text(), facts["machine"]
    if BEGIN not in document or END not in document:
        raise RuntimeError(f"{DOCUMENT.name} lacks the marks of the measures")
    lines = [BEGIN, ""]
    for template, found in facts["templates"].items():
        lines += table(template, found)
    lines += [f"Linux {machine['kernel']}, {machine['processor']}, {machine['processors']} processors, load "
              f"{machine['load_before']:.1f}, {machine['date']}; samples in `bench/results/measures.json`.", "", END]
    DOCUMENT.write_text(re.sub(re.escape(BEGIN) + ".*" + re.escape(END), lambda _: "\n".join(lines), document,
                               flags=re.DOTALL))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", action="store_true", help="measure nothing, write the tables")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--templates", type=int, default=3, help="how often each is loaded")
    parser.add_argument("named", nargs="*", metavar="TEMPLATE")
    arguments = parser.parse_args()
    if not arguments.report:
        if os.geteuid() != 0:
            sys.exit("measures.py: only root may read the memory of cells")
        guests = {name: build(name) for name in variants()}
        found = {template: compare(template, guests, arguments.rounds, arguments.templates)
                 for template in arguments.named or ["bare", "plot"]}
        measure.keep("measures", {"unit": "us", "templates": found})
    write(json.loads((measure.RESULTS / "measures.json").read_text()))


if __name__ == "__main__":
    main()
