# SPDX-License-Identifier: Apache-2.0
"""What the tests of faults share: code that says whether it is confined, and waiting for it."""
import os
import contextlib
import re
import select
import signal
import time

from harness.product import SLOW
from harness.witness import descendants

# Before code that is to be killed: from here on its main process has this name on the host.
STARTED = "import ctypes\nctypes.CDLL(None).prctl(15, b'started', 0, 0, 0)\n"

# Prints `confined` when every layer that can be seen from inside is there, else what is missing.
CONFINED = """
import os
missing = []
try:
    status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines()
                  if ":\\t" in line)
    if status["Seccomp"].strip() != "2":
        missing.append("seccomp")
    if status["NoNewPrivs"].strip() != "1":
        missing.append("no_new_privs")
    if any(int(status[n], 16) for n in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")):
        missing.append("capabilities")
except OSError:
    missing.append("proc")
if os.path.exists("@CANARY@"):
    missing.append("mounts")
if os.getuid() == 0:
    missing.append("user")
try:
    if os.readlink("/proc/self/ns/net") == "@NET@":
        missing.append("network")
except OSError:
    pass
found = []
for fd in range(3, 256):
    try:
        os.fstat(fd)
        found.append(fd)
    except OSError:
        pass
if found:
    missing.append(f"descriptors {found}")
try:
    open("/usr/@MARK@", "w")
    missing.append("read-only")
except OSError:
    pass
print("confined" if not missing else f"UNCONFINED {missing}")
"""


def confined_code(canary, mark):
    return (CONFINED.replace("@CANARY@", str(canary.directory)).replace("@MARK@", mark)
            .replace("@NET@", os.readlink("/proc/self/ns/net")))


def reasons(stderr):
    """The lines of a message of ours, without the hint that may follow."""
    text = stderr.decode("utf-8", "replace") if isinstance(stderr, bytes) else stderr
    return [line for line in text.strip().splitlines() if not line.startswith("hint:")]


def judge(product, done, names=()):
    """The run was right and confined, or it was refused as internal_error in one line.

    Returns "ran" or "refused".  `names`: of these words one must be in the refusal."""
    assert b"UNCONFINED" not in done.stdout, f"code ran unconfined: {done}"
    if done.returncode == 127 and b"error while loading shared libraries" in done.stderr:
        return "refused"  # the dynamic loader, before the first instruction of ours
    product.parse(done)
    result = done.result
    if result["status"] == "ok":
        assert result["stdout"] == "confined\n", str(done)
        return "ran"
    assert result["status"] == "internal_error", str(done)
    assert result["stdout"] == "", f"code ran before the failure: {done}"
    message = result["error"]["message"]
    assert message.strip() and "\n" not in message.strip(), f"not one line: {message!r}"
    if names:
        assert any(re.search(re.escape(n), message, re.IGNORECASE) for n in names), \
            f"the reason names neither of {names}: {message!r}"
    return "refused"


def wait_for_output(process, text, seconds=10):
    """Reads stdout of a Popen until the text is there; what was read."""
    seconds *= SLOW
    found, deadline = b"", time.monotonic() + seconds
    while text not in found:
        left = deadline - time.monotonic()
        assert left > 0, f"{text!r} did not come within {seconds} s: {found!r}"
        if select.select([process.stdout], [], [], left)[0]:
            block = os.read(process.stdout.fileno(), 65536)
            assert block, f"stdout ended without {text!r}: {found!r}, {process.stderr.read()!r}"
            found += block
    return found


def named(name):
    return [pid for pid, comm, _ in descendants(exempted=True) if comm == name]


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return [int(child) for child in children.read().split()]


def wait_for_start(seconds=10):
    """Waits until code that begins with STARTED has got there; its main process."""
    return wait_for(lambda: named("started"), "the code did not start", seconds)[0]


def parts_of(execpy, main):
    """The processes of a run by their names in docs/architecture.md, given the outer two."""
    janitor, = children_of(execpy)
    warden, = children_of(janitor)
    keeper, = children_of(warden)
    init, = set(children_of(keeper)) & set(named("execpy-init"))
    return {"janitor": janitor, "warden": warden, "keeper": keeper, "init": init, "main": main}


def kill_all(pids, number=signal.SIGKILL):
    """What was to be killed may have gone already, with another that was killed before it."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def wait_for(condition, what, seconds=10):
    """Waits until the condition is true, and returns what it gave."""
    deadline = time.monotonic() + seconds * SLOW
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} not within {seconds * SLOW} s"
        time.sleep(0.01)
    return found


def wait_until_gone(known, seconds=1.0):
    """Seconds until no descendant but the known ones lives; fails when that takes too long."""
    seconds *= SLOW
    began = time.monotonic()
    while True:
        alive = [p for p in descendants() if p[0] not in known]
        if not alive:
            return time.monotonic() - began
        assert time.monotonic() - began < seconds, f"still alive after {seconds} s: {alive}"
        time.sleep(0.01)
