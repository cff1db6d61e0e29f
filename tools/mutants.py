#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the tests: builds the product with one layer off, and sees a test fail for each.

    mutants.py DIRECTORY [LAYER…]

The layers are the choices of the build option `unsafe_without`. A mutant that no test notices is
a failure, and so is one that does not build. Ends with "N passed, N failed, N skipped".
"""
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUITES = ("tests/attacks", "tests/e2e")


def layers():
    text = (ROOT / "meson_options.txt").read_text()
    choices = re.search(r"'unsafe_without'.*?choices: \[(.*?)\]", text, re.DOTALL)[1]
    return [name for name in re.findall(r"'(\w+)'", choices) if name != "nothing"]


def build(directory, layer):
    log = directory.with_suffix(".log")
    with open(log, "wb") as out:
        for command in (["meson", "setup", str(directory), f"-Dunsafe_without={layer}"],
                        ["ninja", "-C", str(directory)]):
            if command[0] == "meson" and (directory / "build.ninja").exists():
                continue
            if subprocess.run(command, cwd=ROOT, stdout=out, stderr=out, check=False).returncode:
                return f"does not build, see {log}"
    return None


def first_failure(directory, suite):
    """The name of the first test that notices the mutant, or None."""
    report = directory / "report.xml"
    report.unlink(missing_ok=True)
    environment = {**os.environ, "EXECPY_BIN": str(directory / "src/cli/execpy")}
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-c",
                    "tests/pytest.ini", "--rootdir=tests", f"--junitxml={report}",
                    "--no-controls", suite], cwd=ROOT, env=environment, check=False,
                   stdin=subprocess.DEVNULL, capture_output=True)
    for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
        if case.find("failure") is not None or case.find("error") is not None:
            return f"{case.get('classname')}::{case.get('name')}"
    return None


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    place = pathlib.Path(sys.argv[1]).absolute()
    place.mkdir(parents=True, exist_ok=True)
    passed = failed = 0
    for layer in sys.argv[2:] or layers():
        problem = build(place / layer, layer)
        noticed = None
        for suite in SUITES if not problem else ():
            noticed = noticed or first_failure(place / layer, suite)
        if noticed:
            passed += 1
            print(f"without {layer}: {noticed} fails", flush=True)
        else:
            failed += 1
            print(f"without {layer}: {problem or 'NO test notices'}", flush=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
