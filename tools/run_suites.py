#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every test suite there is, in two lanes, and counts over all of them.

    run_suites.py --build DIRECTORY [--full] [--only WORD…] [--list]

Each suite's output goes to DIRECTORY/suites/NAME.log; what failed or was skipped is shown. A
suite is counted in one of three ways:

    junit    pytest's XML report
    meson    Meson's log, in which cmocka's programs say how many tests they hold
    line     its own last line `N passed, N failed, N skipped`

and a suite that says nothing countable, ends with another status than its counts ask for, runs
nothing at all or takes too long is one more failure. A skip passes only with a reason that names
what the host lacks, or that only --full runs it. Ends with the name of everything that failed and
the plain line of the sums.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"
# tests/conftest.py says it at once, for a run that does not come to its report; so do our scripts.
FAILED_LINE = re.compile(r"^FAILED:? +(.+)$", re.MULTILINE)
LINE = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)
# Mutants are built for --full only.
REASON = re.compile(r"lacks|needs root|only with --full|EXECPY_UNSAFE_BUILDS names no|this host has no|this user may not|is for x86-64")
TAIL_LINES = 40


class Counts(collections.Counter):
    def __init__(self, passed=0, failed=0, skipped=0):
        super().__init__(passed=passed, failed=failed, skipped=skipped)

    def __str__(self):
        return f"{self['passed']} passed, {self['failed']} failed, {self['skipped']} skipped"


class Suite:
    def __init__(self, name, command, count="line", environment=None, minutes=10, when="always",
                 aside=False):
        self.name, self.command, self.count = name, command, count
        self.environment, self.minutes, self.when = environment or {}, minutes, when
        self.aside = aside  # in the second lane: other builds, other users, other machines


def pytest(folder, report, *more):
    return [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "tests/pytest.ini",
            "--rootdir=tests", f"--junitxml={report}", folder, *more]


def suites(build, full):
    """The table of suites. {report} stands for the suite's report, {build} for the build."""
    long = ["--full"] if full else []
    root = os.geteuid() == 0
    result = [
        Suite("layers", [PYTHON, "tools/check_layers.py"], "status"),
        Suite("banned", [PYTHON, "tools/check_banned.py"], "status"),
        Suite("lint", ["./dev", "lint", "--quick"], minutes=5),
        Suite("documents", [PYTHON, "tools/check_documents.py", "{build}/src/cli/execpy"]),
        Suite("unit", ["meson", "test", "-C", "{build}", "--print-errorlogs"], "meson"),
        Suite("clang", ["tools/build_variant.sh", "clang", "{build}-clang"], minutes=15,
              aside=True),
        Suite("sanitized", ["tools/build_variant.sh", "sanitized", "{build}-sanitized"],
              minutes=15, aside=True),
        Suite("sanitized unit", ["meson", "test", "-C", "{build}-sanitized", "-t", "4",
                                 "--print-errorlogs"], "meson:-sanitized", aside=True),
        Suite("examples", [PYTHON, "tools/demo.py", "{build}/src/cli/execpy", "{build}/demo"]),
    ]
    # First of all that uses pytest: one of its tests looks at the mutants.
    result.append(Suite("mutants", [PYTHON, "tools/mutants.py", "{build}-mutants"], minutes=120,
                        when="full"))
    if list((ROOT / "tests/verifier").glob("test_*.py")):
        result.append(Suite("verifier", pytest("tests/verifier", "{report}", *long), "junit"))
    # The other lane keeps a processor busy: allowances of time, not limits, are longer.
    # What these look at happens inside the cell, the same for whoever started it: a daemon's
    # cells are the quickest to be had.
    inside = ["check", "displays", "errors", "magics", "policy_default", "print", "probe", "values"]
    for mode in (["root", "user"] if root else ["user"]):
        for folder in ("e2e", "attacks", "sessions", "daemon", "mcp", "serve"):
            # The controls show that an attack works unconfined: once is enough.
            # Faults are made as root: setpriv would meet them before execpy does.
            once = ["--no-controls", "--ignore=tests/attacks/test_host_faults.py"] if folder == "attacks" and mode != "root" and root else []
            if folder == "e2e" and not full:
                once = [f"--ignore=tests/e2e/test_{name}.py" for name in inside]
            result.append(Suite(f"{folder} as {mode}",
                                pytest(f"tests/{folder}", "{report}", *long, *once), "junit",
                                {"EXECPY_MODE": mode, "EXECPY_SLOW": "3"},
                                minutes=60 if full else 12,
                                when="full" if folder in ("daemon", "sessions", "mcp", "serve") and mode == "user"
                                and root else "always",
                                aside=root and (mode == "user" or folder == "sessions")))
    result.append(Suite("page", pytest("tests/page", "{report}", *long), "junit",
                        {"EXECPY_SLOW": "3"}, aside=True))
    for folder, mode, when in (("e2e", "user", "full"), ("attacks", "root", "full"),
                               ("e2e", "root", "full"), ("attacks", "user", "full")):
        if mode == "root" and not root:
            continue
        once = ["--no-controls", "--ignore=tests/attacks/test_host_faults.py"] if folder == "attacks" else []
        where = [f"tests/{folder}"]
        if folder == "e2e" and mode == ("root" if root else "user"):
            when = "always"
            if not full:
                where = [f"tests/e2e/test_{name}.py" for name in inside]
        result.append(Suite(f"{folder} through a daemon as {mode}",
                            pytest(where[0], "{report}", *where[1:], *long, *once), "junit",
                            {"EXECPY_MODE": "daemon" if mode == "root" else "daemon-user",
                             "EXECPY_SLOW": "3"}, minutes=60 if full else 8, when=when))
    parity = "--all" if full else "--tenth"
    result += [
        Suite("parity", [PYTHON, "tests/parity/run.py", parity], minutes=120 if full else 8),
        Suite("corpus of attacks", [PYTHON, "tests/parity/attacks.py"]),
        Suite("cgroup v2 in QEMU", ["tests/qemu/test_cgroup2.sh"], minutes=25, aside=True),
        Suite("fuzz", ["tests/fuzz/run.sh", "60"], minutes=20, when="full"),
        Suite("clang-tidy", ["./dev", "lint", "--tidy"], minutes=30, when="full"),
    ]
    return [suite for suite in result if full or suite.when == "always"]


def first_line(text):
    return (text or "").strip().split("\n", 1)[0][:200]


def count_junit(path):
    """Counts of pytest's report, what failed, and why what was skipped."""
    counts, failed, skipped = Counts(), [], collections.Counter()
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        wrong = case.find("failure") if case.find("failure") is not None else case.find("error")
        if wrong is not None:
            counts["failed"] += 1
            failed.append(f"{name}: {first_line(wrong.get('message'))}")
        elif case.find("skipped") is not None:
            reason = case.find("skipped").get("message") or "no reason"
            if REASON.search(reason):
                counts["skipped"] += 1
                skipped[reason] += 1
            else:
                counts["failed"] += 1
                failed.append(f"{name}: skipped, and no lack of the host is named: {reason}")
        else:
            counts["passed"] += 1
    return counts, failed, skipped


def count_meson(path):
    """The same of Meson's log. A program of cmocka's says how many tests it held."""
    counts, failed, skipped = Counts(), [], collections.Counter()
    for line in path.read_text().splitlines():
        test = json.loads(line)
        said = test.get("stdout", "") + test.get("stderr", "")
        passed = sum(int(n) for n in re.findall(r"\[  PASSED  \] (\d+) test", said))
        wrong = sum(int(n) for n in re.findall(r"\[  FAILED  \] (\d+) test", said))
        left_out = sum(int(n) for n in re.findall(r"\[  SKIPPED \] (\d+) test", said))
        if test["result"] == "SKIP":
            reason = said.strip().splitlines()[-1] if said.strip() else "no reason"
            left_out, skipped[f"{test['name']}: {reason}"] = max(left_out, 1), 1
        elif test["result"] not in ("OK", "EXPECTEDFAIL"):
            wrong = max(wrong, 1)
            failed.append(f"{test['name']}: {test['result']}")
        elif not passed + wrong + left_out:
            passed = 1
        counts.update(passed=passed, failed=wrong, skipped=left_out)
    return counts, failed, skipped


def count_line(log):
    found = LINE.findall(log)
    if not found:
        return None, [], {}
    passed, failed, skipped = map(int, found[-1])
    reasons = {line.strip(): 1 for line in log.splitlines()
               if re.match(r"\s*skipped\b.*:|.*: (skipped|excepted)\b", line)}
    return Counts(passed, failed, skipped), [], reasons


def execute(command, environment, log, seconds):
    """Exit status, or None when it took too long; then its whole process group is ended."""
    with open(log, "wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, env=environment,
                                   start_new_session=True)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            return None


def count(suite, build, report, log, status):
    if suite.count == "status":
        return Counts(passed=int(status == 0), failed=int(status != 0)), [], {}
    try:
        if suite.count == "junit":
            return count_junit(report)
        if suite.count.startswith("meson"):
            directory = str(build) + suite.count.partition(":")[2]
            return count_meson(pathlib.Path(directory) / "meson-logs/testlog.json")
    except (OSError, ValueError, ElementTree.ParseError) as error:
        return None, [f"no report: {error}"], {}
    return count_line(log)


def run(suite, build):
    place = build / "suites"
    place.mkdir(parents=True, exist_ok=True)
    stem = suite.name.replace(" ", "-")
    report, log = place / f"{stem}.xml", place / f"{stem}.log"
    report.unlink(missing_ok=True)
    environment = {**os.environ, "EXECPY_BIN": str(build / "src/cli/execpy"),
                   "MESON_BUILD_ROOT": str(build), "EXECPY_BUILD": str(build),
                   "FUZZ_BUILD": f"{build}-fuzz", **suite.environment}
    if pathlib.Path(f"{build}-mutants").is_dir():
        environment.setdefault("EXECPY_UNSAFE_BUILDS", f"{build}-mutants")
    command = [word.format(build=build, report=report) for word in suite.command]
    print(f"── {suite.name}", flush=True)
    said = []
    began = time.monotonic()
    status = execute(command, environment, log, suite.minutes * 60)
    text = log.read_text(errors="replace")
    counts, failed, skipped = count(suite, build, report, text, status)
    if counts is None:
        counts = Counts(failed=1)
        failed.append("said nothing that can be counted")
    if status is None:
        counts["failed"] += 1
        failed.append(f"took more than {suite.minutes} minutes")
    elif status != 0 and not counts["failed"]:
        counts["failed"] += 1
        failed.append(f"ended with status {status}")
    elif not sum(counts.values()):
        counts["failed"] += 1
        failed.append("ran nothing")
    if counts["failed"] and (suite.count != "junit" or not report.exists()):
        failed += FAILED_LINE.findall(text) or ["says in its log why"]
    for reason, times in skipped.items():
        said.append(f"   skipped{f' {times} times' if times > 1 else ''}: {reason}")
    said += [f"   FAILED: {name}" for name in failed]
    if counts["failed"]:
        said += [f"   | {line[:200]}" for line in text.splitlines()[-TAIL_LINES:]]
        said.append(f"   all of it: {log}")
    said.append(f"   {suite.name}: {counts} ({time.monotonic() - began:.0f} s)")
    print("\n".join(said), flush=True)  # at once: the lanes do not mix
    return counts, failed


def run_lane(lane, build):
    return [(suite.name, *run(suite, build)) for suite in lane]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--full", action="store_true", help="also the long parts")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="suites with a word in the name")
    parser.add_argument("--list", action="store_true", help="only name the suites")
    arguments = parser.parse_args()
    chosen = [suite for suite in suites(arguments.build, arguments.full)
              if not arguments.only or any(word in suite.name for word in arguments.only)]
    if arguments.list:
        print("\n".join(suite.name for suite in chosen))
        return 0
    began, total = time.monotonic(), Counts()
    build = arguments.build.absolute()
    lanes = [[suite for suite in chosen if suite.aside is aside] for aside in (False, True)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        table = [row for rows in pool.map(lambda lane: run_lane(lane, build), lanes)
                 for row in rows]
    for _, counts, _ in table:
        total.update(counts)
    print()
    for name, counts, _ in table:
        print(f"{name:24} {counts}")
    # Again, since what stands above may be cut.
    for name, _, failed in table:
        for which in failed:
            print(f"FAILED: {name}: {which}")
    print(f"{len(chosen)} suites in {time.monotonic() - began:.0f} s")
    print(total, flush=True)
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
