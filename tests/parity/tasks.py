# SPDX-License-Identifier: Apache-2.0
"""The tasks of tests/corpus as scripts that test themselves: exit status 0 means passed."""

import gzip
import json
import pathlib
import re
from dataclasses import dataclass

CORPUS = pathlib.Path(__file__).resolve().parent.parent / "corpus"
FILES = ("bigcodebench-even.jsonl.gz", "humaneval.jsonl.gz")

# A script whose tests were not run at all must not count as passed, so each says how many
# it ran, last of all and on the real stdout, whatever the tests did to sys.stdout.
UNITTEST_MAIN = """

if __name__ == "__main__":
    import sys, unittest
    _run = unittest.main(argv=["main.py"], exit=False).result
    print("parity: ran", _run.testsRun, file=sys.__stdout__, flush=True)
    sys.exit(0 if _run.wasSuccessful() else 1)
"""
CHECK_MAIN = """

check({entry_point})
print("parity: ran 1")
"""
RAN = re.compile(r"^parity: ran [1-9]\d*$", re.MULTILINE)


@dataclass(frozen=True)
class Task:
    id: str
    script: str


def _bigcodebench(entry):
    return "\n".join((entry["code_prompt"] + entry["canonical_solution"], entry["test"],
                      UNITTEST_MAIN))


def _humaneval(entry):
    return "\n".join((entry["prompt"] + entry["canonical_solution"], entry["test"],
                      CHECK_MAIN.format(entry_point=entry["entry_point"])))


def load():
    """All tasks, in the order of their sets and numbers."""
    tasks = []
    for name in FILES:
        build = _humaneval if name.startswith("humaneval") else _bigcodebench
        with gzip.open(CORPUS / name, "rt", encoding="utf-8") as lines:
            for entry in map(json.loads, lines):
                tasks.append(Task(entry["task_id"], build(entry)))
    tasks.sort(key=lambda task: (task.id.split("/")[0], int(task.id.split("/")[1])))
    return tasks


def tenth(tasks):
    """The fixed tenth that the short test run uses; it starts where the tasks are quick."""
    return tasks[5::10]


def ran(stdout):
    """Whether a script's stdout says that it ran its tests."""
    return RAN.search(stdout) is not None
