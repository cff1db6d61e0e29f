# SPDX-License-Identifier: Apache-2.0
"""Attack scenarios: one file one attack, a TOML header in comment lines `#|` above the payload.

    #| id = "F05"                     the line of the list of attacks
    #| title = "..."                  what is tried, in one line
    #| does = "..."                   how, and what must happen
    #| needs = ["landlock"]           features of the host (harness/host.py); else it is skipped
    #| options = ["--time", "1s"]     options of `execpy run`
    #| args = ["a"]                   arguments of the code
    #| files = ["tool=helper:payload"]  NAME=helper:X, NAME=text:TEXT or NAME=canary
    #| out = true                     also fetch the files with --out
    #| time = 5                       the limit that rules the wall time, in seconds
    #| [expect]                       of the run: status ("a|b"), exit_code, signal, verdicts,
    #|                                has, lacks (in stdout or stderr), files, refused, absent,
    #|                                wall_max, processes_max, processes_min, count (of files: all
    #|                                are there, or an entry or a finding tells of what is not)
    #| [without_cgroups]              what differs from [expect] in the mode `user`, where there are
    #|                                only resource limits
    #| [control]                      kind ("plain", "host", "none" with reason), as, verdicts,
    #|                                status, linger, after + after_is, leaves, alive, peak_over,
    #|                                collects_secret, time, memory, processes, supervisor, needs
    #| [next]                         what is expected of the second run, if there is one

A line `#== next run` parts the payload into two runs.  `@CANARY@` stands for a directory outside
with secret.txt, canary.txt and tree/; `@MARK@` for a word that must never name a thing outside,
`@REPOSITORY@` for the folder that the repository lies in.
"""
import json
import re
import tomllib
from pathlib import Path

from . import host

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = ROOT if ROOT.parent == Path("/") else ROOT.parent
PRELUDE = Path(__file__).with_name("prelude.py").read_text()
KEYS = {"id", "title", "does", "needs", "options", "args", "files", "out", "time", "expect",
        "control", "next", "without_cgroups"}
EXPECT = {"status", "exit_code", "signal", "verdicts", "has", "lacks", "files", "refused", "absent",
          "wall_max", "processes_max", "processes_min", "count"}
CONTROL = {"kind", "reason", "as", "verdicts", "status", "linger", "after", "after_is", "leaves",
           "alive", "peak_over", "collects_secret", "time", "memory", "processes", "supervisor",
           "has", "needs"}


class Scenario:
    def __init__(self, path):
        self.path = path
        lines = path.read_text().splitlines(keepends=True)
        header = "".join(line[2:].removeprefix(" ") for line in lines if line.startswith("#|"))
        try:
            self.header = tomllib.loads(header)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{path}: {error}") from error
        body = "".join(line for line in lines if not line.startswith("#|"))
        self.payloads = re.split(r"^#== next run\n", body, flags=re.MULTILINE)
        h = self.header
        self.id, self.title = h["id"], h["title"]
        self.needs = h.get("needs", [])
        self.options = h.get("options", [])
        self.args = h.get("args", [])
        self.files = [entry.split("=", 1) for entry in h.get("files", [])]
        self.out = h.get("out", False)
        self.time = h.get("time", 5)
        self.expect = h["expect"]
        self.control = h["control"]
        self.next = h.get("next")
        self.without_cgroups = h.get("without_cgroups", {})
        for given, known in ((h, KEYS), (self.expect, EXPECT), (self.next or {}, EXPECT),
                             (self.without_cgroups, EXPECT),
                             (self.control, CONTROL)):
            unknown = set(given) - known
            if unknown:
                raise ValueError(f"{path}: unknown keys {sorted(unknown)}")
        if self.control["kind"] == "none" and not self.control.get("reason"):
            raise ValueError(f"{path}: a control of kind none says why")
        if not h.get("does"):
            raise ValueError(f"{path}: says not what it does")
        if (self.next is None) != (len(self.payloads) == 1):
            raise ValueError(f"{path}: two runs need [next], and only they")

    def codes(self, canary, mark):
        """The complete code of each run, with what stands for paths filled in."""
        found = []
        for payload in self.payloads:
            text = payload.replace("@CANARY@", str(canary)).replace("@MARK@", mark)
            text = text.replace("@REPOSITORY@", str(REPOSITORY))
            numbers = host.syscall_numbers()
            used = {word: numbers[word] for word in re.findall(r'"(\w+)"', text) if word in numbers}
            found.append(PRELUDE.replace("_NR = {}", f"_NR = {json.dumps(used)}", 1) + text)
        return found

    @property
    def name(self):
        return f"{self.path.parent.name}/{self.path.stem}"


def verdicts(stdout):
    """name -> text of the lines `@name: text`."""
    found = {}
    for line in stdout.splitlines():
        match = re.fullmatch(r"@([\w.+/:-]+): (.*)", line)
        if match:
            if match[1] in found and found[match[1]] != match[2]:
                found[match[1]] += " and " + match[2]
            else:
                found[match[1]] = match[2]
    return found


def compare_verdicts(expected, stdout, side):
    """Every verdict must be there, as it is expected (a regular expression), and no other."""
    got = verdicts(stdout)
    wrong = {n: got.get(n, "(missing)") for n, pattern in expected.items()
             if not re.fullmatch(pattern, got.get(n, "(missing)"))}
    assert not wrong, f"{side}: " + "; ".join(
        f"{n}: expected {expected[n]}, got {g}" for n, g in wrong.items())
    more = set(got) - set(expected)
    assert not more, f"{side}: verdicts nobody expects: {sorted(more)}"


def load_all(directory):
    found = [Scenario(path) for path in sorted(Path(directory).glob("*/*.py"))
             if not path.name.startswith(("test_", "_", "conftest"))]
    ids = [s.id for s in found]
    twice = {i for i in ids if ids.count(i) > 1}
    if twice:
        raise ValueError(f"scenario ids that are there twice: {sorted(twice)}")
    return found
