#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Parity: what passes with the plain interpreter passes inside, with the same result.

Runs the tasks of tests/corpus outside (once; see baseline.py) and inside, and exits 1 when a
task that passes outside does not pass inside and is not in exceptions.toml. A task that fails
outside (a library is missing, it wants the network, its tests are older than the library) says
nothing about the sandbox and is not counted.
"""

import argparse
import collections
import os
import re
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor

import runners
import tasks
from baseline import Baseline

SECONDS = 60
# Inside, the clock on the wall gets more, for on a busy machine it says nothing about the
# sandbox, and a cold start and the drawing of left figures come on top; CPU time does not.
WALL_SECONDS = 2 * SECONDS
PATIENCE_SECONDS = WALL_SECONDS + 30
LIMITS = ["--time", f"{WALL_SECONDS}s", "--cpu", f"{SECONDS}s", "--memory", "1G",
          "--disk", "256M", "--processes", "256"]
EXCEPTIONS = runners.pathlib.Path(__file__).resolve().with_name("exceptions.toml")
MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
NO_NETWORK = re.compile(r"Network is unreachable|name resolution|urlopen error"
                        r"|Max retries exceeded|nltk\.download")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--tenth", action="store_true", help="every tenth task (the default)")
    which.add_argument("--all", action="store_true", help="all tasks")
    which.add_argument("--task", action="append", metavar="ID", help="only this one; repeatable")
    parser.add_argument("--policy", default="open", help="policy inside (default: %(default)s)")
    parser.add_argument("-j", type=int, default=2, dest="jobs", metavar="N",
                        help="tasks at a time (default: %(default)s)")
    parser.add_argument("--baseline", metavar="FILE",
                        help="where to remember what passes outside (default: in build/)")
    parser.add_argument("--fresh", action="store_true", help="do not believe that file")
    parser.add_argument("--outside-only", action="store_true", help="only make that file")
    arguments = parser.parse_args()
    if arguments.baseline is None:
        build = os.environ.get("MESON_BUILD_ROOT", runners.REPOSITORY / "build")
        arguments.baseline = os.path.join(build, "parity-outside.json")
    return arguments


def choose(arguments):
    everything = tasks.load()
    if arguments.task:
        chosen = [task for task in everything if task.id in arguments.task]
        if len(chosen) != len(set(arguments.task)):
            sys.exit("run.py: no such task among " + " ".join(arguments.task))
        return chosen, everything
    return (everything if arguments.all else tasks.tenth(everything)), everything


def load_exceptions(policy, everything):
    """Task id → reason, for this policy."""
    with open(EXCEPTIONS, "rb") as file:
        entries = tomllib.load(file).get("task", [])
    known = {task.id for task in everything}
    reasons = {}
    for entry in entries:
        unknown_keys = set(entry) - {"id", "reason", "policy"}
        if unknown_keys or entry.get("id") not in known or not entry.get("reason"):
            sys.exit(f"run.py: exceptions.toml: bad entry {entry}")
        if policy in entry.get("policy", [policy]):
            reasons[entry["id"]] = entry["reason"]
    return reasons


def passed_outside(outcome):
    return outcome.how == "exit 0" and tasks.ran(outcome.stdout)


def passed_inside(outcome):
    return outcome.how == "ok" and outcome.exit_code == 0 and tasks.ran(outcome.stdout)


def why_not(outcome):
    """One phrase for the reason that a task fails outside."""
    if outcome.how == "timeout":
        return "takes too long"
    missing = MISSING_MODULE.search(outcome.stderr)
    if missing:
        return "not installed: " + missing[1].split(".")[0]
    if NO_NETWORK.search(outcome.stderr):
        return "wants the network"
    return "its own tests fail"


def run_outside(outside, chosen, baseline, jobs):
    """Fills the baseline for the chosen tasks that it does not know yet."""
    todo = [task for task in chosen if task.id not in baseline.entries]
    with ThreadPoolExecutor(jobs) as pool:
        for task, outcome in zip(todo, pool.map(lambda t: outside.run(t.script, SECONDS), todo)):
            passed = passed_outside(outcome)
            baseline.add(task, passed, "" if passed else why_not(outcome), outcome.seconds)
            baseline.save()
    return len(todo)


def report_outside(chosen, baseline, tried):
    entries = [baseline.entries[task.id] for task in chosen]
    count = sum(entry["passed"] for entry in entries)
    seconds = sum(entry["seconds"] for entry in entries)
    source = f"{tried} run now, the others remembered" if tried < len(chosen) else "run now"
    print(f"outside: {count} of {len(chosen)} tasks pass ({source}; {seconds:.1f} s of run time)")
    reasons = collections.Counter(entry["why"] for entry in entries if not entry["passed"])
    if reasons:
        print("  not counted, because they fail outside: "
              + ", ".join(f"{why} ({n})" for why, n in reasons.most_common()))


def verdict(task, inside, outside):
    """The task's outcome inside, and whether it is steady.

    Some tasks draw random numbers and fail once in a while, anywhere. So a failure is believed
    only when it happens in two of three runs and two more runs outside pass.
    """
    first = inside.run(task.script, PATIENCE_SECONDS)
    if passed_inside(first):
        return first, True
    for _ in range(2):
        again = inside.run(task.script, PATIENCE_SECONDS)
        if not passed_inside(again):
            steady = all(passed_outside(outside.run(task.script, SECONDS)) for _ in range(2))
            return first, steady
    return first, False


def main():
    arguments = parse_arguments()
    chosen, everything = choose(arguments)
    reasons = load_exceptions(arguments.policy, everything)
    baseline = Baseline(arguments.baseline, arguments.fresh)
    binary = runners.execpy_binary()
    if binary is None and not arguments.outside_only:
        sys.exit("run.py: no execpy to test: build it, or set EXECPY_BIN")

    outside = runners.Outside()
    if outside.note:
        print(outside.note)
    try:
        tried = run_outside(outside, chosen, baseline, arguments.jobs)
        report_outside(chosen, baseline, tried)
        if arguments.outside_only:
            return 0
        return compare(arguments, binary, chosen, baseline, outside, reasons)
    finally:
        outside.close()


def compare(arguments, binary, chosen, baseline, outside, reasons):
    counted = [task for task in chosen if baseline.entries[task.id]["passed"]]
    inside = runners.Inside(binary, arguments.policy, LIMITS)
    passed = failed = skipped = same = 0
    seconds = 0.0
    try:
        with ThreadPoolExecutor(arguments.jobs) as pool:
            judged = pool.map(lambda task: verdict(task, inside, outside), counted)
            for task, (outcome, steady) in zip(counted, judged):
                seconds += outcome.seconds
                same += passed_inside(outcome) or not steady
                if passed_inside(outcome):
                    passed += task.id not in reasons
                    if task.id in reasons:
                        failed += 1
                        print(f"{task.id}: passes, so its entry in exceptions.toml must go")
                elif not steady:
                    passed += 1
                    print(f"{task.id}: passes only sometimes, outside or inside; not a difference")
                elif task.id in reasons:
                    skipped += 1
                    print(f"{task.id}: excepted ({reasons[task.id]})")
                else:
                    failed += 1
                    print(f"{task.id}: passes outside, inside {outcome.how}"
                          + (f", exit {outcome.exit_code}" if outcome.exit_code else ""))
                    print(outcome.tail(), flush=True)
    finally:
        inside.close()
    plain_seconds = sum(baseline.entries[task.id]["seconds"] for task in counted)
    print(f"inside, policy {arguments.policy}: {same} of {len(counted)} pass "
          f"({seconds:.1f} s of run time; the same tasks outside {plain_seconds:.1f} s)")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
