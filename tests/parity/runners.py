# SPDX-License-Identifier: Apache-2.0
"""Runs one script outside (the plain interpreter) or inside (execpy run), with a time limit.

Outside is made as like the inside as is possible without a sandbox, so that a difference
between the two says something about the sandbox: an unprivileged user, no network, an empty
home that is the working directory, an empty /tmp, few environment variables, Agg.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field

PYTHON = "/usr/bin/python3"
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
NOBODY = 65534
OUTPUT_BYTES_MAX = 1 << 20

STATUSES = {"ok", "error", "blocked", "anomaly", "timeout", "cpu_limit", "memory_limit",
            "output_limit", "disk_limit", "crashed", "cancelled", "internal_error"}

EMPTY_TMP = "mount -t tmpfs -o mode=1777,size=1g tmpfs /tmp && exec "
AS_NOBODY = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--"]
# As root: new namespaces, then an unprivileged user. Otherwise: root of a user namespace for
# the mount, then an ordinary user of a nested one.
CONFINE_AS_ROOT = ["unshare", "--net", "--mount", "sh", "-c",
                   EMPTY_TMP + " ".join(AS_NOBODY) + ' "$@"', "sh"]
CONFINE_AS_USER = ["unshare", "--map-root-user", "--net", "--mount", "sh", "-c",
                   EMPTY_TMP + 'unshare --map-user=1000 --map-group=1000 -- "$@"', "sh"]


@dataclass
class Outcome:
    """How a script ended. `how` is "exit N", "signal N", "timeout" or a result's status."""
    how: str
    exit_code: int | None
    stdout: str
    stderr: str
    seconds: float
    result: dict = field(default_factory=dict)

    def tail(self, lines=12):
        """The last lines of what it printed, for a report."""
        text = "\n".join(part.rstrip() for part in (self.stdout, self.stderr) if part.strip())
        return "\n".join("    | " + line[:200] for line in text.splitlines()[-lines:])


def execpy_binary():
    """The product under test, or None when it has not been built."""
    named = os.environ.get("EXECPY_BIN")
    path = pathlib.Path(named) if named else REPOSITORY / "build/src/cli/execpy"
    return path if os.access(path, os.X_OK) else None


def _execute(argv, cwd, env, seconds):
    """Runs argv in a session of its own, which is killed when it ends or its time is over.

    Output goes to files, so that an orphan that holds it open cannot make us wait.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.monotonic()
        child = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                                 stdout=out, stderr=err, start_new_session=True)
        try:
            status = child.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        took = time.monotonic() - begin
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read(64 * OUTPUT_BYTES_MAX).decode("utf-8", "replace"))
    return status, texts[0], texts[1], took


class Outside:
    """The plain interpreter. Make one, use it for many scripts, close it."""

    def __init__(self, confined=True):
        """confined=False leaves the network and /tmp as they are on this host."""
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="execpy-outside-", dir="/var/tmp"))
        self.root.chmod(0o755)
        self.as_root = os.geteuid() == 0
        self.prefix = AS_NOBODY if self.as_root else []
        self.note = ""
        if confined:
            prefix = CONFINE_AS_ROOT if self.as_root else CONFINE_AS_USER
            probe = subprocess.run([*prefix, "true"], stdin=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, check=False)
            if probe.returncode == 0:
                self.prefix = prefix
            else:
                self.note = "outside has network and the host's /tmp: " + probe.stderr.strip()
        self.matplotlib = self._directory(self.root / "matplotlib")

    def _directory(self, path):
        path.mkdir()
        if self.as_root:
            os.chown(path, NOBODY, NOBODY)
        return path

    def run(self, script, seconds):
        base = pathlib.Path(tempfile.mkdtemp(dir=self.root))
        base.chmod(0o755)
        home = self._directory(base / "workspace")
        (home / "main.py").write_text(script, encoding="utf-8")
        env = {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
               "TMPDIR": "/tmp", "MPLBACKEND": "Agg", "MPLCONFIGDIR": str(self.matplotlib),
               "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            status, out, err, took = _execute([*self.prefix, PYTHON, "main.py"], home, env,
                                              seconds)
        finally:
            shutil.rmtree(base, ignore_errors=True)
        if status is None:
            how = "timeout"
        else:
            how = f"exit {status}" if status >= 0 else f"signal {-status}"
        return Outcome(how, status, out, err, took)

    def close(self):
        shutil.rmtree(self.root, ignore_errors=True)


class Inside:
    """execpy run, cold, with --json; the result object is checked for its closed status."""

    def __init__(self, binary, policy, options=()):
        self.command = [str(binary), "run", "--no-daemon", "--json", "--policy", policy, *options]
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="execpy-inside-"))

    def run(self, script, seconds):
        """`seconds` is only our patience: the run's own limits are in the options."""
        base = pathlib.Path(tempfile.mkdtemp(dir=self.root))
        cwd = base / "cwd"
        cwd.mkdir()
        (base / "main.py").write_text(script, encoding="utf-8")
        try:
            status, out, err, took = _execute([*self.command, str(base / "main.py")], cwd,
                                              dict(os.environ), seconds)
            stray = os.listdir(cwd)
        finally:
            shutil.rmtree(base, ignore_errors=True)
        if status is None:
            return Outcome("execpy hangs", None, out, err, took)
        try:
            result = json.loads(out)
            state = result["status"]
        except (ValueError, KeyError, TypeError):
            return Outcome(f"no result, execpy exit {status}", None, out, err, took)
        if state not in STATUSES:
            state = f"status {state!r} is not one of the list"
        if stray:
            state = f"execpy left {stray} in its working directory"
        message = result.get("error") or {}
        text = result.get("stderr", "")
        if message and state != "error":
            text += f"\n{message.get('type')}: {message.get('message')}"
        if result.get("anomaly"):
            text += f"\nanomaly: {result['anomaly']}"
        # What execpy itself says on its stderr belongs to the report too.
        return Outcome(state, result.get("exit_code"), result.get("stdout", ""),
                       text + ("\n" + err if err.strip() else ""), took, result)

    def close(self):
        shutil.rmtree(self.root, ignore_errors=True)
