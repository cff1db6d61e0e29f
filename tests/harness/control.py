# SPDX-License-Identifier: Apache-2.0
"""Negative controls: the same payload run by the plain interpreter, to show that the attack works.

Every control runs as a child of pid 1 of a throw-away pid and mount namespace, in a bounded
cgroup, in a throw-away directory.  `plain` is otherwise the host as it is; `host` adds network,
IPC and UTS namespaces and a root that is an overlay of the real one, in which even root may write
anywhere without a trace.
"""
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import host
from .bounds import Bounds

INIT = Path(__file__).with_name("control_init.py")
MIB = 1 << 20


@dataclass
class Control:
    stdout: str
    stderr: str
    runs: list          # of each code: status, seconds, after, alive
    peak_processes: int
    left: list          # names in the throw-away directory at the end
    read_back: bytes    # what a naive collector of files would have handed out


def naive_collect(directory):
    """Collects as careless products do: by name, following links. Bounded, and never a FIFO."""
    found = b""
    for base, below, names in os.walk(directory, followlinks=True):
        if base.count("/") >= directory.count("/") + 2:
            below.clear()
        for name in names:
            path = os.path.join(base, name)
            try:
                if os.path.isfile(path):
                    with open(path, "rb") as file:
                        found += file.read(MIB)
            except OSError:
                pass
    return found


def run_control(codes, *, kind="plain", uid=None, files=(), env=None, args=(), time=10, linger=0,
                after=None, memory_bytes=1024 * MIB, processes=700, supervisor=False,
                collect=False, parent=None, launcher=(), leaves=()):
    """Runs the codes one after another in one throw-away directory; returns a Control. What lives
    on has `linger` seconds, or until there are files with the names that it `leaves`."""
    directory = Path(tempfile.mkdtemp(prefix="control-", dir=parent))
    bounds = Bounds(memory_bytes, processes) if os.geteuid() == 0 else None
    flags = ["--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
    if kind == "host":
        flags += ["--net", "--ipc", "--uts"]
    if os.geteuid() != 0:
        flags += ["--user", "--map-current-user"]
    order_read, order_write = os.pipe()
    answer_read, answer_write = os.pipe()
    try:
        if uid is not None:
            os.chown(directory, uid, uid)
        for name, source in files:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, directory / name)
            if uid is not None:
                os.chown(directory / name, uid, uid)
        order = {"codes": list(codes), "directory": str(directory), "args": list(args),
                 "env": {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(directory),
                         "LANG": "C.UTF-8", **(env or {})},
                 "uid": uid if os.geteuid() == 0 else None, "host": kind == "host",
                 "time": time * host.SLOW, "linger": linger * host.SLOW, "leaves": list(leaves),
                 "after": after, "supervisor": supervisor}

        def prepare():
            if bounds:
                bounds.enter()
            os.dup2(order_read, 198)
            os.dup2(answer_write, 199)
            os.dup2(198, 3)
            os.dup2(199, 4)

        child = subprocess.Popen(
            [*launcher, "unshare", *flags, "--", host.PYTHON, "-I", str(INIT)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            close_fds=False, preexec_fn=prepare, start_new_session=True, cwd="/",
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **(env or {})})
        os.close(order_read)
        os.close(answer_write)
        order_read = answer_write = -1
        with os.fdopen(order_write, "w") as sink:
            json.dump(order, sink)
        order_write = -1
        try:
            noise, _ = child.communicate(timeout=(len(codes) * (time + linger) + 20) * host.SLOW)
        except subprocess.TimeoutExpired:
            child.kill()
            noise, _ = child.communicate()
        peak = bounds.peak_processes() if bounds else None
        with os.fdopen(answer_read) as source:
            answer = source.read()
        answer_read = -1
        if not answer:
            raise RuntimeError(f"the control itself failed: {noise.decode(errors='replace')}")
        text = lambda name: (directory / name).read_bytes().decode("utf-8", "surrogateescape")
        left = sorted(str(p.relative_to(directory)) for p in directory.iterdir())
        return Control(text("stdout"), text("stderr"), json.loads(answer), peak, left,
                       naive_collect(str(directory)) if collect else b"")
    finally:
        for fd in (order_read, order_write, answer_read, answer_write):
            if fd >= 0:
                os.close(fd)
        if bounds:
            bounds.close()
        subprocess.run(["rm", "-rf", "--one-file-system", "--", directory], check=False)
