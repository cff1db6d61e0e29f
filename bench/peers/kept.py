#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The same code in an interpreter that is already warm: the least that a run can cost.

    kept.py CODE STATUS OUTPUT FILE TEXT…

Nothing is isolated and nothing crosses a process: compile, exec, look at what came out. Obeys
"go COUNT PAUSE_MS" as bench/client does. OUTPUT and FILE may be "-": not checked.
"""
import io
import sys
import time
import traceback

MADE = "plot.png"


def contents(path):
    if path == "-":
        return None
    with open(path, "rb") as file:
        return file.read()


def once(code, expected_status, expected_out, expected_file, texts):
    began = time.perf_counter_ns()
    status, said, kept = "0", "", sys.stdout
    sys.stdout = out = io.StringIO()
    try:
        exec(compile(code, "main.py", "exec"), {"__name__": "__main__"})
    except BaseException:
        status, said = "1", traceback.format_exc()
    sys.stdout = kept
    right = status == expected_status and all(text in said for text in texts)
    if expected_out is not None:
        right = right and out.getvalue().encode() == expected_out
    if expected_file is not None:
        right = right and contents(MADE) == expected_file
    took = time.perf_counter_ns() - began
    if not right:
        print(f"wrong: status {status}, {said[-200:]!r}")
        sys.exit(1)
    return took


def main():
    code, status, out, file, *texts = sys.argv[1:]
    code, out, file = contents(code), contents(out), contents(file)
    print("ready", flush=True)
    for line in sys.stdin:
        _, count, pause_ms = line.split()
        for _ in range(int(count)):
            time.sleep(int(pause_ms) / 1000)
            print(once(code, status, out, file, texts), flush=True)


main()
