# SPDX-License-Identifier: Apache-2.0
"""Which tasks pass outside, remembered between test runs.

The list is a fact about this machine's interpreter and packages, so it is made here and never
committed. The file is thrown away when the interpreter, a package, the corpus or the way the
scripts are built changes.
"""

import hashlib
import json
import os
import pathlib
import subprocess

import runners
import tasks

PACKAGES = """
import importlib.metadata, sys
print(sys.version)
for line in sorted(f"{d.name} {d.version}" for d in importlib.metadata.distributions()):
    print(line)
"""


def key():
    """A digest of all that decides whether a task passes outside."""
    digest = hashlib.sha256()
    digest.update(subprocess.run([runners.PYTHON, "-I", "-c", PACKAGES], check=True,
                                 stdout=subprocess.PIPE).stdout)
    here = pathlib.Path(__file__).resolve().parent
    for path in [here / "tasks.py", here / "runners.py",
                 *(tasks.CORPUS / name for name in tasks.FILES)]:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


class Baseline:
    """Task id → {"passed": bool, "why": str, "seconds": float}."""

    def __init__(self, path, fresh=False):
        self.path = pathlib.Path(path)
        self.key = key()
        self.entries = {}
        if fresh:
            return
        try:
            stored = json.loads(self.path.read_text(encoding="utf-8"))
            if stored["key"] == self.key:
                self.entries = stored["tasks"]
        except (OSError, ValueError, KeyError, TypeError):
            pass

    def add(self, task, passed, why, seconds):
        self.entries[task.id] = {"passed": passed, "why": why, "seconds": round(seconds, 3)}

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        new.write_text(json.dumps({"key": self.key, "tasks": self.entries}, indent=1),
                       encoding="utf-8")
        new.replace(self.path)
