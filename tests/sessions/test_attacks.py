# SPDX-License-Identifier: Apache-2.0
"""The scenarios of tests/attacks, from inside a session: in its first run, and in a runner that was
forked by a checkpoint. That each works unconfined is shown there."""
from pathlib import Path

import pytest

from harness import host
from harness.scenario import compare_verdicts, load_all

# Why a scenario says nothing about sessions, or something else there.
OTHERWISE = {
    "process/": "a session's processes are its own and its judge's",
    "collection/": "files are told by comparison with the run before",
    "resources/": "limits have tests of their own: test_confined.py, test_crashes.py",
    "neighbours/": "needs two cells at one time",
    "credentials/descriptors": "the link to the judge is one more: test_confined.py",
    "namespaces/list_processes": "judge and checkpoints are there: test_confined.py",
}


def plain(scenario):
    """Runs once, with what a run of a session has, and tells by its verdicts."""
    return (not scenario.options and not scenario.out and scenario.next is None and
            not scenario.files and not scenario.args and "verdicts" in scenario.expect and
            not any(scenario.name.startswith(folder) for folder in OTHERWISE))


SCENARIOS = [s for s in load_all(Path(__file__).parents[1] / "attacks") if plain(s)]


def cases():
    for number, scenario in enumerate(SCENARIOS):
        marks = [] if number % 5 == 0 else [pytest.mark.full]
        yield pytest.param(scenario, id=f"{scenario.id}-{scenario.name}", marks=marks)


@pytest.mark.parametrize("scenario", cases())
def test_attack(scenario, tool, product, canary, watch):
    for feature in scenario.needs:
        if host.missing_feature(feature):
            pytest.skip(host.missing_feature(feature))
    expect = scenario.expect
    if product.mode in ("user", "daemon-user"):
        expect = {**expect, **scenario.without_cgroups}
    code, = scenario.codes(canary.directory, watch.mark)
    for kind in ("fresh", "restored", "branch"):
        session = tool.open()
        if kind == "restored":
            assert session.run("import os\nos._exit(1)")["session"]["restored"]
        if kind == "branch":
            origin = session
            session, = origin.fork()
            origin.call("end")
        result = session.run(code)
        detail = f"{scenario.name}, {kind}: {result}"[:4000]
        compare_verdicts(expect["verdicts"], result["stdout"], detail)
        assert result["status"] in expect["status"].split("|"), detail
        assert canary.secret not in str(result), detail
        assert session.value("1 + 1") == "2"
        session.call("end")


def test_there_are_enough():
    assert len(SCENARIOS) > 30, len(SCENARIOS)
