# SPDX-License-Identifier: Apache-2.0
"""Bounded cgroups in which code runs unconfined: whatever a control does, it ends here."""
import contextlib
import itertools
import os
import time
from pathlib import Path

from . import host

_serial = itertools.count()
_PARENTS = {"memory": "memory.limit_in_bytes", "pids": "pids.max"}


class Bounds:
    """Limits on everything that a control starts; ends by killing all that is inside."""

    def __init__(self, memory_bytes, processes):
        self.directories = []
        name = f"control-{os.getpid()}-{next(_serial)}"
        for controller, file in _PARENTS.items():
            where = host.cgroup_v1(controller)
            if where is None or not os.access(where, os.W_OK):
                continue
            directory = where / name
            directory.mkdir()
            (directory / file).write_text(str(memory_bytes if controller == "memory" else processes))
            self.directories.append(directory)
        if not self.directories and os.access("/sys/fs/cgroup/cgroup.procs", os.W_OK):
            directory = Path("/sys/fs/cgroup") / name
            directory.mkdir()
            for file, value in (("memory.max", memory_bytes), ("pids.max", processes)):
                if (directory / file).exists():
                    (directory / file).write_text(str(value))
            self.directories.append(directory)

    def enter(self):
        """Puts the calling process in; for preexec_fn."""
        for directory in self.directories:
            with open(directory / "cgroup.procs", "w") as procs:
                procs.write("0")

    def processes(self):
        for directory in self.directories:
            return [int(p) for p in (directory / "cgroup.procs").read_text().split()]
        return []

    def peak_processes(self):
        for directory in self.directories:
            if (directory / "pids.max").exists():
                try:
                    return int((directory / "pids.peak").read_text())
                except OSError:
                    return int((directory / "pids.current").read_text())
        return None

    def close(self):
        deadline = time.monotonic() + 5
        for directory in self.directories:
            if (directory / "pids.max").exists():
                with contextlib.suppress(OSError):
                    (directory / "pids.max").write_text("0")
        while self.processes() and time.monotonic() < deadline:
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
            time.sleep(0.01)
        for directory in self.directories:
            while True:
                try:
                    directory.rmdir()
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.01)
