# SPDX-License-Identifier: Apache-2.0
"""`execpy doctor`: every layer has its rows, a missing one is named, and so is what to do about it.

EXECPY_UNSAFE_BUILDS   a directory with builds that lack a layer, each named after the value of
                       -Dunsafe_without it was made with; without it that test is skipped
"""
import errno
import json
import os
import pty
import subprocess
import time
from pathlib import Path

import pytest

from harness import host
from harness.product import SLOW

# Layer: how many rows it has at least.
LAYERS = {
    "kernel": 1, "start": 2, "cgroups": 1, "user namespace": 4, "mount namespace": 6,
    "pid namespace": 6, "network namespace": 9, "ipc namespace": 1, "uts namespace": 2,
    "cgroup namespace": 1, "capabilities": 4, "seccomp": 5, "landlock": 3, "watch": 1,
    "descriptors": 1, "environment": 1, "limits": 7, "interpreter": 4,
}
# What a build without something must be found out by.
UNSAFE = {
    "seccomp": "seccomp", "landlock": "landlock", "capabilities": "capabilities",
    "network": "network namespace", "cgroups": "cgroups", "descriptors": "descriptors",
    "rlimits": "limits", "watch": "watch",
}
ROW_KEYS = {"layer", "asked", "state", "got", "proof", "remedy"}


def check(report):
    """The form of a report, whatever it says."""
    assert set(report) == {"complete", "missing", "version", "rows"}
    for row in report["rows"]:
        assert set(row) == ROW_KEYS
        assert row["state"] in ("ok", "missing", "info"), row
        assert all(row[key] for key in ("layer", "asked", "got", "proof")), row
        assert row["remedy"] is None or row["state"] == "missing", row
    missing = [row for row in report["rows"] if row["state"] == "missing"]
    assert report["missing"] == len(missing)
    assert report["complete"] == (not missing)
    return report


def missing_layers(report):
    return {row["layer"] for row in report["rows"] if row["state"] == "missing"}


@pytest.fixture(scope="module")
def done(unchecked_product):
    done = unchecked_product.execute("doctor", "--json", timeout=120)
    done.result = check(json.loads(done.stdout))
    return done


def test_every_row_is_there(done):
    layers = [row["layer"] for row in done.result["rows"]]
    counts = {layer: layers.count(layer) for layer in layers}
    assert set(counts) == set(LAYERS)
    assert {layer: n for layer, n in counts.items() if n < LAYERS[layer]} == {}
    asked = [(row["layer"], row["asked"]) for row in done.result["rows"]]
    assert len(set(asked)) == len(asked), "a row is there twice"


def test_rows_of_a_layer_stand_together(done):
    layers = [row["layer"] for row in done.result["rows"]]
    assert len([i for i in range(len(layers)) if i == 0 or layers[i] != layers[i - 1]]) == \
        len(set(layers))


def test_the_jail_holds_here(done, unchecked_product):
    wrong = missing_layers(done.result)
    if unchecked_product.mode in ("user", "daemon-user"):
        wrong.discard("cgroups")  # nobody gave this user any
        assert done.returncode in (0, 1)
    else:
        assert done.returncode == 0, done
    assert wrong == set(), done
    assert done.stderr == b""


def test_limits_were_really_reached(done):
    got = {row["asked"].split(":")[0]: row["got"] for row in done.result["rows"]
           if row["layer"] == "limits"}
    cgroups = [row["got"] for row in done.result["rows"] if row["layer"] == "cgroups"][0]
    assert got.pop("memory") in (("memory_limit",) if cgroups != "none"
                                 else ("memory_limit", "MemoryError"))
    assert got == {"processes": "EAGAIN", "CPU": "cpu_limit", "time": "timeout",
                   "output": "output_limit", "disk": "ENOSPC", "resource limits": "set"}


def test_table_is_plain_when_piped(unchecked_product, done):
    table = unchecked_product.execute("doctor", timeout=120)
    assert table.returncode == done.returncode
    assert b"\x1b" not in table.stdout
    lines = table.out.splitlines()
    assert lines[0].split() == ["layer", "asked", "got", "proof"]
    for layer in LAYERS:
        assert any(line[9:].startswith(layer) for line in lines), layer


@pytest.mark.parametrize("variables, coloured", [
    ({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False),
    ({"TERM": "dumb"}, False), ({"TERM": "xterm", "NO_COLOR": ""}, True)])
def test_colours_only_on_a_terminal(unchecked_product, variables, coloured):
    ours, theirs = pty.openpty()
    environment = {"PATH": os.environ["PATH"], **variables}
    # No warden to be started, so that the answer comes at once.
    masked = [host.helper("mask-syscall"), str(host.syscall_number("socketpair")),
              str(errno.EMFILE)]
    process = subprocess.Popen([*masked, unchecked_product.binary, "doctor"], stdout=theirs,
                               stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=environment)
    os.close(theirs)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    assert process.wait() == 1
    assert (b"\x1b[" in seen) == coloured
    assert b"socketpair" in seen


def test_it_leaves_nothing_behind(watch, unchecked_product):
    before = set(Path("/tmp").glob("execpy-doctor-*"))
    unchecked_product.execute("doctor", "--json", timeout=120)
    left = set(Path("/tmp").glob("execpy-doctor-*")) - before
    # Another doctor on this host may have made some as well, but it takes them away.
    deadline = time.monotonic() + 10 * SLOW
    while any(path.exists() for path in left):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


@pytest.mark.parametrize("call, number, words, remedy", [
    ("landlock_create_ruleset", errno.ENOSYS, "no Landlock", "lsm="),
    ("clone3", errno.ENOSYS, "clone3", "seccomp"),
    ("mount_setattr", errno.ENOSYS, "mounts:", "5.14"),
])
def test_nothing_works(unchecked_product, call, number, words, remedy):
    """A host on which no cell can be started: each row is there, with the step and the remedy."""
    if os.geteuid() != 0:
        pytest.skip("masking a system call without no_new_privs needs root")
    mask = [str(host.helper("mask-syscall")), str(host.syscall_number(call)), str(number)]
    done = subprocess.run([*mask, unchecked_product.binary, "doctor", "--json"],
                          capture_output=True, timeout=120 * SLOW)
    assert done.returncode == 1, done
    report = check(json.loads(done.stdout))
    start = [row for row in report["rows"] if row["layer"] == "start"]
    assert len(start) == 1 and start[0]["state"] == "missing"
    assert words in start[0]["proof"] and remedy in start[0]["remedy"], start
    silent = {"kernel", "start", "interpreter", "watch", "landlock", "cgroups"}
    for row in report["rows"]:
        if row["layer"] not in silent:
            assert (row["state"], row["got"]) == ("missing", "not tried"), row
    assert {row["layer"] for row in report["rows"]} >= set(LAYERS) - {"watch"}


def test_no_user_namespaces(unchecked_product):
    if os.geteuid() != 0:
        pytest.skip("needs root to be an unprivileged user of a namespace of its own")
    script = ("echo 0 > /proc/sys/user/max_user_namespaces && "
              f"exec {unchecked_product.binary} doctor --json")
    done = subprocess.run(["unshare", "-Ur", "sh", "-c", script], capture_output=True,
                          timeout=120 * SLOW)
    assert done.returncode == 1, done
    start = [row for row in check(json.loads(done.stdout))["rows"] if row["layer"] == "start"]
    assert start[0]["state"] == "missing" and start[0]["remedy"]


@pytest.mark.parametrize("layer", UNSAFE)
def test_a_build_without_a_layer_is_found_out(layer):
    directory = os.environ.get("EXECPY_UNSAFE_BUILDS")
    if not directory:
        pytest.skip("EXECPY_UNSAFE_BUILDS names no directory")
    binary = Path(directory) / layer / "src/cli/execpy"
    if not binary.exists():
        pytest.skip(f"{binary} is not built")
    done = subprocess.run([binary, "doctor", "--json"], capture_output=True, timeout=120 * SLOW)
    assert done.returncode == 1, done
    report = check(json.loads(done.stdout))
    assert UNSAFE[layer] in missing_layers(report), report
    assert "start" not in missing_layers(report), report


def test_help(unchecked_product):
    done = unchecked_product.execute("doctor", "--help")
    assert done.returncode == 0 and done.stderr == b""
    assert done.out.startswith("usage: execpy doctor")


@pytest.mark.parametrize("arguments", [("--jsn",), ("now",), ("--json=1",)])
def test_wrong_usage(unchecked_product, arguments):
    done = unchecked_product.execute("doctor", *arguments)
    assert done.returncode == 2 and done.stdout == b""
    assert done.err.startswith("execpy: ") and done.err.count("\n") == 1


def test_a_closed_pipe_is_our_failure(unchecked_product):
    reading, writing = os.pipe()
    os.close(reading)
    mask = [str(host.helper("mask-syscall")), str(host.syscall_number("socketpair")),
            str(errno.EMFILE)]
    done = subprocess.run([*mask, unchecked_product.binary, "doctor"], stdout=writing,
                          stderr=subprocess.PIPE, timeout=60 * SLOW)
    os.close(writing)
    assert done.returncode == 125 and done.stderr.startswith(b"execpy: ")
