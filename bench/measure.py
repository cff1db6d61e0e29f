# SPDX-License-Identifier: Apache-2.0
"""What all benchmarks share: timing whole commands in random order, facts about
the machine, and raw samples kept as JSON under bench/results/."""
import json
import os
import pathlib
import platform
import random
import re
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
EXECPY = os.environ.get("EXECPY_BIN", str(ROOT / "build" / "src" / "cli" / "execpy"))


def machine():
    model = ""
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {
        "kernel": platform.release(),
        "processor": model,
        "processors": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "date": time.strftime("%Y-%m-%d"),
        "memory_kib": int(open("/proc/meminfo").readline().split()[1]),
        "python": platform.python_version(),
    }


def packages(*names):
    """Versions of the Debian packages that are there."""
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *names],
                          capture_output=True, text=True, check=False)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if not line.endswith(" "))


def time_command(command, expected_stdout, timeout=60, **options):
    """Wall milliseconds of one run; its output is checked, not assumed."""
    began = time.monotonic_ns()
    done = subprocess.run(command, capture_output=True, timeout=timeout, **options)
    took = (time.monotonic_ns() - began) / 1e6
    if done.stdout != expected_stdout:
        raise RuntimeError(f"{command[0]} gave {done.stdout[:200]!r} {done.stderr[:300]!r}")
    return took


def alternate(contestants, samples, warm_up=3):
    """{name: function returning ms} → {name: [ms, …]}, in random order each round."""
    times = {name: [] for name in contestants}
    for round_number in range(-warm_up, samples):
        names = list(contestants)
        random.shuffle(names)
        for name in names:
            took = contestants[name]()
            if round_number >= 0:
                times[name].append(round(took, 4))
    return times


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def table(times, reference):
    base = statistics.median(times[reference])
    print(f"{'':34} {'p50':>9} {'p90':>9} {'p99':>9}   of {reference}")
    for name, values in times.items():
        p50 = statistics.median(values)
        print(f"{name:34} {p50:8.2f}  {quantile(values, .9):8.2f}  {quantile(values, .99):8.2f}"
              f"   {p50 / base:.2f}")


def compact(text):
    """JSON with each list of numbers on one line."""
    return re.sub(r"\[\s*(-?[\d.]+(?:,\s*-?[\d.]+)*)\s*\]",
                  lambda found: "[" + re.sub(r",\s*", ", ", found[1]) + "]", text)


def keep(name, facts):
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(compact(json.dumps({"machine": machine(), **facts}, indent=1)) + "\n")
    print(f"raw samples: {path.relative_to(ROOT)}")
