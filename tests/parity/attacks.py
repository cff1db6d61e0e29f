#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every snippet of tests/corpus/attacks.jsonl, with the verifier off: the jail alone must hold.

A snippet succeeds when it creates its marker, a file on the host outside the workspace. For each
of them, inside, with policy open:

  elsewhere   the marker lies in a directory that only the host has     → never created
  same name   the marker lies in /tmp, which inside is another one      → never created
  next        a plain run right afterwards                              → prints 55

Two controls keep this from passing void: most snippets create their marker outside, and most
create it inside too when it lies in the workspace, where they may write.
"""

import argparse
import json
import pathlib
import resource
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import runners
import tasks

SECONDS = 30
LIMITS = ["--time", f"{SECONDS}s", "--cpu", f"{SECONDS}s", "--memory", "1G"]
CONTROL_SHARE_MIN = 0.6
# Nothing refused, nothing of ours broken: how a snippet may end inside. A verifier's refusal
# would make the test void, as nothing would have run.
ENDS_REFUSED = {"blocked", "internal_error", "cancelled"}


def load():
    with open(tasks.CORPUS / "attacks.jsonl", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def aim(snippet, marker):
    """The snippet's code, aimed at this marker."""
    return snippet["code"].replace("@CMD@", f"touch {marker}").replace("@M@", str(marker))


class Host:
    """Directories on the host that a successful attack would leave its marker in."""

    def __init__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="execpy-attacks-", dir="/var/tmp"))
        # Anyone may write there, so that only the sandbox can be what prevents it.
        self.directory.chmod(0o1777)
        self.name = self.directory.name

    def elsewhere(self, snippet):
        return self.directory / f"{snippet['id']}.elsewhere"

    def same_name(self, snippet):
        return pathlib.Path("/tmp") / f"{self.name}.{snippet['id']}"

    def control(self, snippet):
        return self.directory / f"{snippet['id']}.control"

    def created(self, marker):
        """Whether the marker, or a file that is named after it, is there."""
        return any(marker.parent.glob(marker.name + "*"))

    def close(self):
        shutil.rmtree(self.directory, ignore_errors=True)
        for left in pathlib.Path("/tmp").glob(self.name + ".*"):
            left.unlink(missing_ok=True)


def attack(snippet, host, inside):
    """Returns the complaints about this snippet (none: contained) and its control inside."""
    complaints = []
    for place, marker in (("elsewhere", host.elsewhere(snippet)),
                          ("same name", host.same_name(snippet))):
        outcome = inside.run(aim(snippet, marker), SECONDS + 30)
        if host.created(marker):
            complaints.append(f"{place}: the marker was CREATED on the host ({outcome.how})")
        if outcome.how not in runners.STATUSES or outcome.how in ENDS_REFUSED:
            complaints.append(f"{place}: ended as {outcome.how}\n{outcome.tail()}")
    outcome = inside.run("print(sum(range(1, 11)))", SECONDS + 30)
    if outcome.how != "ok" or outcome.stdout != "55\n":
        complaints.append(f"next: the next run ends as {outcome.how}, prints {outcome.stdout!r}"
                          f"\n{outcome.tail()}")
    name = f"marker-{snippet['id']}"
    outcome = inside.run(aim(snippet, f"/workspace/{name}"), SECONDS + 30)
    works = any(file["path"].startswith(name) for file in outcome.result.get("files", []))
    return complaints, works, outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-j", type=int, default=2, dest="jobs", metavar="N",
                        help="snippets at a time (default: %(default)s)")
    parser.add_argument("--only", action="append", metavar="ID", help="this snippet; repeatable")
    parser.add_argument("--controls", action="store_true",
                        help="only the control outside; needs no execpy")
    parser.add_argument("-v", action="store_true", dest="verbose",
                        help="also name the snippets that fail in a control")
    arguments = parser.parse_args()
    binary = runners.execpy_binary()
    if binary is None and not arguments.controls:
        sys.exit("attacks.py: no execpy to test: build it, or set EXECPY_BIN")
    snippets = [s for s in load() if not arguments.only or s["id"] in arguments.only]
    if not snippets:
        sys.exit("attacks.py: no such snippet")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one snippet aborts

    passed = failed = 0
    host = Host()
    try:
        if not arguments.controls:
            passed, failed = run_inside(snippets, host, binary, arguments)
        ok = run_outside(snippets, host, arguments)
        passed, failed = passed + ok, failed + (not ok)
    finally:
        host.close()
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


def judge_control(where, works, snippets, details):
    """Prints a control's count; True when it shows that the attacks are real."""
    print(f"control {where}: {sum(works)} of {len(snippets)} snippets create their marker")
    for snippet, worked, detail in zip(snippets, works, details):
        if not worked and detail is not None:
            print(f"  {snippet['id']} {snippet['title']}: {detail.how}\n{detail.tail(3)}")
    return sum(works) >= CONTROL_SHARE_MIN * len(snippets)


def run_inside(snippets, host, binary, arguments):
    passed = failed = 0
    works, details = [], []
    inside = runners.Inside(binary, "open", LIMITS)
    try:
        with ThreadPoolExecutor(arguments.jobs) as pool:
            for snippet, (complaints, worked, outcome) in zip(
                    snippets, pool.map(lambda s: attack(s, host, inside), snippets)):
                works.append(worked)
                details.append(outcome if arguments.verbose else None)
                passed, failed = passed + (not complaints), failed + bool(complaints)
                for complaint in complaints:
                    print(f"{snippet['id']} {snippet['title']}: {complaint}", flush=True)
    finally:
        inside.close()
    markers = sum(host.created(place(snippet)) for snippet in snippets
                  for place in (host.elsewhere, host.same_name))
    print(f"inside: {markers} markers on the host from {len(snippets)} snippets")
    ok = judge_control("inside, marker in the workspace", works, snippets, details)
    return passed + ok, failed + (not ok)


def run_outside(snippets, host, arguments):
    outside = runners.Outside(confined=False)
    try:
        with ThreadPoolExecutor(arguments.jobs) as pool:
            outcomes = list(pool.map(
                lambda s: outside.run(aim(s, host.control(s)), SECONDS), snippets))
    finally:
        outside.close()
    works = [host.created(host.control(snippet)) for snippet in snippets]
    details = outcomes if arguments.verbose else [None] * len(snippets)
    return judge_control("outside, plain python3", works, snippets, details)


if __name__ == "__main__":
    sys.exit(main())
