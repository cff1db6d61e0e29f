#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""execpy against its peers: latency, throughput, memory, what is left behind.

    warm.py [--quick] [--only PART…] [--workloads NAME…] [--contestants NAME…] [--seed N]

Parts: latency, throughput, memory, reclaim, leaks, report. Raw samples go to bench/results/warm/;
report writes docs/comparison.png and the tables of docs/performance.md from what is there.
With --quick everything is tried with few samples, and nothing is written there.
"""
import argparse
import json
import pathlib
import sys
import tempfile

import measure
from comparison import latency
from comparison.workloads import WORKLOADS

PARTS = ("latency",)


def keep(directory, name, facts):
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.json"
    lines = json.dumps({"machine": measure.machine(), **facts}, ensure_ascii=False, indent=1)
    # One line for a list of numbers.
    path.write_text(measure.compact(lines) + "\n")
    print(f"raw samples: {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few samples, to see whether it works")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--workloads", nargs="+", choices=[w.name for w in WORKLOADS])
    parser.add_argument("--contestants", nargs="+")
    parser.add_argument("--seed", type=int, default=20240229)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    place = (pathlib.Path(tempfile.mkdtemp(prefix="bench-")) if arguments.quick
             else measure.RESULTS / "warm")
    if "latency" in arguments.only:
        for workload in WORKLOADS:
            if arguments.workloads and workload.name not in arguments.workloads:
                continue
            records = latency.measure_workload(workload, arguments.seed, arguments.quick,
                                               arguments.contestants)
            latency.show(workload, records)
            keep(place, workload.name, {"unit": "ms", "workload": workload.title, "code": workload.code,
                                        "limit_ms": workload.time_ms, "seed": arguments.seed,
                                        "quick": arguments.quick, "contestants": records})


if __name__ == "__main__":
    sys.exit(main())
