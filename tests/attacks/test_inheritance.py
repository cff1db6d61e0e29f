# SPDX-License-Identifier: Apache-2.0
"""What a careless caller leaves behind when it starts execpy must not reach the code.

C04 signals, mask, umask, directory, priority, limits, score, personality, timers, descriptors;
C06 keyrings; C08 command lines; C01 environments of our own processes."""
import os
import subprocess
import time

import pytest

from common import wait_for_output
from harness.host import need
from harness import host
from harness.witness import descendants

STATE = r"""
import ctypes, os, resource, signal
libc = ctypes.CDLL(None, use_errno=True)
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines()
              if ":\t" in line)
ignored = int(status["SigIgn"], 16)
# Python itself ignores SIGPIPE (13) and SIGXFSZ (25); 32 is the C library's own.
print("ignored", hex(ignored & ~(1 << 12 | 1 << 24 | 1 << 31)))
print("blocked", status["SigBlk"].strip())
umask = os.umask(0o22)
print("umask", oct(umask))
print("nice", os.getpriority(os.PRIO_PROCESS, 0))
print("cwd", os.getcwd())
print("fsize", resource.getrlimit(resource.RLIMIT_FSIZE)[0] == 1 << 20)
print("oom", open("/proc/self/oom_score_adj").read().strip())
print("personality", libc.personality(0xffffffff) & 0xffffffff)
print("timer", signal.getitimer(signal.ITIMER_REAL)[0] > 0)
fds = []
for fd in range(256):
    try:
        os.fstat(fd)
        fds.append(fd)
    except OSError:
        pass
print("fds", fds)
"""
CLEAN = {"ignored": "0x0", "blocked": "0000000000000000", "personality": "0", "timer": "False",
         "fsize": "False", "fds": "[0, 1, 2]", "cwd": "/workspace", "umask": "0o22"}


def facts(text):
    return dict(line.split(" ", 1) for line in text.splitlines())


def test_C04_control(canary, watch, place):
    """The launcher leaves all of it behind: the plain interpreter inherits every one."""
    done = subprocess.run([host.helper("payload"), "dirty", str(canary.path), host.PYTHON, "-c",
                           STATE], capture_output=True, text=True, cwd=place)
    seen = facts(done.stdout)
    for name, clean in CLEAN.items():
        assert seen[name] != clean, f"{name} was not dirty: {seen}"
    assert seen["oom"] == "500" and seen["nice"] == "5"


def test_C04_everything_is_reset(product, watch, canary, place):
    done = product.parse(product.execute(
        "run", "--json", "--policy", "open", "-c", STATE, cwd=place,
        launcher=[host.helper("payload"), "dirty", str(canary.path)]))
    assert done.result["status"] == "ok", str(done)
    seen = facts(done.result["stdout"])
    wrong = {name: (seen[name], clean) for name, clean in CLEAN.items() if seen[name] != clean}
    assert not wrong, f"inherited (seen, clean): {wrong}"
    if product.mode == "root":
        assert seen["nice"] == "0", seen
    assert int(seen["oom"]) >= 0


def test_C04_limits_work_for_a_dirty_caller(product, watch, canary, place):
    """Blocked and ignored signals of the caller do not weaken supervision."""
    done = product.parse(product.execute(
        "run", "--json", "--policy", "open", "--time", "500ms", "-c", "while True: pass", cwd=place,
        launcher=[host.helper("payload"), "dirty", str(canary.path)]))
    assert done.result["status"] == "timeout", str(done)


def test_C06_session_keyring(product, watch, canary, place):
    """A key in the caller's session keyring can neither be searched for nor read."""
    need("keyrings")
    code = (
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        f"found = libc.syscall({host.syscall_number('request_key')}, b'user', b'execpy-test', None, 0)\n"
        "buffer = ctypes.create_string_buffer(100)\n"
        f"size = libc.syscall({host.syscall_number('keyctl')}, 11, found, buffer, 100)\n"
        "print(found > 0, buffer.value.decode())\n")
    launcher = [host.helper("payload"), "keyring"]
    control = subprocess.run([*launcher, host.PYTHON, "-c", code], capture_output=True, text=True,
                             env=product.environment(), cwd=place)
    assert control.stdout == f"True {canary.secret}\n", "the control is void"
    done = product.parse(product.execute("run", "--json", "--policy", "open", "-c", code, cwd=place,
                                         launcher=launcher))
    assert done.result["stdout"] == "False \n", str(done)


def test_C08_command_lines_and_environments(product, watch, canary, place):
    """While a run lives, no process but execpy itself shows the code, its environment or a secret."""
    script = place / "script.py"
    script.write_text("print('started', flush=True)\nimport time\ntime.sleep(20)  # code" + "mark\n")
    product.give(script)
    process = product.start("run", "--policy", "open", "--env", "TOKEN=valuemark", "--time", "20s",
                            script, cwd=place)
    try:
        wait_for_output(process, b"started\n")
        time.sleep(0.1)
        seen = 0
        for pid, name, _ in descendants(exempted=True):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    cmdline = file.read()
                with open(f"/proc/{pid}/environ", "rb") as file:
                    environ = file.read()
            except OSError:
                continue
            if pid == process.pid or pid in watch.processes:
                continue
            seen += 1
            assert b"valuemark" not in cmdline and b"codemark" not in cmdline, (name, cmdline)
            assert canary.secret.encode() not in cmdline, (name, cmdline)
            if name != "execpy":
                assert canary.secret.encode() not in environ, f"{name} kept the caller's environment"
        assert seen, "no process of the run was seen"
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_O11_terminal(product, watch, canary, place, stream):
    """With a terminal around it, the code cannot push characters into it (TIOCSTI, TIOCLINUX)."""
    code = (
        "import fcntl, os\n"
        "for fd in (0, 1, 2):\n"
        "    for name, request, data in (('sti', 0x5412, b'x'), ('linux', 0x541C, b'\\x02')):\n"
        "        try:\n"
        "            fcntl.ioctl(fd, request, data)\n"
        "            print('REACHED', fd, name)\n"
        "        except OSError as e:\n"
        "            pass\n"
        "print('isatty', os.isatty(0), os.isatty(1), os.isatty(2))\n"
        "try:\n    os.open('/dev/tty', os.O_RDWR)\n    print('REACHED tty')\n"
        "except OSError:\n    pass\n")
    master, slave = os.openpty()
    try:
        options = {"stdin": slave} if stream == "stdin" else {"stdout": slave, "stderr": slave}
        done = product.execute("run", "--policy", "open", "-c", code, cwd=place, **options)
        out = done.stdout
        if stream == "stdout":
            out = os.read(master, 65536)
        assert b"REACHED" not in out, out
        assert b"isatty False False False" in out, out
    finally:
        os.close(master)
        os.close(slave)
