# SPDX-License-Identifier: Apache-2.0
"""A process that makes samples when it is told to (the protocol of bench/client/main.c), and the
places and processes that a contestant needs beside it."""
import contextlib
import os
import pathlib
import select
import shutil
import signal
import subprocess
import time

import measure

BUILD = pathlib.Path(measure.EXECPY).resolve().parents[2]
CLIENT = BUILD / "bench" / "bench-client"
PLACE = BUILD / "bench" / "work"
PEERS = measure.ROOT / "bench" / "peers"
WARM_UP = measure.ROOT / "src" / "policy" / "warm_up"
PYTHON = "/usr/bin/python3"
PATIENCE_S = 180

# What every peer gets, and nothing else of the caller's. One thread for OpenBLAS, as in our
# templates; the processor facts are handed on by execpy, too.
ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/tmp",
    "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
    **{name: os.environ[name] for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
       if name in os.environ},
}


class Unable(Exception):
    """A contestant that cannot take part, and why."""


class Runner:
    def __init__(self, command, environment=None, directory=None, helpers=()):
        self.helpers = list(helpers)
        self.buffer = b""
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, cwd=directory, env=environment or ENVIRONMENT,
            start_new_session=True)
        try:
            line = self.line()
            if line != "ready":
                raise Unable(line)
        except Unable:
            self.stop()
            raise

    def line(self):
        fd = self.process.stdout.fileno()
        deadline = time.monotonic() + PATIENCE_S
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([fd], [], [], max(0, deadline - time.monotonic()))
            more = os.read(fd, 1 << 16) if ready else b""
            if not ready:
                raise Unable(f"no answer in {PATIENCE_S} s")
            if not more:
                raise Unable(f"the client ended with {self.process.wait(10)}: "
                             f"{self.buffer.decode(errors='replace')[-200:]}")
            self.buffer += more
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode(errors="replace").removeprefix("wrong: ").removeprefix("unable: ")

    def go(self, count, pause_ms=0):
        """[(ms, [what else was told])…]"""
        try:
            self.process.stdin.write(b"go %d %d\n" % (count, pause_ms))
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Unable(self.line()) from None
        samples = []
        for _ in range(count):
            line = self.line()
            first, *rest = line.split()
            if not first.isdigit():
                raise Unable(line)
            samples.append((int(first) / 1e6, rest))
        return samples

    def stop(self):
        for process in [self.process, *self.helpers]:
            end(process)
        self.helpers = []


def end(process):
    """Its whole process group, since it was made a session of its own."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(5)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def place(*names):
    """A fresh directory for one contestant and workload."""
    directory = PLACE.joinpath(*names)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


def needs(program, reason="is not installed"):
    path = shutil.which(program, path=ENVIRONMENT["PATH"])
    if not path:
        raise Unable(f"{program} {reason}")
    return path


def font_cache():
    """matplotlib's list of fonts, made once: without it every fresh home takes seconds."""
    directory = PLACE / "matplotlib"
    if not list(directory.glob("fontlist-*")):
        directory.mkdir(parents=True, exist_ok=True)
        subprocess.run([PYTHON, "-I", "-c", "import matplotlib.font_manager"], check=True,
                       env={**ENVIRONMENT, "MPLCONFIGDIR": str(directory)})
    return directory


def programs():
    """A directory with what libexecpy starts, for a client that is not beside them."""
    directory = BUILD / "bench" / "programs"
    directory.mkdir(exist_ok=True)
    for name, made in (("execpy-warden", "warden/execpy-warden"),
                       ("execpy-guest", "guest/execpy-guest"),
                       ("execpy-keeper", "jail/execpy-keeper"), ("fonts", "guest/fonts")):
        link = directory / name
        if not link.is_symlink():
            link.symlink_to(BUILD / "src" / made)
    return directory
