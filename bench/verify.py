#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The verifier's rates and speed on tests/corpus, beside bandit's and pyflakes'.

verify.py [--rounds N] [--list]: --list names the scripts that are counted apart,
since they need processes, the network, ctypes or signals, told by what they
import, and the attacks that pass strict."""
import argparse
import json
import os
import random
import re
import statistics
import sys
import tempfile
from pathlib import Path

import measure
import task_clock

sys.path.insert(0, str(measure.ROOT / "tests" / "verifier"))
os.environ.setdefault("EXECPY_VERIFY_TOOL", str(
    Path(measure.EXECPY).parents[2] / "tests" / "verifier" / "verify-tool"))
import verdicts  # noqa: E402

verdicts.CHECKS = []

REPEAT = 20


COMMANDS = {
    "execpy": [measure.EXECPY, "check", "--no-daemon"],
    "bandit": ["/usr/bin/python3", "-m", "bandit", "-q", "-f", "json"],
    "pyflakes": ["/usr/bin/python3", "-m", "pyflakes"],
}


def write(items, directory):
    """Their paths, in the given order."""
    paths = [Path(directory) / f"{name}.py" for name, _ in items]
    for path, (_, code) in zip(paths, items):
        path.write_bytes(code)
    return [str(path) for path in paths]


def told(command, items):
    """What a command writes of these files."""
    with tempfile.TemporaryDirectory() as directory:
        done, _, _ = task_clock.run(COMMANDS[command] + write(items, directory))
    return (done.stdout + done.stderr if command == "pyflakes" else done.stdout).decode()


def bandit(items):
    """Names flagged with any severity, and with medium and up."""
    results = json.loads(told("bandit", items))["results"]
    name = lambda r: Path(r["filename"]).stem
    return {name(r) for r in results}, {name(r) for r in results if r["issue_severity"] != "LOW"}


def pyflakes(items):
    """Names with any message, and with an undefined name."""
    lines = [line for line in told("pyflakes", items).splitlines() if re.match(r".*\.py:\d+", line)]
    name = lambda line: Path(line.split(":", 1)[0]).stem
    return {name(line) for line in lines}, {name(line) for line in lines if "undefined name" in line}


def time_batches(items, rounds):
    """{command: {"wall": [ms a file, …], "processor": […]}}: each command is given all files at
    once, as a user would, its start included, in random order each round."""
    times = {command: {"wall": [], "processor": []} for command in COMMANDS}
    with tempfile.TemporaryDirectory() as directory:
        paths = write(items, directory)
        for _ in range(rounds):
            for command in random.sample(list(COMMANDS), len(COMMANDS)):
                done, wall, processor = task_clock.run(COMMANDS[command] + paths)
                if command == "execpy" and b" not judged" in done.stdout[-100:] + done.stderr:
                    raise RuntimeError(done.stderr.decode())
                times[command]["wall"].append(1000 * wall / len(items))
                times[command]["processor"].append(1000 * processor / len(items))
    return times


def print_batches(title, times):
    print(f"\na file in one batch of {title}, start included, ms: median (least … most); "
          "then how many times execpy's")
    for clock in ("wall", "processor"):
        print(f"{clock + ' time':16}", end="")
        own = times["execpy"][clock]
        for command, clocks in times.items():
            values = clocks[clock]
            ratios = [value / one for value, one in zip(values, own)]
            text = f"{command} {statistics.median(values):.3f} ({min(values):.3f} … {max(values):.3f})"
            if command != "execpy":
                text += (f", {statistics.median(ratios):.1f} times "
                         f"({min(ratios):.1f} … {max(ratios):.1f})")
            print(f"  {text}", end="")
        print()


def ours(items, policy):
    found = verdicts.verify_many(items, policy, "--any-file")
    return {v["name"] for v in found if v["decision"] == "block"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    attacks, honest, functions = verdicts.attacks(), verdicts.bigcodebench(), verdicts.humaneval()
    quiet = [(name, code) for name, code in honest if verdicts.is_quiet(code)]
    quiet_names = {name for name, _ in quiet}
    sets = (attacks, quiet, honest, functions)

    rows = {f"execpy {policy}": [ours(items, policy) for items in sets]
            for policy in ("strict", "standard", "open")}
    everything = attacks + honest + functions
    any_severity, medium = bandit(everything)
    messages, undefined = pyflakes(everything)
    for title, flagged in (("bandit, any severity", any_severity), ("bandit, medium and up", medium),
                           ("pyflakes, any message", messages), ("pyflakes, undefined names", undefined)):
        rows[title] = [flagged & {name for name, _ in items} for items in sets]

    titles = (f"attacks ({len(attacks)})", f"quiet scripts ({len(quiet)})",
              f"all scripts ({len(honest)})", f"HumanEval ({len(functions)})")
    print("refused (execpy) or flagged (others); an attack should be, the others should not\n")
    print(f"{'':28}" + "".join(f"{title:>24}" for title in titles))
    for title, found in rows.items():
        print(f"{title:28}" + "".join(
            f"{len(names):>14} ({100 * len(names) / len(items):5.1f} %)" for names, items in zip(found, sets)))

    times = [v["ms"] for v in verdicts.verify_many(honest, "strict", "--any-file", "--repeat", str(REPEAT))]
    median = statistics.median(times)
    scripts, all_files = (time_batches(items, options.rounds) for items in (honest, everything))
    print(f"\nwarm, one BigCodeBench script, best of {REPEAT}, processor ms: median {median:.3f}, "
          f"99th percentile {sorted(times)[len(times) * 99 // 100]:.3f}, most {max(times):.3f}")
    ratios = [value / median for value in scripts["bandit"]["processor"]]
    print(f"bandit, one of them in a batch, is {statistics.median(ratios):.1f} times the median "
          f"({min(ratios):.1f} … {max(ratios):.1f})")
    print_batches(f"{len(honest)} BigCodeBench scripts", scripts)
    print_batches(f"all {len(everything)} files", all_files)
    if not task_clock.is_exact():
        print("processor time lacks what died unwaited for: this user may not count it")

    line = "total = total + value * 2  # some words\nif total > 100:\n    print(names.get(str(total), 'none'))\n"
    print("\nsource size, ms, µs a KiB:")
    for size in (1 << 10, 1 << 14, 1 << 17, (1 << 20) - 64):
        code = "total = value = 1\nnames = {}\n" + line * ((size - 40) // len(line))
        ms = verdicts.verify_many([("size", code.encode())], "strict", "--repeat", "3")[0]["ms"]
        print(f"  {len(code):>9} bytes {ms:>10.3f} {1000 * ms / (len(code) / 1024):>10.1f}")

    if options.list:
        missed = sorted({name for name, _ in attacks} - rows["execpy strict"][0])
        print("\nattacks that pass strict:", ", ".join(missed) or "none")
        print("quiet scripts that strict refuses:", ", ".join(sorted(rows["execpy strict"][1])) or "none")
        print("\nscripts that need processes, the network, ctypes or signals, and by which import:")
        for name, code in honest:
            if name not in quiet_names:
                print(f"  {name}: {', '.join(sorted(verdicts.imports(code) & verdicts.NEEDS))}")
    measure.keep("verify", {"unit": "count of refused", "sets": titles,
                            "rows": {title: [len(names) for names in found] for title, found in rows.items()},
                            "warm_ms": times, "batch_ms_a_file": {"BigCodeBench": scripts, "all": all_files},
                            "packages": measure.packages("bandit", "pyflakes3", "python3.11")})


main()
