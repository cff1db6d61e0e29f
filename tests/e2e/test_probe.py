# SPDX-License-Identifier: Apache-2.0
"""Dry runs: `execpy check --probe` tells what code did, and keeps nothing of it."""
import json

import pytest


@pytest.fixture
def probe(product, place):
    def call(code, *options):
        done = product.execute("check", "--probe", "--json", *options, "-c", code, cwd=place)
        return done, json.loads(done.out)
    return call


def details(seen, key):
    return [record["detail"] for record in seen[key]]


def test_what_it_did_is_told(probe):
    done, seen = probe("import json\nopen('a.txt', 'w').write('x')\nopen('a.txt').read()\n"
                       "import subprocess\nsubprocess.run(['true'])\nimport socket\n"
                       "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                       "try: s.connect(('192.0.2.1', 9))\nexcept OSError: pass\n"
                       "x = [0] * 10**6\n", "--policy", "open")
    assert done.returncode == 0 and seen["decision"] == "allow" and seen["status"] == "ok", seen
    assert "json" in details(seen, "imports")
    assert "a.txt" in details(seen, "files_written") and "a.txt" in details(seen, "files_read")
    assert any("exec" in call and "true" in call for call in seen["system_calls"]), seen
    assert any("192.0.2.1:9" in call for call in seen["system_calls"]), seen
    # The last one is taken when all is over, and then nothing may be left.
    assert max(sample["memory_bytes"] for sample in seen["samples"]) > 0
    assert [record["line"] for record in seen["imports"] if record["detail"] == "json"] == [1]


def test_limits_are_tight(probe):
    _, seen = probe("while True: pass")
    assert seen["status"] in ("timeout", "cpu_limit") and seen["limits"]["time_ms"] == 1000
    assert seen["usage"]["wall_ms"] < 3000 and len(seen["samples"]) > 5
    _, seen = probe("x = bytearray(b'x') * (80 << 20)")
    assert seen["status"] == "memory_limit" and seen["limits"]["memory_bytes"] == 50 << 20


def test_the_decision_is_the_policys(probe):
    done, seen = probe("import socket\ns = socket.socket()\ns.bind(('0.0.0.0', 8080))",
                       "--policy", "standard")
    assert done.returncode == 1 and seen["decision"] == "block" and seen["status"] == "anomaly"
    assert seen["anomaly"]["event"] == "socket.bind" and seen["anomaly"]["line"] == 3
    done, seen = probe("import socket\ns = socket.socket()\ns.bind(('0.0.0.0', 8080))")
    assert done.returncode == 1 and seen["decision"] == "block"
    assert "status" not in seen and "samples" not in seen  # it never ran


def test_nothing_is_kept(probe, place):
    probe("open('left.txt', 'w').write('x')")
    assert not list(place.glob("**/left.txt"))


def test_text_for_a_person(product, place):
    done = product.execute("check", "--probe", "-c", "open('a.txt', 'w').write('x')", cwd=place)
    assert done.returncode == 0
    assert "dry run: ok" in done.out and "files_written a.txt  (line 1)" in done.out
    wrong = product.execute("check", "--probe", "--sarif", "-c", "1", cwd=place)
    assert wrong.returncode == 2 and len(wrong.err.strip().splitlines()) == 1
