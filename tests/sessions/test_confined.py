# SPDX-License-Identifier: Apache-2.0
"""Code that attacks its own session: it may lose it, and nothing else happens."""
import pytest

from conftest import PROCESSES, Refused

# The one descriptor of ours that code can reach: the link to its judge.
LINK = ("import os\ndef link():\n    for fd in map(int, os.listdir('/proc/self/fd')):\n"
        "        try:\n            if fd > 2 and os.readlink(f'/proc/self/fd/{fd}').startswith('socket'):\n"
        "                return fd\n        except OSError: pass\n")


def test_there_is_one_descriptor_and_it_is_out_of_the_way(session):
    session.ok(LINK)
    assert int(session.value("link()")) >= 100
    assert session.value("len([fd for fd in os.listdir('/proc/self/fd') if int(fd) > 2])") == "2"


def test_closing_the_link(session):
    session.ok("x = 1\n" + LINK)
    result = session.run("os.close(link())\ny = 2")
    assert result["status"] in ("error", "crashed"), result
    assert result["session"]["restored"] is True
    assert session.value("x, 'y' in globals()") == "(1, False)"


def test_lying_about_the_end(session):
    """A forged word that the run is over: nothing of it counts beyond the session."""
    session.ok("x = 1\n" + LINK)
    done = ("import struct, socket\ns = socket.socket(fileno=os.dup(link()))\n"
            "body = struct.pack('<HIQ', 36, 8, 0)\n"
            "s.send(struct.pack('<HHIQ', 0x5845, {type}, len(body), {run}) + body)\n")
    result = session.run(done.format(type=132, run=2) + "import time\ntime.sleep(0.5)\nlate = 1")
    assert result["status"] in ("ok", "crashed"), result
    # Whatever became of that process, the session goes on and a limit still holds.
    session.run("import time\ntime.sleep(1)")
    assert session.run("while True: pass", time_ms=400)["status"] == "timeout"
    assert session.value("x") == "1"


@pytest.mark.parametrize("what", ["b'x'", "b'x' * 200000", "b''", "bytes(16)"])
def test_noise_on_the_link(session, what):
    session.ok("x = 1\n" + LINK)
    session.run("import socket\ns = socket.socket(fileno=os.dup(link()))\n"
                f"s.send({what})\nimport time\ntime.sleep(0.3)", time_ms=3000)
    session.run("1")
    assert session.value("x") == "1"


def test_the_judge_cannot_be_reached(session):
    session.ok("import os, signal\nparent = os.getppid()")
    for attack in ("os.kill(parent, signal.SIGKILL)", "os.kill(parent, signal.SIGSTOP)",
                   "open(f'/proc/{parent}/mem', 'r+b')", "os.listdir(f'/proc/{parent}/fd')",
                   "open(f'/proc/{parent}/oom_score_adj', 'w')", "os.readlink(f'/proc/{parent}/exe')"):
        result = session.run(attack)
        assert result["status"] == "error" and result["error"]["type"] == "PermissionError", \
            (attack, result)
    assert session.value("parent > 1") == "True"


def test_killing_ones_own_checkpoints(session):
    session.ok("x = 1")
    session.ok("x = 2")
    result = session.run(PROCESSES + "import time\nassert kill_checkpoints()\ntime.sleep(0.3)")
    assert result["status"] == "ok", result
    session.ok("x += 1")
    result = session.run("os._exit(1)")
    assert result["session"]["restored"] is True
    assert session.value("x") == "3"


def test_killing_the_checkpoints_and_oneself(session, tool):
    session.ok("x = 1")
    result = session.run(PROCESSES + "import time\nassert kill_checkpoints()\ntime.sleep(0.3)\nos._exit(1)")
    assert result["status"] == "internal_error" and "checkpoint is gone" in \
        result["error"]["message"], result
    with pytest.raises(Refused, match="has ended: .*checkpoint is gone") as refused:
        session.run("1")
    assert refused.value.errno == "EIDRM"
    assert tool.open().value("1") == "1"


def test_a_forged_mailbox(session):
    """Its own memory is the code's to write: what it forges is its own value."""
    session.ok("x = 1")
    session.run("import ctypes\nfor line in open('/proc/self/maps'):\n"
                "    if 'execpy-mailbox' in line:\n"
                "        start, end = (int(n, 16) for n in line.split()[0].split('-'))\n"
                "        ctypes.memset(start, 255, 64)\n        ctypes.memset(start + (4 << 20), 255, 4096)")
    assert session.ok("x")["value"] == {"text/plain": "1"}


def test_no_network_no_outside_in_a_later_run(session):
    session.ok("x = 1")
    session.run("import os\nos._exit(1)")
    for code in ("import socket\nsocket.create_connection(('192.0.2.1', 80), 1)",
                 "open('/etc/shadow')", "open('/usr/x', 'w')", "import os\nos.mkdir('/x')",
                 "import os\nos.setuid(0)", "import os\nos.unshare(0x10000000)"
                 if hasattr(__import__('os'), "unshare") else "open('/proc/1/mem', 'r+b')"):
        result = session.run(code)
        assert result["status"] == "error", (code, result)


@pytest.mark.parametrize("restored", [False, True])
def test_an_anomaly_ends_the_run_and_not_the_session(tool, restored):
    session = tool.open(policy="standard")
    session.ok("x = 1")
    if restored:
        session.run("import os\nos._exit(1)")
    for _ in range(2):
        result = session.run("import ctypes\nc = ctypes.CDLL(None)\nfd = c.socket(2, 1, 0)\n"
                             "c.listen(fd, 1)\nx = 2")
        assert result["status"] == "anomaly" and result["anomaly"]["event"] == "socket.listen", \
            result
        assert result["session"]["restored"] is True
        assert session.value("x") == "1"


def test_the_disk_and_memory_are_the_sessions(tool):
    session = tool.open(memory_bytes=60 << 20, disk_bytes=2 << 20)
    session.ok("hold = bytearray(30 << 20)")
    result = session.run("more = bytearray(50 << 20)")
    assert result["status"] == "memory_limit", result
    assert session.value("len(hold) >> 20") == "30"
    result = session.run("open('f', 'wb').write(bytes(3 << 20))")
    assert result["status"] == "disk_limit", result


def test_processes_are_limited(tool):
    session = tool.open(processes=10)
    result = session.ok("import os, time\ncount = 0\ntry:\n    while count < 200:\n"
                        "        if os.fork() == 0: time.sleep(100)\n        count += 1\n"
                        "except OSError: pass\ncount")
    # Ours are counted with the code's; it may have what they do not need.
    assert 9 <= int(result["value"]["text/plain"]) <= 10 + 24
    session.run("import os\nos._exit(1)")
    assert session.value("'count' in globals()") in ("True", "False")
