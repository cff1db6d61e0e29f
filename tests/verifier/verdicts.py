# SPDX-License-Identifier: Apache-2.0
"""Runs verify-tool, and reads the corpora and the case files."""
import ast
import gzip
import json
import os
import subprocess
from pathlib import Path

SOURCE = Path(os.environ.get("EXECPY_SOURCE", Path(__file__).resolve().parents[2]))
TOOL = os.environ.get("EXECPY_VERIFY_TOOL", str(SOURCE / "build/tests/verifier/verify-tool"))
CASES = Path(__file__).resolve().parent / "cases"
CORPUS = SOURCE / "tests/corpus"

# What the benchmark leaves out.
CHECKS = ["--check-codec"]

MARKER = "/home/user/marker"
COMMAND = "touch " + MARKER

# Scripts that import one of these need processes, the network, ctypes or
# signals themselves: strict refuses that, so they are counted apart.
NEEDS = {"subprocess", "multiprocessing", "socket", "requests", "urllib", "http", "ftplib", "smtplib",
         "ssl", "ctypes", "signal", "psutil", "select", "mechanize", "telnetlib", "asyncio",
         "socketserver"}


def verify_many(items, policy="strict", *options):
    """Verdicts of (name, bytes) pairs, in order."""
    batch = b"".join(b"%s %d\n" % (name.encode(), len(code)) + code for name, code in items)
    done = subprocess.run([TOOL, "--policy", str(policy), *options, *CHECKS, "--batch"], input=batch,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"})
    assert done.returncode == 0, done.stderr.decode()
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    assert [v["name"] for v in verdicts] == [name for name, _ in items]
    return verdicts


def verify(code, policy="strict", *options):
    return verify_many([("case", code if isinstance(code, bytes) else code.encode())], policy,
                       *options)[0]


def blocked(verdict):
    return verdict["decision"] == "block"


def armed(code):
    return code.replace("@M@", MARKER).replace("@CMD@", COMMAND)


def cases(name):
    """(group/title, code) of a case file: "#### group", "### title", then code."""
    found, group = [], ""
    for line in (CASES / name).read_text().splitlines(keepends=True):
        if line.startswith("#### "):
            group = line[5:].strip()
        elif line.startswith("### "):
            found.append([f"{group}/{line[4:].strip()}", ""])
        else:
            found[-1][1] += line
    return [(title, armed(code).encode()) for title, code in found]


def _rows(name):
    path = CORPUS / name
    opened = gzip.open(path, "rt") if name.endswith(".gz") else open(path)
    with opened:
        return [json.loads(line) for line in opened]


def attacks():
    return [(row["id"], armed(row["code"]).encode()) for row in _rows("attacks.jsonl")]


def bigcodebench():
    return [(row["task_id"].replace("/", "-"),
             (row["code_prompt"] + row["canonical_solution"]).encode())
            for row in _rows("bigcodebench-even.jsonl.gz")]


def humaneval():
    return [(row["task_id"].replace("/", "-"), (row["prompt"] + row["canonical_solution"]).encode())
            for row in _rows("humaneval.jsonl.gz")]


def imports(code):
    names = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    return names


def is_quiet(code):
    return not imports(code) & NEEDS
