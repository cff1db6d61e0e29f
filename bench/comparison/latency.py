# SPDX-License-Identifier: Apache-2.0
"""From request to checked result: every contestant on every workload, in turns.

All contestants of a workload stand ready. In each round they come in random order; at its turn a
contestant makes one run that does not count, so that it is not measured with another's leavings
in the caches, and then its samples. A contestant that takes long makes fewer samples, unless a
target is measured by it; an endless loop takes as long for all, and none makes all its samples.
"""
import math
import random
import statistics

import measure
from .contestants import CONTESTANTS
from .runner import Unable

SAMPLES = 200
ROUNDS = 20
BUDGET_S = 20
LEAST = 10
FAULTS = 3
QUICK = {"samples": 10, "rounds": 2, "budget": 1, "least": 2}


class Entry:
    def __init__(self, contestant, workload, plan):
        self.contestant, self.workload, self.runner = contestant, workload, None
        self.samples, self.told, self.failed, self.faults = [], [], None, []
        self.target = self.each = self.uncounted = 0
        self.start()
        while self.runner and not self.target:
            try:
                self.warm_up(plan)
            except Unable as error:
                self.fault(error)

    def start(self):
        try:
            self.runner = self.contestant.start(self.workload)
        except Unable as error:
            self.fail(error)

    def stop(self):
        if self.runner:
            self.runner.stop()
            self.runner = None

    def fail(self, reason):
        self.failed = str(reason)
        self.stop()

    def warm_up(self, plan):
        """A few runs, from which follows how many samples it will make."""
        first = self.runner.go(1)[0][0]
        times = [ms for ms, _ in self.runner.go(1 if first > 1000 else 5)]
        seconds = statistics.median(times) / 1000 + self.contestant.pause_ms / 1000
        target = plan["samples"]
        whole = self.contestant.key and not plan["quick"] and self.workload.ending != "timeout"
        if seconds * target > plan["budget"] and not whole:
            target = max(plan["least"], int(plan["budget"] / seconds))
        self.target, self.each = target, math.ceil(target / plan["rounds"])
        self.uncounted = int(seconds < 0.5)

    def turn(self):
        if len(self.samples) >= self.target:
            return
        try:
            if self.uncounted:
                self.runner.go(1, self.contestant.pause_ms)
            count = min(self.each, self.target - len(self.samples))
            for ms, told in self.runner.go(count, self.contestant.pause_ms):
                self.samples.append(round(ms, 4))
                self.told.append(told)
        except Unable as error:
            self.fault(error)

    def fault(self, error):
        """A run went wrong: a peer may do that a few times, and it is told."""
        self.faults.append(str(error))
        if self.contestant.column != "peer" or len(self.faults) > FAULTS:
            self.fail(error)
        else:
            self.stop()
            self.start()

    def record(self):
        record = {"title": self.contestant.title, "column": self.contestant.column,
                  "failed": self.failed, "faults": self.faults, "ms": [] if self.failed else self.samples}
        if not self.failed and self.told and len(self.told[0]) == 3:
            self.sort_out(record)
        return record

    def sort_out(self, record):
        """A hit is a run whose cell was parked before it was asked for, a miss is any other:
        those of the other kind do not count, but are told."""
        wanted = {"hit": "1", "idle": "1", "miss": "0", "on demand": "0"}[record["column"]]
        right = [warm == wanted for _, _, warm in self.told]
        record["other_ms"] = [ms for ms, good in zip(record["ms"], right) if not good]
        record["ms"] = [ms for ms, good in zip(record["ms"], right) if good]
        record["wait_ms"] = [float(told[1]) for told, good in zip(self.told, right) if good]
        if not record["ms"]:
            record["failed"] = f"none of {len(right)} samples was a pool {record['column']}"


def plan_of(quick):
    if quick:
        return {**QUICK, "quick": True}
    return {"samples": SAMPLES, "rounds": ROUNDS, "budget": BUDGET_S, "least": LEAST, "quick": False}


def measure_workload(workload, seed, quick, only):
    plan, order = plan_of(quick), random.Random(f"{seed} {workload.name}")
    entries = []
    try:
        for contestant in CONTESTANTS:
            if only and contestant.name not in only:
                continue
            entries.append(Entry(contestant, workload, plan))
        for number in range(plan["rounds"]):
            # Those that make few samples come in every other round, or still fewer.
            turn = [entry for entry in entries if entry.runner
                    and number % max(1, plan["rounds"] // entry.target) == 0]
            order.shuffle(turn)
            for entry in turn:
                entry.turn()
    finally:
        for entry in entries:
            entry.stop()
    return {entry.contestant.name: entry.record() for entry in entries}


def show(workload, records):
    print(f"\n{workload.title}: ms from request to checked result")
    print(f"{'':42} {'p50':>10} {'p90':>10} {'p99':>10} {'samples':>8}   ×")
    base = records.get("bubblewrap", {}).get("ms")
    base = statistics.median(base) if base else None
    for record in records.values():
        if record["failed"]:
            print(f"{record['title']:42} failed: {record['failed']}")
            continue
        p50 = statistics.median(record["ms"])
        p90, p99 = (measure.quantile(record["ms"], share) for share in (.9, .99))
        ratio = f"{p50 / base:.3f}" if base else ""
        print(f"{record['title']:42} {p50:10.3f} {p90:10.3f} {p99:10.3f} {len(record['ms']):8}   {ratio}")
        if record["faults"]:
            print(f"{'':42} {len(record['faults'])} runs failed: {record['faults'][-1]}")
