# SPDX-License-Identifier: Apache-2.0
"""Daemons for the benchmarks: `execpy serve` on a socket of its own, with the pools asked for."""
import atexit
import functools
import socket
import subprocess
import time

import measure
from . import process_tree
from .runner import ENVIRONMENT, PATIENCE_S, Runner, Unable, end, place
from .workloads import TEMPLATES

SOCKET = "execpy.sock"


class Daemon:
    """pools: {template: (min, max)}; numbers: other keys of the configuration."""

    def __init__(self, name, pools, **numbers):
        self.directory = place("daemon", name)
        lines = ["templates:"]
        for template, (least, most) in pools.items():
            lines += [f"  - name: {template}", f"    pool: {{min: {least}, max: {most}}}"]
        lines += [f"{key}: {value}" for key, value in numbers.items()]
        configuration = self.directory / "config.yaml"
        configuration.write_text("\n".join(lines) + "\n")
        # Clients find the socket there, as they find any daemon's.
        self.environment = {**ENVIRONMENT, "EXECPY_SOCKET": str(self.directory / SOCKET)}
        self.log = self.directory / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [measure.EXECPY, "serve", "--listen", "none", "--socket", self.directory / SOCKET,
                 "--config", configuration], stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, env=self.environment, start_new_session=True)
        atexit.register(self.stop)
        self.wait()

    def wait(self):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise Unable(self.log.read_text(errors="replace").strip()[-300:])
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
                try:
                    probe.connect(str(self.directory / SOCKET))
                    return
                except OSError:
                    time.sleep(0.02)
        raise Unable("the daemon does not listen")

    def settle(self):
        """Waits until it is idle and its pools are full; returns the pids of all of it."""
        return process_tree.settle(self.process.pid)

    def client(self, words):
        """A client of this daemon, kept for samples."""
        return Runner(words, self.environment, self.directory)

    def stop(self):
        atexit.unregister(self.stop)
        end(self.process)


@functools.cache
def shared(least, most):
    """One daemon for all that want pools of this size; ends with this program."""
    return Daemon(f"pool {least} {most}", {name: (least, most) for name in TEMPLATES})
