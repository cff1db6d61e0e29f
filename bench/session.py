#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions: a run in one, the return after a crash, a rollback, and beside them Jupyter's kernel.

    session.py [SAMPLES]

Rows alternate in rounds, each of which opens a session of its own; every answer is checked."""
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import measure

SAMPLES = int(sys.argv[1]) if len(sys.argv) > 1 else 200
ROUNDS = 4
CLIENT = pathlib.Path(measure.EXECPY).parents[2] / "bench" / "bench-session"
STEP = "x = globals().get('x', 0) + 1\nx"
CRASH = "import os\nos._exit(1)"
FRAME = ("import pandas, numpy\ndf = pandas.DataFrame({'a': numpy.arange(1000) % 7, "
         "'b': numpy.linspace(0, 1, 1000)})\ndf.describe()\ndf.groupby('a').b.mean()\n1")

# name: (template, MiB, gap in ms, setup, code, crash, p50 that is asked for in ms)
ROWS = {
    "run, bare, 20 ms apart": ("bare", 100, 20, "1", STEP, None, 0.6),
    "run, bare, one after another": ("bare", 100, 0, "1", STEP, None, None),
    "run, pandas loaded, 20 ms apart": ("pandas", 300, 20, "import pandas", STEP, None, 0.8),
    "run, 1 GiB of data, 200 ms apart": ("numpy", 2500, 200,
                                         "import numpy\na = numpy.ones(1 << 27)", STEP, None, 0.8),
    "crash and next answer, bare": ("bare", 100, 20, "1", STEP, CRASH, 2),
    "crash and next answer, pandas": ("pandas", 300, 50, "import pandas", STEP, CRASH, 6),
    "rollback and next answer, bare": ("bare", 100, 20, "1", STEP, "=rollback", 10),
    "rollback and next answer, pandas": ("pandas", 300, 50, "import pandas", STEP, "=rollback", 10),
    "fork to a branch's first answer, bare": ("bare", 100, 50, "1", STEP, "=fork", None),
    "fork to a branch's first answer, pandas": ("pandas", 300, 100, FRAME, STEP, "=fork", 13),
    "100 branches, the last one's answer, pandas": ("pandas", 300, 1000, FRAME, STEP, "=fork100", 1500),
}
# Of the session that is branched; and rows that take so long that few are enough.
SLOW = {"100 branches, the last one's answer, pandas": 5}


def execpy_rows(socket):
    times, memory = {name: [] for name in ROWS}, {}
    for _ in range(ROUNDS):
        for name in random.sample(list(ROWS), len(ROWS)):
            template, mib, gap, setup, code, crash, _ = ROWS[name]
            done = subprocess.run([CLIENT, socket, template, str(mib), str(gap),
                                   str(max(SLOW.get(name, SAMPLES) // ROUNDS, 2 if name in SLOW else 5)),
                                   setup, code,
                                   *([crash] if crash else [])],
                                  capture_output=True, text=True, timeout=600)
            if done.returncode:
                raise RuntimeError(f"{name}: {done.stderr}")
            *samples, last = done.stdout.split("\n")[:-1]
            times[name] += [float(us) / 1000 for us in samples]
            memory[name] = int(last.split()[1])
    return times, memory


class Kernel:
    """Jupyter's own client and kernel, of Debian."""

    def __init__(self):
        from jupyter_client import KernelManager
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel()
        self.connect()

    def connect(self):
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, code):
        """The text of the value, when the kernel is idle again."""
        name, value = self.client.execute(code), None
        while True:
            message = self.client.get_iopub_msg(timeout=30)
            if message["parent_header"].get("msg_id") != name:
                continue
            if message["msg_type"] == "execute_result":
                value = message["content"]["data"]["text/plain"]
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                self.client.get_shell_msg(timeout=30)
                return value

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def jupyter_rows():
    times = {"Jupyter: run, 20 ms apart": [], "Jupyter: crash and next answer": []}
    kernel = Kernel()
    for number in range(SAMPLES):
        time.sleep(0.02)
        began = time.monotonic()
        if kernel.run(STEP) != str(number + 1):
            raise RuntimeError("Jupyter gave something else")
        times["Jupyter: run, 20 ms apart"].append((time.monotonic() - began) * 1000)
    for _ in range(5):
        began = time.monotonic()
        kernel.client.execute(CRASH)
        while kernel.manager.is_alive():
            time.sleep(0.001)
        kernel.client.stop_channels()
        kernel.manager.restart_kernel(now=True)
        kernel.connect()
        if kernel.run(STEP) != "1":  # its variables are gone
            raise RuntimeError("Jupyter gave something else")
        times["Jupyter: crash and next answer"].append((time.monotonic() - began) * 1000)
    kernel.close()
    return times


def main():
    with tempfile.TemporaryDirectory() as place:
        socket = pathlib.Path(place, "socket")
        config = pathlib.Path(place, "serve.yaml")
        config.write_text("sessions: 200\n")
        daemon = subprocess.Popen([measure.EXECPY, "serve", "--listen", "none", "--socket", socket,
                                   "--config", config],
                                  stderr=subprocess.PIPE, text=True)
        try:
            for line in daemon.stderr:
                if "serving on" in line:
                    break
            times, memory = execpy_rows(socket)
        finally:
            daemon.terminate()
            daemon.wait()
    try:
        jupyter = jupyter_rows()
    except ImportError as error:
        print(f"Jupyter's kernel was not measured: {error}")
        jupyter = {}
    print(f"ms, {SAMPLES} samples{'':33} {'least':>8} {'p50':>8} {'p90':>8} {'p99':>8}   asked for")
    for name, values in {**times, **jupyter}.items():
        wanted = ROWS[name][6] if name in ROWS else None
        p50 = statistics.median(values)
        verdict = "" if wanted is None else f"{wanted} " + ("met" if p50 <= wanted else "not met")
        print(f"{name:48} {min(values):8.2f} {p50:8.2f} {measure.quantile(values, .9):8.2f} "
              f"{measure.quantile(values, .99):8.2f}   {verdict}")
    for name in ("run, bare, 20 ms apart", "run, pandas loaded, 20 ms apart"):
        print(f"memory of a session with its checkpoints, {name.split(',')[1].strip()}: "
              f"{memory[name] / (1 << 20):.1f} MiB")
    branch = memory["fork to a branch's first answer, pandas"] / (1 << 20)
    print(f"memory of a branch that did nothing yet, pandas: {branch:.1f} MiB")
    measure.keep("session", {"unit": "ms", "samples": {**times, **jupyter}, "memory": memory})


main()
