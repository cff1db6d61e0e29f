# SPDX-License-Identifier: Apache-2.0
"""The product under test: how it is started in each mode, and what one run of it gave.

EXECPY_BIN   path of the binary (default: build/src/cli/execpy)
EXECPY_MODE  `root`             as the suite's own user (default when that is root)
             `user`             the whole binary as an unprivileged user, cgroups as they are
             `user-delegated`   the same, started in a cgroup subtree that this user owns
             `daemon`           as `root`, through a daemon that serves the whole suite
             `daemon-user`      as `user`, through that user's daemon
             All but the last two pass --no-daemon.
EXECPY_SLOW  factor on every allowance of time (sanitizers, emulation); default 1
"""
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import jsonschema

from . import host, witness
from .bounds import Bounds
from .daemon import Daemon, configuration

USER = 54321          # the unprivileged user of the modes `user` and `user-delegated`
GRACE_S = 2.0         # what a run may take beyond its limit: start, kill, collect, reap
SLOW = host.SLOW
TIME_S = 5            # the product's own default of --time and --cpu
# The suite's daemon: its pools do not change their size, so that nothing may be left over.
POOLS = {"bare": (4, 4), "numpy": (2, 2), "pandas": (2, 2), "plot": (2, 2)}
SCHEMA_PATH = host.REPOSITORY / "docs" / "result.schema.json"


def validator():
    schema = json.loads(SCHEMA_PATH.read_text())
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


def slowly(ms):
    """A limit on time in which code has to get somewhere first, as a value of --time."""
    return f"{round(ms * SLOW)}ms"


def allowance(args):
    """Options that give code which ends by itself more time where the machine is slow; a limit
    that a test is about is among the arguments that it gives."""
    given = {str(word).split("=")[0] for word in args}
    options = {"--time", "--cpu"} - given if SLOW != 1 else ()
    return [word for option in sorted(options) for word in (option, slowly(TIME_S * 1000))]


def no_constants(name):
    raise ValueError(f"{name} is not JSON")


def unique(pairs):
    found = dict(pairs)
    assert len(found) == len(pairs), f"a key is there twice: {[k for k, _ in pairs]}"
    return found


@dataclass
class Completed:
    """What a process of the product did, as its caller sees it."""
    args: list
    returncode: int
    stdout: bytes
    stderr: bytes
    seconds: float
    result: dict = field(default=None)

    @property
    def out(self):
        return self.stdout.decode()

    @property
    def err(self):
        return self.stderr.decode("utf-8", "replace")

    def __str__(self):
        return (f"{' '.join(map(str, self.args))[:600]}\n exit {self.returncode} after "
                f"{self.seconds:.2f} s\n stdout {self.stdout[:3000]!r}\n stderr {self.stderr[:2000]!r}")


class Product:
    SLOW = SLOW

    def __init__(self, base, canary):
        self.binary = Path(os.environ.get("EXECPY_BIN")
                           or host.REPOSITORY / "build/src/cli/execpy").absolute()
        self.mode = os.environ.get("EXECPY_MODE") or ("root" if os.geteuid() == 0 else "user")
        self.canary = canary
        self.base = Path(base)
        self.validator = validator()
        self.uid = USER if "user" in self.mode and os.geteuid() == 0 else None
        self.bounds = self.daemon = None
        if self.mode == "user-delegated":
            self.bounds = self._delegate()
        if self.mode.startswith("daemon"):
            text = configuration(POOLS, memory="4G", rotate_cells=1000000, rotate_after="24h",
                                 idle_after=0, runs=128, queue=1000, queue_wait="60s")
            self.daemon = Daemon(self, self.directory("daemon"), text)
            self.daemon.settle(sum(least for least, _ in POOLS.values()))

    def _delegate(self):
        bounds = Bounds(8 << 30, 4096)
        for directory in bounds.directories:
            for path in (directory, *directory.iterdir()):
                if path == directory or path.name in ("cgroup.procs", "tasks",
                                                      "cgroup.subtree_control"):
                    os.chown(path, USER, USER)
        return bounds

    def close(self):
        if self.daemon:
            self.daemon.close()
        if self.bounds:
            self.bounds.close()

    # -- directories and words ------------------------------------------------------------------

    def directory(self, name):
        """A fresh directory that belongs to the user of the mode."""
        path = self.base / name
        path.mkdir()
        if self.uid is not None:
            os.chown(path, self.uid, self.uid)
        return path

    def give(self, *paths):
        """Hands files to the user of the mode."""
        if self.uid is not None:
            for path in paths:
                os.chown(path, self.uid, self.uid, follow_symlinks=False)

    def environment(self, **more):
        if self.daemon:
            more = self.daemon.environment(**more)
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": str(self.base),
                "EXECPY_TEST_SECRET": self.canary.secret, **more}

    def prefix(self):
        if self.uid is None:
            return []
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", "--"]

    def words(self, *args, daemon=False, exact=False):
        """The command line; `exact`: with the product's own limits."""
        more = []
        if args and args[0] == "run":
            more = [] if exact else allowance(args)
            if not daemon and not self.daemon:
                more.insert(0, "--no-daemon")
        return [*self.prefix(), str(self.binary), *map(str, args[:1]), *more, *map(str, args[1:])]

    # -- processes ------------------------------------------------------------------------------

    def start(self, *args, cwd=None, env=None, launcher=(), words=None, daemon=False, **options):
        """Popen of `execpy ARGS…` in a session of its own, with the canary's secret around it."""
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        bounds, prepare = self.bounds, options.pop("preexec_fn", None)

        def before():
            if bounds:
                bounds.enter()
            if prepare:
                prepare()

        process = subprocess.Popen([*launcher, *(words or self.words(*args, daemon=daemon))], cwd=cwd or self.base,
                                   env=self.environment(**(env or {})), start_new_session=True,
                                   preexec_fn=before, **options)
        witness.waited_for.add(process)
        return process

    def execute(self, *args, timeout=30, input=None, **options):
        """Runs to the end; a run that does not end is killed and is a failure."""
        if input is not None:
            options["stdin"] = subprocess.PIPE
        before = {pid for pid, _, _ in witness.descendants()}
        began = time.monotonic()
        process = self.start(*args, **options)
        try:
            out, err = process.communicate(input, timeout * SLOW)
        except subprocess.TimeoutExpired:
            alive = end_all(before)
            out, err = process.communicate(timeout=10)
            raise AssertionError(f"no end after {timeout * SLOW} s: {args}\n{out!r}\n{err!r}\n"
                                 f"alive then: {alive}")
        return Completed(list(args), process.returncode, out or b"", err or b"",
                         time.monotonic() - began)

    # -- results --------------------------------------------------------------------------------

    def parse(self, completed):
        """Exactly one JSON object on stdout, valid by the schema; with it in `.result`."""
        assert self.canary.secret.encode() not in completed.stdout + completed.stderr, \
            f"the canary's secret is in the output: {completed}"
        try:
            text = completed.stdout.decode("utf-8")
            result = json.loads(text, parse_constant=no_constants, object_pairs_hook=unique)
        except ValueError as error:
            raise AssertionError(f"stdout is not one JSON object ({error}): {completed}") from error
        assert b"\x1b" not in completed.stdout, "a raw escape character is in the JSON"
        errors = [f"{list(e.absolute_path)}: {e.message}"[:300]
                  for e in self.validator.iter_errors(result)]
        assert not errors, f"the result is not valid by {SCHEMA_PATH.name}: {errors}\n{completed}"
        expected = exit_status(result)
        assert completed.returncode in expected, \
            f"exit status {completed.returncode}, expected one of {sorted(expected)}: {completed}"
        completed.result = result
        return completed

    def run(self, code, *options, timeout=30, **more):
        """`execpy run --json OPTIONS -c CODE` (or a path, or None for options that name it)."""
        source = () if code is None else ("-c", code) if isinstance(code, str) else (code,)
        arguments = list(options)
        at = arguments.index("--") if "--" in arguments else len(arguments)
        arguments[at:at] = source
        return self.parse(self.execute("run", "--json", *arguments, timeout=timeout, **more))

    def answers(self, directory=None):
        """The next run works (post-condition g)."""
        done = self.run("print(1)", "--policy", "open", cwd=directory)
        assert done.result["status"] == "ok" and done.result["stdout"] == "1\n", \
            f"the next run does not work: {done}"


def exit_status(result):
    """The exit statuses of `execpy run` that result.md allows for a result."""
    status, code, number = result["status"], result["exit_code"], result["signal"]
    if status in ("timeout", "cpu_limit"):
        return {124}
    if status == "internal_error":
        return {125}
    if status in ("blocked", "anomaly"):
        return {126}
    if status in ("memory_limit", "output_limit", "disk_limit"):
        return {137}
    if status == "crashed":
        return {128 + number} if number is not None else set(range(129, 193))
    if status == "cancelled":
        return {128 + s for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)} | {125}
    return {code}


def end_all(known):
    """Kills every process below this one that is not known; they may hold each other's pipes."""
    alive = [p for p in witness.descendants() if p[0] not in known]
    for _ in range(50):
        left = [pid for pid, _, _ in witness.descendants() if pid not in known]
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if not left:
            break
        time.sleep(0.02)
    return alive
