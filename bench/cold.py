#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Cold start: `execpy run --no-daemon` against bubblewrap with the same
isolation asked for and the same interpreter, alternating, whole processes."""
import sys

import measure

CODE = "print(55)"
SAMPLES = int(sys.argv[1]) if len(sys.argv) > 1 else 20

execpy = [measure.EXECPY, "run", "--no-daemon", "--policy", "open", "-c", CODE]
bubblewrap = [
    "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv",
    "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
    "--symlink", "usr/bin", "/bin", "--ro-bind-try", "/etc/alternatives", "/etc/alternatives",
    "--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache", "--proc", "/proc", "--dev", "/dev",
    "--tmpfs", "/tmp", "--tmpfs", "/workspace", "--chdir", "/workspace",
    "/usr/bin/python3", "-I", "-c", CODE,
]
plain = ["/usr/bin/python3", "-I", "-c", CODE]

times = measure.alternate({
    "execpy run --no-daemon": lambda: measure.time_command(execpy, b"55\n"),
    "bwrap … python3 -I": lambda: measure.time_command(bubblewrap, b"55\n"),
    "python3 -I (no isolation)": lambda: measure.time_command(plain, b"55\n"),
}, SAMPLES)
print("cold start of print(55), ms, whole process")
measure.table(times, "bwrap … python3 -I")
measure.keep("cold", {"unit": "ms", "samples": times})
