# SPDX-License-Identifier: Apache-2.0
"""The rates that the verifier must keep, on code that was not written for it."""
from collections import Counter

import verdicts
from verdicts import blocked, verify_many


def refused(items, policy):
    return [v for v in verify_many(items, policy, "--any-file") if blocked(v)]


def test_attacks_are_refused_under_strict():
    items = verdicts.attacks()
    found = refused(items, "strict")
    missed = {name for name, _ in items} - {v["name"] for v in found}
    assert len(found) / len(items) >= 0.97, sorted(missed)


def test_the_marker_s_place_does_not_matter():
    for place in ("/marker", "/opt/x/marker", "/var/tmp/marker", "/workspace/../marker", "/root/m"):
        items = [(name, code.replace(verdicts.MARKER.encode(), place.encode()))
                 for name, code in verdicts.attacks()]
        assert len(refused(items, "strict")) / len(items) >= 0.97, place


def test_every_case_is_refused_under_strict():
    items = verdicts.cases("attacks.txt")
    found = {v["name"] for v in refused(items, "strict")}
    assert not [name for name, _ in items if name not in found]


def test_open_refuses_nothing_and_reports():
    items = verdicts.attacks()
    found = verify_many(items, "open", "--any-file")
    assert not [v["name"] for v in found if blocked(v)]
    assert sum(bool(v["findings"]) for v in found) / len(items) >= 0.97


def test_quiet_scripts_pass_strict():
    items = [(name, code) for name, code in verdicts.bigcodebench() if verdicts.is_quiet(code)]
    assert 500 <= len(items) <= 520
    found = refused(items, "strict")
    assert len(found) / len(items) <= 0.01, [(v["name"], v["findings"]) for v in found]


def test_all_scripts_pass_standard():
    items = verdicts.bigcodebench()
    assert len(refused(items, "standard")) / len(items) <= 0.005


def test_humaneval_passes():
    items = verdicts.humaneval()
    for policy in ("strict", "standard", "open"):
        assert refused(items, policy) == []


def test_honest_look_alikes_have_nothing_to_hear():
    items = verdicts.cases("honest.txt")
    given = ("--stdin", "--file", "data.csv", "--file", "model.pkl")
    for policy in ("strict", "standard"):
        told = [(v["name"], v["findings"]) for v in verify_many(items, policy, *given)
                if any(f["severity"] != "note" for f in v["findings"])]
        # What is not installed on this host is the host's matter.
        told = [(name, findings) for name, findings in told
                if any(f["rule"] != "not-installed" and f["severity"] != "note" for f in findings)]
        assert told == []


def test_lint_finds_real_faults_in_honest_scripts_and_little_else():
    """Names that are told as undefined: each was looked at, and is a missing import."""
    known = {"pd", "np", "os", "json", "re", "plt", "random", "sns", "datetime", "string",
             "collections", "csv", "time", "math", "itertools"}
    found = Counter()
    for verdict in verify_many(verdicts.bigcodebench() + verdicts.humaneval(), "standard"):
        for finding in verdict["findings"]:
            if finding["rule"] == "undefined-name":
                found[finding["message"].split("'")[1]] += 1
            assert finding["hint"] and finding["message"]
            assert finding["rule"] not in ("endless-loop", "long-sleep", "syntax-error", "too-deep")
    assert set(found) <= known, found
    assert sum(found.values()) <= 15
