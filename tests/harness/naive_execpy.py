#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A product that confines nothing, with execpy's command line: the test of the attack suite.

`EXECPY_BIN=tests/harness/naive_execpy.py pytest tests/attacks/test_scenarios.py` must fail in
every case that attacks something.  It runs the code as root in a throw-away overlay of the host
(see control.py), so that the attacks succeed and still harm nothing.
"""
import argparse
import hashlib
import json
import os
import secrets
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from harness.control import run_control  # noqa: E402


def seconds(text):
    return float(text[:-2]) / 1000 if text.endswith("ms") else float(text.rstrip("s"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["run"])
    parser.add_argument("path", nargs="?")
    parser.add_argument("-c", dest="code")
    for flag in ("--json", "--no-daemon"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--time", default="5s")
    for option in ("--cpu", "--memory", "--processes", "--output", "--disk", "--policy", "--out",
                   "--template", "--stdin"):
        parser.add_argument(option)
    parser.add_argument("--file", action="append", default=[])
    parser.add_argument("--env", action="append", default=[])
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    order = parser.parse_intermixed_args(words[:at])
    code = order.code if order.code is not None else Path(order.path).read_text("utf-8",
                                                                                "surrogateescape")
    files = [(entry.split(":", 1)[1], entry.split(":", 1)[0]) for entry in order.file]
    done = run_control([code], kind="host", files=files, env=dict(os.environ), args=words[at + 1:],
                       time=seconds(order.time), parent=tempfile.gettempdir())
    status = done.runs[0]["status"]
    kind, exit_code, number = "ok", 0, None
    if status == "timeout":
        kind, exit_code = "timeout", None
    elif status < 0:
        kind, exit_code, number = "crashed", None, -status
    elif status > 0:
        kind, exit_code = "error", status
    left = [n for n in done.left if n not in ("stdout", "stderr", "main.py")]
    result = {
        "id": "run_" + secrets.token_hex(8), "status": kind, "exit_code": exit_code,
        "signal": number, "stdout": done.stdout, "stderr": done.stderr,
        "output": {"stdout_bytes": len(done.stdout), "stderr_bytes": len(done.stderr),
                   "truncated": False, "dropped_bytes": 0},
        "value": None, "displays": [], "error": None, "findings": [], "anomaly": None,
        "files": [{"path": n, "size": 0, "media_type": "text/plain",
                   "sha256": hashlib.sha256(b"").hexdigest()} for n in left if n.isprintable()],
        "usage": {"wall_ms": 1, "cpu_ms": 1, "memory_peak_bytes": 1, "processes_peak": 1},
        "timing": {"wait_ms": 0, "verify_ms": 0, "run_ms": 1, "total_ms": 1},
        "limits": {"time_ms": 5000, "cpu_ms": 5000, "memory_bytes": 1, "processes": 64,
                   "output_bytes": 1, "disk_bytes": 1},
        "template": "bare", "warm": False, "session": None, "policy": order.policy or "strict",
    }
    if order.json:
        print(json.dumps(result))
    else:
        sys.stdout.write(done.stdout)
        sys.stderr.write(done.stderr)
    sys.exit(124 if kind == "timeout" else 128 + number if number else exit_code)


if __name__ == "__main__":
    main()
