#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The verifier's rates and speed on tests/corpus, beside bandit's and pyflakes'.

verify.py [--list]: --list names the scripts that are counted apart, since they
need processes, the network, ctypes or signals, told by what they import, and
the attacks that pass strict."""
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import measure

sys.path.insert(0, str(measure.ROOT / "tests" / "verifier"))
os.environ.setdefault("EXECPY_VERIFY_TOOL", str(
    Path(measure.EXECPY).parents[2] / "tests" / "verifier" / "verify-tool"))
import verdicts  # noqa: E402

verdicts.CHECKS = []

REPEAT = 20


def processor_seconds():
    """Of all children so far: unlike the clock it does not count other work on the machine."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def write(items, directory):
    for name, code in items:
        (directory / f"{name}.py").write_bytes(code)


def bandit(items):
    """Names flagged with any severity, with medium and up, and the seconds for all."""
    with tempfile.TemporaryDirectory() as directory:
        write(items, Path(directory))
        start = processor_seconds()
        done = subprocess.run(["/usr/bin/python3", "-m", "bandit", "-q", "-f", "json", "-r", directory],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        seconds = processor_seconds() - start
    results = json.loads(done.stdout)["results"]
    name = lambda r: Path(r["filename"]).stem
    return ({name(r) for r in results}, {name(r) for r in results if r["issue_severity"] != "LOW"}, seconds)


def pyflakes(items):
    """Names with any message, with an undefined name, and the seconds for all."""
    with tempfile.TemporaryDirectory() as directory:
        write(items, Path(directory))
        start = processor_seconds()
        done = subprocess.run(["/usr/bin/python3", "-m", "pyflakes", directory], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        seconds = processor_seconds() - start
    lines = [line for line in done.stdout.decode().splitlines() if re.match(r".*\.py:\d+", line)]
    name = lambda line: Path(line.split(":", 1)[0]).stem
    return {name(line) for line in lines}, {name(line) for line in lines if "undefined name" in line}, seconds


def ours(items, policy):
    found = verdicts.verify_many(items, policy, "--any-file")
    return {v["name"] for v in found if v["decision"] == "block"}


def main():
    attacks, honest, functions = verdicts.attacks(), verdicts.bigcodebench(), verdicts.humaneval()
    quiet = [(name, code) for name, code in honest if verdicts.is_quiet(code)]
    quiet_names = {name for name, _ in quiet}
    sets = (attacks, quiet, honest, functions)

    rows = {f"execpy {policy}": [ours(items, policy) for items in sets]
            for policy in ("strict", "standard", "open")}
    everything = attacks + honest + functions
    any_severity, medium, bandit_seconds = bandit(everything)
    messages, undefined, pyflakes_seconds = pyflakes(everything)
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
    start = processor_seconds()
    verdicts.verify_many(everything, "strict", "--any-file")
    batch_seconds = processor_seconds() - start
    median = statistics.median(times)
    print("\nprocessor time")
    print(f"warm, one BigCodeBench script, best of {REPEAT}, ms: median {median:.3f}, "
          f"99th percentile {sorted(times)[len(times) * 99 // 100]:.3f}, most {max(times):.3f}")
    each = 1000 / len(everything)
    print(f"a file in one batch of {len(everything)}, start included, ms: execpy {batch_seconds * each:.3f}, "
          f"bandit {bandit_seconds * each:.3f} ({bandit_seconds / batch_seconds:.0f} times), "
          f"pyflakes {pyflakes_seconds * each:.3f} ({pyflakes_seconds / batch_seconds:.0f} times)")

    line = "total = total + value * 2  # some words\nif total > 100:\n    print(names.get(str(total), 'none'))\n"
    print("\nsource size, ms, µs a KiB:")
    for size in (1 << 10, 1 << 14, 1 << 17, (1 << 20) - 64):
        code = "total = value = 1\nnames = {}\n" + line * ((size - 40) // len(line))
        ms = verdicts.verify_many([("size", code.encode())], "strict", "--repeat", "3")[0]["ms"]
        print(f"  {len(code):>9} bytes {ms:>10.3f} {1000 * ms / (len(code) / 1024):>10.1f}")

    if "--list" in sys.argv:
        missed = sorted({name for name, _ in attacks} - rows["execpy strict"][0])
        print("\nattacks that pass strict:", ", ".join(missed) or "none")
        print("quiet scripts that strict refuses:", ", ".join(sorted(rows["execpy strict"][1])) or "none")
        print("\nscripts that need processes, the network, ctypes or signals, and by which import:")
        for name, code in honest:
            if name not in quiet_names:
                print(f"  {name}: {', '.join(sorted(verdicts.imports(code) & verdicts.NEEDS))}")
    measure.keep("verify", {"unit": "count of refused", "sets": titles,
                            "rows": {title: [len(names) for names in found] for title, found in rows.items()},
                            "warm_ms": times, "batch_seconds": {"execpy": batch_seconds, "bandit": bandit_seconds,
                                                                "pyflakes": pyflakes_seconds}})


main()
