#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""execpy against its peers: latency, throughput, memory, what is left behind.

    warm.py [--quick] [--only PART…] [--workloads NAME…] [--contestants NAME…] [--seed N]

Parts: latency, load, memory, aftermath, report. Raw samples go to bench/results/warm/; report
writes docs/comparison.png and the tables of docs/performance.md from what is there. With --quick
everything is tried with few samples, and all of it goes to a directory under /tmp.
"""
import argparse
import json
import pathlib
import signal
import sys
import tempfile

import measure
from comparison import aftermath, latency, load, memory, report
from comparison.runner import Unable
from comparison.workloads import WORKLOADS

PARTS = ("latency", "load", "memory", "aftermath", "report")


PACKAGES = ("python3", "python3-numpy", "python3-pandas", "python3-matplotlib", "libopenblas0-pthread",
            "libblas3", "bubblewrap", "firejail", "runc", "runsc", "nodejs")
MACHINE = {**measure.machine(), "packages": measure.packages(*PACKAGES)}


def keep(directory, name, facts):
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.json"
    lines = json.dumps({"machine": MACHINE, **facts}, ensure_ascii=False, indent=1)
    # One line for a list of numbers.
    path.write_text(measure.compact(lines) + "\n")
    print(f"raw samples: {path}")


def measure_latency(arguments, place):
    for workload in WORKLOADS:
        if arguments.workloads and workload.name not in arguments.workloads:
            continue
        records = latency.measure_workload(workload, arguments.seed, arguments.quick,
                                           arguments.contestants)
        latency.show(workload, records)
        keep(place, workload.name, {"unit": "ms", "workload": workload.title, "code": workload.code,
                                    "limit_ms": workload.time_ms, "seed": arguments.seed,
                                    "quick": arguments.quick, "contestants": records})


def measure_load(arguments, place):
    told = {}
    for template in load.TEMPLATES:
        told[template] = load.measure_template(template, arguments.seed, arguments.quick)
        load.show(template, told[template])
    keep(place, "load", {"seed": arguments.seed, "quick": arguments.quick, "templates": told})


def measure_memory(arguments, place):
    templates = memory.measure_templates(arguments.quick)
    thousand = memory.measure_thousand(arguments.quick)
    memory.show(templates, thousand)
    keep(place, "memory", {"quick": arguments.quick, "templates": templates, "thousand": thousand})


def measure_aftermath(arguments, place):
    reclaim = aftermath.measure_reclaim(arguments.quick)
    leaks = aftermath.measure_leaks(arguments.quick)
    aftermath.show(reclaim, leaks)
    keep(place, "aftermath", {"quick": arguments.quick, "reclaim_ms": reclaim, "leaks": leaks})


def write_report(arguments, place):
    report.write(place, to_documents=not arguments.quick)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few samples, to see whether it works")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--workloads", nargs="+", choices=[w.name for w in WORKLOADS])
    parser.add_argument("--contestants", nargs="+")
    parser.add_argument("--seed", type=int, default=20240229)
    arguments = parser.parse_args()
    # Ends as an exception does: daemons and servers are ended on the way.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(f"seed {arguments.seed}", flush=True)
    place = (pathlib.Path(tempfile.mkdtemp(prefix="bench-")) if arguments.quick
             else measure.RESULTS / "warm")
    steps = {"latency": measure_latency, "load": measure_load, "memory": measure_memory,
             "aftermath": measure_aftermath, "report": write_report}
    failed = 0
    for part in PARTS:
        if part not in arguments.only:
            continue
        try:
            steps[part](arguments, place)
        except (Unable, RuntimeError, OSError) as error:
            print(f"{part}: FAILED: {error}")
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
