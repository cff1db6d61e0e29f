#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a document no longer fits the source.

    check_documents.py EXECPY

Checked: docs/limits.md is fresh; links lead somewhere; files that documents name exist; every
message is in docs/protocol.md; the man page and `--help` name the same options; the README's
sessions are what comes today. Ends with "N passed, N failed, N skipped".
"""
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FILE_NAME = re.compile(r"\b((?:base|proto|policy|jail|guest|warden|engine|cli|src|tests|tools|docs"
                       r"|unit|attacks|qemu|fuzz)/[\w/.-]+\.(?:c|h|py|def|sh|md|1|json))\b")


def limits(program):
    done = subprocess.run([sys.executable, ROOT / "tools/make_limits.py", "--check"],
                          capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def links(program):
    return [f"{document.name}: no {target}" for document in DOCUMENTS
            for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text())
            if not (document.parent / target).exists()]


def names(program):
    return [f"{document.name}: no file {name}" for document in DOCUMENTS
            for name in sorted(set(FILE_NAME.findall(document.read_text())))
            if not any((ROOT / place / name).exists() for place in (".", "src", "tests"))]


def messages(program):
    text = (ROOT / "docs/protocol.md").read_text()
    known = re.findall(r"\bMESSAGE_(\w+)", (ROOT / "src/proto/messages.h").read_text())
    return [f"protocol.md: no message {name}" for name in sorted(set(known))
            if not re.search(rf"\b{name}\b", text)]


def options(program):
    page = (ROOT / "docs/execpy.1").read_text().replace("\\-", "-")
    wrong = []
    for command in ("run", "check", "session", "shell", "serve", "mcp", "doctor"):
        text = subprocess.run([program, command, "--help"], capture_output=True, text=True,
                              check=False).stdout
        told = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text))
        wrong += [f"execpy.1 lacks {option} of `execpy {command}`" for option in sorted(told)
                  if not re.search(rf"(?<![\w-]){option}(?![\w-])", page)]
    return wrong


@contextlib.contextmanager
def daemon(program, directory):
    """A daemon where commands look for one when XDG_RUNTIME_DIR names this directory."""
    process = subprocess.Popen([program, "serve", "--listen", "none", "--socket",
                                os.path.join(directory, "execpy.sock")],
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        if "serving on" not in process.stderr.readline():
            raise RuntimeError("execpy serve does not begin")
        yield
    finally:
        process.terminate()
        process.communicate(timeout=60)


def steps(program, text, environment):
    """Each `$ ` line is run in a shell; what comes is compared."""
    wrong = []
    for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, expected = step.split("\n", 1)
        done = subprocess.run(["sh", "-c", command], cwd=environment["PWD"], env=environment,
                              text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        # A pipe's two ends may write in either order.
        if sorted(done.stdout.splitlines()) != sorted(expected.splitlines()):
            wrong.append(f"README: {command}: expected\n{expected}got\n{done.stdout}")
    return wrong


def session(program):
    """The README's consoles show what comes today; those with sessions have a daemon."""
    wrong = []
    for text in re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL):
        with tempfile.TemporaryDirectory() as directory:
            os.symlink(program, os.path.join(directory, "execpy"))
            os.symlink(ROOT / "examples", os.path.join(directory, "examples"))
            environment = {**os.environ, "PATH": directory + ":" + os.environ["PATH"],
                           "PWD": directory}
            if "execpy session" not in text:
                wrong += steps(program, text, environment)
                continue
            environment.update(XDG_RUNTIME_DIR=directory, EXECPY_SOCKET="")
            with daemon(program, directory):
                wrong += steps(program, text, environment)
    return wrong


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program, failed = os.path.abspath(sys.argv[1]), 0
    checks = (limits, links, names, messages, options, session)
    for check in checks:
        wrong = check(program)
        failed += bool(wrong)
        print(f"{check.__name__}: {'right' if not wrong else 'WRONG'}")
        for complaint in wrong:
            print("  " + complaint.replace("\n", "\n  "))
    print(f"{len(checks) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
