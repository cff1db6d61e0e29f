#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""HTTP: what POST /v1/run costs above the unix socket's client, alone and with many others;
and what the server holds while it streams much, and for connections that are idle.

    serve.py [SAMPLES]

Both clients are ours, in C, and take turns; every answer is checked."""
import contextlib
import json
import pathlib
import random
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import measure

SAMPLES = int(sys.argv[1]) if len(sys.argv) > 1 else 300
CLIENT = pathlib.Path(measure.EXECPY).parents[2] / "bench" / "bench-client"
SLEEPERS = 500
IDLE = 10_000
STREAM = 50_000_000
MIB = 1 << 20
CONFIGURATION = """\
runs: 1000
queue: 1000
queue_wait: 300s
memory: 8G
clients: 300
connections: 16384
templates:
  - name: bare
    pool: {min: 16, max: 64}
"""


class Daemon:
    def __init__(self, place):
        config = pathlib.Path(place, "config.yaml")
        config.write_text(CONFIGURATION)
        self.socket = pathlib.Path(place, "socket")
        self.process = subprocess.Popen(
            [measure.EXECPY, "serve", "--listen", "127.0.0.1:0", "--socket", self.socket,
             "--config", config], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if "serving HTTP on" in line:
                self.port = int(re.search(r":(\d+)", line.split("http://")[1])[1])
                break
        else:
            raise RuntimeError("the daemon does not serve HTTP")
        self.server = next(pid for pid in self.below(self.process.pid)
                           if "execpy-server" in self.command(pid))

    @staticmethod
    def command(pid):
        with contextlib.suppress(OSError):
            return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
        return ""

    @classmethod
    def below(cls, pid):
        for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield int(child)
            yield from cls.below(int(child))

    def memory(self, name="VmRSS"):
        """Of the server's process: RSS or, as VmHWM, the most that it was."""
        status = pathlib.Path(f"/proc/{self.server}/status").read_text()
        return int(re.search(name + r":\s+(\d+)", status)[1]) * 1024

    def forget_peak(self):
        pathlib.Path(f"/proc/{self.server}/clear_refs").write_text("5")

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=120)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def post(self, document, events=False):
        body = json.dumps(document).encode()
        connection = self.connect()
        connection.sendall(b"POST /v1/run HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                           b"Content-Type: application/json\r\n"
                           + (b"Accept: text/event-stream\r\n" if events else b"")
                           + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        return connection

    def close(self):
        self.process.terminate()
        self.process.wait()


class Sampler:
    """One client of one way, kept."""

    def __init__(self, place, daemon, *options):
        code, out = pathlib.Path(place, "code"), pathlib.Path(place, "out")
        code.write_text("print(55)")
        out.write_text("55\n")
        self.process = subprocess.Popen(
            [CLIENT, "--code", code, "--expect-status", "ok", "--expect-output", out, *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={"EXECPY_SOCKET": str(daemon.socket), "PATH": "/usr/bin:/bin"})
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("the client is not ready")

    def sample(self, pause_ms):
        self.process.stdin.write(f"go 1 {pause_ms}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line or line.startswith("wrong"):
            raise RuntimeError(line)
        return int(line.split()[0]) / 1e6

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def take_turns(samplers, samples, pause_ms=20):
    times = {name: [] for name in samplers}
    for turn in range(-10, samples):
        for name in random.sample(list(samplers), len(samplers)):
            took = samplers[name].sample(pause_ms)
            if turn >= 0:
                times[name].append(round(took, 4))
    return times


def sleepers(daemon):
    """Connections whose runs sleep; all of them run when this returns."""
    connections = [daemon.post({"code": "import time; time.sleep(600)",
                                "limits": {"time_ms": 900_000}}) for _ in range(SLEEPERS)]
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        status = json.loads(subprocess.run(
            [measure.EXECPY, "serve", "--status", "--json", "--socket", daemon.socket],
            capture_output=True, check=True).stdout)
        if status["templates"][0]["running"] == SLEEPERS:
            return connections
        time.sleep(2)
    raise RuntimeError(f"only {status['templates'][0]['running']} of them sleep")


def stream(daemon, events):
    """Bytes of the response, and what the server held at most while it came."""
    code = f"line = 'x' * 99 + '\\n'\nfor _ in range({STREAM // 100}):\n    print(line, end='')"
    document = {"code": code, "limits": {"time_ms": 300_000, "cpu_ms": 300_000,
                                         "output_bytes": 64 * MIB}}
    if events:
        document |= {"output": "truncate"}
        del document["limits"]["output_bytes"]
    daemon.forget_peak()
    began, size, marks = time.monotonic(), 0, 0
    connection = daemon.post(document, events)
    while part := connection.recv(1 << 20):
        size += len(part)
        marks += part.count(b"x")
    # Head and tail come once more in the result of events.
    if marks < STREAM * 0.99:
        raise RuntimeError(f"only {marks} bytes came")
    return {"bytes": size, "seconds": round(time.monotonic() - began, 2),
            "peak_bytes": daemon.memory("VmHWM")}


def idle(daemon):
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    before, connections = daemon.memory(), []
    for _ in range(IDLE):
        connections.append(daemon.connect())
    # The last one is answered, so all are there.
    connections[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    if b"200 OK" not in connections[-1].recv(1000):
        raise RuntimeError("the last connection is not answered")
    held = daemon.memory() - before
    for connection in connections:
        connection.close()
    return {"connections": IDLE, "held_bytes": held}


def say(name, value, unit, most=None):
    verdict = "" if most is None else f"   at most {most}: " + ("met" if value <= most else "not met")
    print(f"{name:58} {value:9.3f} {unit}{verdict}")


def main():
    with tempfile.TemporaryDirectory() as place:
        daemon = Daemon(place)
        try:
            samplers = {"unix socket": Sampler(place, daemon),
                        "POST /v1/run": Sampler(place, daemon, "--http", str(daemon.port))}
            alone = take_turns(samplers, SAMPLES)
            connections = sleepers(daemon)
            crowded = take_turns(samplers, SAMPLES)
            for connection in connections:
                connection.close()
            for sampler in samplers.values():
                sampler.close()
            facts = {"whole": stream(daemon, False), "events": stream(daemon, True),
                     "idle": idle(daemon)}
        finally:
            daemon.close()
    p50 = {name: statistics.median(values) for name, values in alone.items()}
    crowd = statistics.median(crowded["POST /v1/run"])
    print(f"print(55), {SAMPLES} samples each, 20 ms apart")
    say("unix socket, p50", p50["unix socket"], "ms")
    say("POST /v1/run, p50", p50["POST /v1/run"], "ms", 0.6)
    say("  above the unix socket", p50["POST /v1/run"] - p50["unix socket"], "ms", 0.3)
    say(f"  with {SLEEPERS} clients whose runs sleep", crowd, "ms")
    say("  of what it is without them", crowd / p50["POST /v1/run"], "", 2)
    for name, words in (("whole", "50 MB in a result"), ("events", "50 MB as events")):
        say(f"{words}: the server's peak, {facts[name]['seconds']} s",
            facts[name]["peak_bytes"] / MIB, "MiB", 64)
    say(f"{IDLE} idle connections", facts["idle"]["held_bytes"] / MIB, "MiB", 100)
    measure.keep("serve", {"unit": "ms", "samples": {
        **alone, **{f"{name}, {SLEEPERS} sleep": values for name, values in crowded.items()}},
        **facts})


main()
