# SPDX-License-Identifier: Apache-2.0
"""Runs every scenario file: the control, the attack, and the post-conditions a to g after it."""
import os
import re
import shutil
import stat
from pathlib import Path

import pytest

from harness.host import need
from harness import host
from harness.control import run_control
from harness.product import GRACE_S, SLOW, USER
from harness.scenario import compare_verdicts, load_all

SCENARIOS = load_all(Path(__file__).parent)


def ids(scenario):
    return f"{scenario.id}-{scenario.name}"


def check_control(scenario, product, canary, mark, tmp):
    """The attack works on the plain interpreter; else the case is void."""
    c = scenario.control
    if c["kind"] == "none":
        return
    for feature in c.get("needs", []):
        if host.missing_feature(feature):
            print(f"control not run: {host.missing_feature(feature)} ({scenario.name})")
            return
    role = c.get("as", "root" if c["kind"] == "host" else "same")
    if os.geteuid() != 0 and (role == "root" or c["kind"] == "host"):
        print(f"control not run: it needs root ({scenario.name})")
        return
    uid = {"same": product.uid, "root": None, "user": USER}[role]
    outside = tmp / "outside"
    shutil.copytree(canary.directory, outside)
    if uid is not None:
        for base, names, files in os.walk(outside):
            os.chown(base, uid, uid)
            for name in files:
                os.chown(os.path.join(base, name), uid, uid)
    done = run_control(
        scenario.codes(outside, mark), kind=c["kind"], uid=uid, files=inputs(scenario, canary, tmp),
        env={"EXECPY_TEST_SECRET": canary.secret}, args=scenario.args, time=c.get("time", 10),
        linger=c.get("linger", 0), after=c.get("after"), parent=tmp,
        memory_bytes=c.get("memory", 1024) << 20, processes=c.get("processes", 700),
        supervisor=c.get("supervisor", False), collect=c.get("collects_secret", False),
        leaves=c.get("leaves", []))
    said = f"control of {scenario.name} (void if this fails)"
    detail = f"{said}: {done}"[:4000]
    if "verdicts" in c:
        compare_verdicts(c["verdicts"], done.stdout, said + f"\n{done.stderr[-1500:]}")
    # "signal" where many are sent at once and chance decides which of them is taken first.
    status, ended = c.get("status", 0), done.runs[0]["status"]
    assert ended == status or status == "signal" and ended != "timeout" and ended < 0, detail
    for text in c.get("has", []):
        assert text.replace("@SECRET@", canary.secret) in done.stdout + done.stderr, detail
    for name in c.get("leaves", []):
        assert any(Path(left).match(name) for left in done.left), detail
    if "after_is" in c:
        assert done.runs[0]["after"] == c["after_is"], detail
    if c.get("alive"):
        assert done.runs[0]["alive"], detail
    if "peak_over" in c:
        assert done.peak_processes is None or done.peak_processes > c["peak_over"], detail
    if c.get("collects_secret"):
        assert canary.secret.encode() in done.read_back, detail


def inputs(scenario, canary, tmp):
    """[(name in the workspace, path on the host)] of the scenario's input files."""
    found = []
    for name, source in scenario.files:
        kind, _, rest = source.partition(":")
        if kind == "helper":
            path = host.helper(rest)
        elif kind == "text":
            path = tmp / ("input-" + re.sub(r"\W", "_", name))
            path.write_text(rest)
            os.chmod(path, 0o644)
        else:
            path = canary.path
        found.append((name, path))
    return found


def check_expectations(scenario, expect, done, canary):
    result = done.result
    detail = f"{scenario.name}: {done}"
    if "verdicts" in expect:
        compare_verdicts(expect["verdicts"], result["stdout"], detail)
    assert re.fullmatch(expect["status"], result["status"]), \
        f"status {result['status']}, expected {expect['status']}: {detail}"
    for key in ("exit_code", "signal"):
        if key in expect:
            assert result[key] == expect[key], detail
    for text in expect.get("has", []):
        assert text in result["stdout"] + result["stderr"], f"lacks {text!r}: {detail}"
    for text in expect.get("lacks", []):
        assert text not in done.out, f"has {text!r}: {detail}"
    collected = {f["path"] for f in result["files"] if "sha256" in f}
    refused = {f["path"]: f["refused"] for f in result["files"] if "refused" in f}
    for name in expect.get("files", []):
        assert name in collected, f"{name} was not collected: {detail}"
    for pattern in expect.get("refused", []):
        assert any(re.fullmatch(pattern, name) for name in refused), \
            f"{pattern} was not refused with a reason: {detail}"
        assert not any(re.fullmatch(pattern, name) for name in collected), detail
    for name in expect.get("absent", []):
        assert name not in collected, f"{name} was collected: {detail}"
    if "count" in expect:
        said = [f for f in result["findings"] if f["rule"].startswith("files-")]
        assert len(collected) >= expect["count"] or refused or said, \
            f"{len(collected)} files, and nothing says that some were left out: {detail}"
    peak = result["usage"]["processes_peak"]
    assert peak <= expect.get("processes_max", 1 << 30), f"processes_peak {peak}: {detail}"
    assert peak >= expect.get("processes_min", 0), f"processes_peak {peak}: {detail}"
    # e) the wall time, as the caller sees it.
    limit = expect.get("wall_max", scenario.time + GRACE_S)
    assert done.seconds <= limit * SLOW, f"took {done.seconds:.2f} s, at most {limit}: {detail}"


def check_out(directory, canary):
    """What was fetched is regular files and directories only, without any special bit."""
    for base, names, files in os.walk(directory):
        for name in names + files:
            path = Path(base, name)
            mode = path.lstat().st_mode
            assert stat.S_ISREG(mode) or stat.S_ISDIR(mode), f"{path} is neither file nor directory"
            assert not mode & 0o7000, f"{path} has mode {mode:o}"
            assert path.lstat().st_nlink == 1 or stat.S_ISDIR(mode), f"{path} has several names"
            if stat.S_ISREG(mode) and path.stat().st_size < 1 << 20:
                assert canary.secret.encode() not in path.read_bytes(), f"the secret is in {path}"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=ids)
def test_attack(scenario, product, canary, watch, place, base, pytestconfig, tmp_path_factory):
    for feature in scenario.needs:
        need(feature)
    private = Path(base) / (place.name + "-private")
    private.mkdir()
    try:
        if not pytestconfig.getoption("--no-controls"):
            check_control(scenario, product, canary, watch.mark, private)
        files = [word for name, path in inputs(scenario, canary, private)
                 for word in ("--file", f"{path}:{name}")]
        # In the run, the canary's path is the real one.
        expectations = [scenario.expect, scenario.next]
        if product.mode in ("user", "daemon-user"):
            expectations[0] = {**scenario.expect, **scenario.without_cgroups}
        for number, code in enumerate(scenario.codes(canary.directory, watch.mark)):
            options = ["--policy", "open", *scenario.options, *files]
            if scenario.out:
                options += ["--out", place / f"out{number}"]
            if scenario.args:
                options += ["--", *scenario.args]
            script = place / f"payload{number}.py"
            script.write_text(code, encoding="utf-8", errors="surrogateescape")
            product.give(script)
            before = sorted(os.listdir(place))
            done = product.run(script, *options, cwd=place, timeout=scenario.time + 30)
            check_expectations(scenario, expectations[number], done, canary)
            if scenario.out:
                check_out(place / f"out{number}", canary)
            new = set(os.listdir(place)) - set(before) - {f"out{number}"}
            assert not new, f"new files beside the run: {sorted(new)}"
        # a to d) the host is as it was; f) was checked with each result; g) the next run works.
        watch.check()
        product.answers(place)
        watch.check()
    finally:
        shutil.rmtree(private, ignore_errors=True)


def test_every_line_has_a_scenario(product):
    """The list of what is covered is complete for the groups of this suite."""
    lines = {
        "P": [1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 19, 21, 22, 23],
        "R": [1, 2, 4, 5, 6, 8, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23, 25],
        "F": [1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 13, 15, 16],
        "X": [1, 2, 4, 5, 6, 8, 9, 10, 11, 13, 15, 16],
        "S": [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 14, 15],
        "N": [1, 2, 3, 5, 6, 7, 9, 10, 11, 12],
        "C": [1, 2, 4, 5, 6, 8], "L": [3, 4, 5],
        "H": [1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13],
    }
    text = " ".join(s.id for s in SCENARIOS)
    here = Path(__file__).parent
    for path in (*here.glob("test_*.py"), *here.parent.glob("e2e/test_*.py")):
        if path.name != "test_scenarios.py":
            text += path.read_text()
    missing = [f"{group}{n:02d}" for group, numbers in lines.items() for n in numbers
               if f"{group}{n:02d}" not in text]
    assert not missing, f"no scenario and no test names these lines: {missing}"
