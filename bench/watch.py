#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How long code lives after it did what must never happen.

A second thread prints the clock as fast as it can; the main thread prints it
once and then opens a port, or writes outside the workspace. The last line that
came out says how long anything of the code still ran: the same clock
(CLOCK_MONOTONIC), read inside on both sides.
"""
import json
import statistics
import subprocess
import sys

import measure

ATTEMPTS = {
    "bind": "socket.socket().bind(('0.0.0.0', 8080))",
    "listen without bind": "socket.socket().listen()",
    "connect": "socket.socket().connect(('192.0.2.1', 80))",
    "open for writing": "os.open('/usr/x', os.O_WRONLY | os.O_CREAT)",
    "sqlite ATTACH": "sqlite3.connect(':memory:').execute(\"attach '/usr/x.db' as x\")",
    "/proc/self/fd": "open(sys.argv[1] % os.open('/etc/passwd', os.O_RDONLY), 'w')",
}
CODE = """
import os, socket, sqlite3, sys, threading, time
def beat():
    while True:
        os.write(1, b"b %d\\n" % time.monotonic_ns())
threading.Thread(target=beat, daemon=True).start()
time.sleep(0.01)
os.write(1, b"t %d\\n" % time.monotonic_ns())
{attempt}
time.sleep(5)
"""
SAMPLES = int(sys.argv[1]) if len(sys.argv) > 1 else 20


def once(attempt):
    done = subprocess.run([measure.EXECPY, "run", "--json", "--policy", "standard", "--output", "64M",
                           "-c", CODE.format(attempt=attempt), "--", "/proc/self/fd/%d"],
                          capture_output=True, timeout=60)
    result = json.loads(done.stdout)
    if result["status"] != "anomaly":
        raise RuntimeError(f"{attempt}: {result['status']}, {result['error']}")
    lines = [line.split() for line in result["stdout"].splitlines() if line.count(" ") == 1]
    began = next(int(number) for kind, number in lines if kind == "t")
    last = max((int(number) for kind, number in lines if kind == "b" and number.isdigit()), default=began)
    return max(0.0, (last - began) / 1e6)


samples = {name: [] for name in ATTEMPTS}
for _ in range(SAMPLES):
    for name, attempt in ATTEMPTS.items():
        samples[name].append(round(once(attempt), 4))
print("from the forbidden call to the last sign of life, ms")
for name, values in samples.items():
    print(f"{name:24} p50 {statistics.median(values):7.3f}   p90 {measure.quantile(values, .9):7.3f}"
          f"   max {max(values):7.3f}")
measure.keep("watch", {"unit": "ms", "samples": samples})
