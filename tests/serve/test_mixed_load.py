# SPDX-License-Identifier: Apache-2.0
"""Everything at once: runs, events, batches, sessions, branches, files, cancels, clients that go
away, MCP, while templates are killed. Each request gets one well-formed answer, its own, and
nothing is left. With --full for half an hour, or for EXECPY_MIXED_SECONDS."""
import collections
import contextlib
import json
import os
import random
import signal
import socket
import threading
import time
import traceback


from harness.daemon import configuration
from harness.product import SLOW
from harness.rest import Client
from harness.web import Server

CLIENTS = 8
SECONDS, SECONDS_FULL = 5, 1800
POOLS = {"bare": (3, 3), "pandas": (1, 1)}
MIB = 1 << 20
# What a busy daemon, or one whose template was killed, may say; the client tries again.
BUSY = (429, 503)


class Again(Exception):
    """An answer that asks for another try."""


class Guest:
    """One client: what it asks is chosen by its own chance, and what is told it must be its own."""

    def __init__(self, contract, server, seed):
        self.server, self.seed = server, seed
        self.chance = random.Random(seed)
        self.client = Client(contract, server.port)
        self.counts = collections.Counter()
        self.serial, self.sessions, self.failure = 0, [], None

    def token(self):
        self.serial += 1
        return f"{self.seed}-{self.serial}"

    def post(self, path, document=None, **more):
        answer = self.client.post(path, document, **more)
        if answer.status in BUSY:
            raise Again(f"{answer.status}: {answer.json['detail']}")
        return answer

    def result(self, result, *wanted):
        """A result with one of these statuses."""
        if result["status"] == "internal_error":
            assert result["retry"] is True, result
            raise Again(result["error"]["message"])
        assert result["status"] in wanted, result
        return result

    def run(self, code, *wanted, path="/v1/run", **more):
        answer = self.post(path, {"code": code, "policy": "open", **more})
        assert answer.status == 200, answer
        return self.result(answer.json, *wanted)

    # -- what is asked ---------------------------------------------------------------------------

    def a_run(self):
        token = self.token()
        assert self.run(f"print({token!r})", "ok")["stdout"] == f"{token}\n"

    def one_of_pandas(self):
        token = self.token()
        found = self.run(f"import pandas as pd\npd.Series([1, 2]).sum(), {token!r}", "ok",
                         limits={"memory_bytes": 300 * MIB, "time_ms": 60000, "cpu_ms": 60000})
        assert token in found["value"]["text/plain"]

    def one_that_fails(self):
        code, status = self.chance.choice([
            ("1 / 0", "error"), ("import os; os.abort()", "crashed"), ("import sys; sys.exit(3)", "error"),
            ("while True: pass", "timeout"), ("b = bytearray(200 << 20)", "memory_limit"),
            ("print('x' * (2 << 20))", "output_limit")])
        self.run(code, status, limits={"time_ms": int(500 * SLOW) if status == "timeout" else 60000,
                                       "cpu_ms": 60000})

    def fork_bomb(self):
        """Who is the last to get no process, and when, is chance."""
        self.run("import os\nwhile True: os.fork()", "error", "timeout", "cpu_limit", "output_limit",
                 limits={"time_ms": int(500 * SLOW)})

    def much_output(self):
        found = self.run("print('x' * 999_999)", "ok")
        assert found["stdout"] == "x" * 999_999 + "\n"

    def events(self):
        token = self.token()
        answer = self.post("/v1/run", {"code": f"for n in range(5): print({token!r}, n, flush=True)"},
                           headers={"Accept": "text/event-stream"})
        kinds = [event["event"] for event in answer.events]
        assert kinds[-1] == "result" and kinds.count("result") == 1, kinds
        self.result(answer.events[-1]["data"], "ok")
        text = "".join(event["data"]["text"] for event in answer.events if event["event"] == "stdout")
        assert text == "".join(f"{token} {n}\n" for n in range(5))

    def detached(self):
        token = self.token()
        endless = self.chance.random() < 0.5
        code = "while True: pass" if endless else f"print({token!r})"
        answer = self.post("/v1/run", {"code": code, "detach": True, "limits": {"time_ms": 60000}})
        assert answer.status == 202, answer
        place = answer.headers["Location"]
        if endless:
            time.sleep(self.chance.random() / 5)
            assert self.client.delete(place).status == 204
        until = time.monotonic() + 60 * SLOW
        while (answer := self.client.get(place)).status == 200 and answer.json["state"] == "running":
            assert time.monotonic() < until, answer
            time.sleep(0.02)
        if endless and answer.status == 404:  # it had ended with its template, and was forgotten
            raise Again("a detached run had ended")
        assert answer.status == 200, answer
        found = answer.json
        result = self.result(found["result"], "cancelled" if endless else "ok")
        assert endless or result["stdout"] == f"{token}\n"
        assert self.client.delete(place).status == 204

    def batch(self):
        tokens = [self.token() for _ in range(6)]
        answer = self.post("/v1/batch", {"runs": [{"code": f"print({token!r})"} for token in tokens]})
        lines = {line["index"]: line["result"] for line in answer.lines}
        assert sorted(lines) == list(range(6)) and len(answer.lines) == 6
        for index, token in enumerate(tokens):
            assert self.result(lines[index], "ok")["stdout"] == f"{token}\n"

    def check(self):
        answer = self.post("/v1/check", {"code": "import os; os.remove('x')"})
        assert answer.status == 200 and answer.json["decision"] == "block", answer

    def goes_away(self):
        """At any moment: while it sends, runs, or reads."""
        code = self.chance.choice(["while True: pass", "print('x' * 999_999)", "1"])
        body = json.dumps({"code": code, "limits": {"time_ms": 60000}}).encode()
        head = (b"POST /v1/run HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n" % len(body))
        if self.chance.random() < 0.5:
            head += b"Accept: text/event-stream\r\n"
        whole = head + b"\r\n" + body
        with socket.create_connection(("127.0.0.1", self.server.port)) as raw:
            raw.sendall(whole[: self.chance.choice([len(whole), self.chance.randrange(len(whole))])])
            time.sleep(self.chance.random() / 5)

    def mcp(self):
        token = self.token()
        version = "io.modelcontextprotocol/protocolVersion"
        message = {"jsonrpc": "2.0", "id": self.serial, "method": "tools/call", "params": {
            "name": "execute_python", "arguments": {"code": f"print({token!r})"},
            "_meta": {version: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}}
        response = self.client.send("POST", "/mcp", message, headers={
            "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call", "Mcp-Name": "execute_python"})
        body = response.read()
        if response.status in BUSY:
            raise Again(f"MCP: {response.status}")
        assert response.status == 200, (response.status, body)
        if response.headers["Content-Type"] == "text/event-stream":
            body = body.decode().rstrip("\n").split("data: ")[-1]
        answer = json.loads(body)
        assert answer["id"] == self.serial and "error" not in answer, answer
        structured = answer["result"]["structuredContent"]
        assert self.result(structured, "ok")["stdout"] == f"{token}\n"

    def open_session(self):
        answer = self.post("/v1/sessions", {"policy": "open", "limits": {"memory_bytes": 200 * MIB}})
        if answer.status == 409:  # as many as there may be
            raise Again(answer.json["detail"])
        assert answer.status == 201, answer
        self.sessions.append(answer.headers["Location"])
        return self.sessions[-1]

    def session(self):
        place, token = self.open_session(), self.token()
        self.run(f"x = [{token!r}]", "ok", path=place + "/run")
        if self.chance.random() < 0.3:
            found = self.run("x = 'lost'\nimport os\nos._exit(7)", "error", path=place + "/run")
            assert found["session"]["restored"] is True
        if self.chance.random() < 0.3:
            assert self.post(place + "/checkpoint", {"name": "a"}).status == 200
            self.run("x.append(1)", "ok", path=place + "/run")
            assert self.post(place + "/rollback", {"name": "a"}).status == 200
        if self.chance.random() < 0.5:
            assert self.client.put(place + "/files/in.txt", token).status in (201, 204)
            found = self.run("open('out.txt', 'w').write(open('in.txt').read())", "ok", path=place + "/run")
            assert self.client.get(place + "/files/out.txt").body == token.encode()
        if self.chance.random() < 0.3:
            self.branch(place, token)
        assert self.run("print(x)", "ok", path=place + "/run")["stdout"] == f"[{token!r}]\n"

    def branch(self, place, token):
        answer = self.post(place + "/fork", {"n": 2})
        if answer.status != 201:  # as many as there may be, or a template that was killed meanwhile
            raise Again(answer.json["detail"])
        for found in answer.json["sessions"]:
            self.sessions.append(f"/v1/sessions/{found['id']}")
            code = "x.append(2); print(x)"
            assert self.run(code, "ok", path=self.sessions[-1] + "/run")["stdout"] == f"[{token!r}, 2]\n"

    def session_that_is_left_in_a_run(self):
        place = self.open_session()
        body = json.dumps({"code": "while True: pass", "limits": {"time_ms": 60000}}).encode()
        with socket.create_connection(("127.0.0.1", self.server.port)) as raw:
            raw.sendall(b"POST %s/run HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                        b"Content-Length: %d\r\n\r\n" % (place.encode(), len(body)) + body)
            time.sleep(self.chance.random() / 5)

    def turn(self):
        what = self.chance.choices(
            [self.a_run, self.one_of_pandas, self.one_that_fails, self.fork_bomb, self.much_output, self.events,
             self.detached, self.batch, self.check, self.goes_away, self.mcp, self.session,
             self.session_that_is_left_in_a_run], [8, 1, 2, 1, 1, 3, 2, 1, 1, 4, 3, 4, 1])[0]
        try:
            what()
            self.counts[what.__name__] += 1
        except Again as answer:
            self.counts[f"again: {answer}"[:160]] += 1
        finally:
            for place in self.sessions:
                status = self.client.delete(place).status
                assert status in (204, 410), f"{place}: {status}"
            self.sessions.clear()

    def work(self, ended):
        try:
            while not ended.is_set():
                self.turn()
        except Exception:
            self.failure = traceback.format_exc()
            ended.set()
        finally:
            self.client.close()


def memory_kib(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def kill_templates(daemon, ended, chance):
    """One at a time, at any moment; how many."""
    count = 0
    while not ended.wait(1 + 4 * chance.random()):
        templates = daemon.roles()["template"]
        if templates:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(templates), signal.SIGKILL)
                count += 1
    return count


def test_mixed_load(product, contract, watch, full):
    seconds = float(os.environ.get("EXECPY_MIXED_SECONDS", SECONDS_FULL if full else SECONDS))
    seed = random.randrange(1 << 32)
    print(f"seed {seed}, {seconds} s")
    server = Server(product, product.directory("serve-mixed"),
                    configuration(POOLS, clients=64, sessions=24, queue_wait="30s"))
    daemon = server.daemon
    try:
        for _ in range(2):  # what the first ones make once
            Guest(contract, server, 0).session()
            Guest(contract, server, 0).a_run()
        for session in Client(contract, server.port).get("/v1/sessions").json["sessions"]:
            assert Client(contract, server.port).delete(f"/v1/sessions/{session['id']}").status == 204
        cells = sum(least for least, _ in POOLS.values())
        daemon.settle(cells)
        pids = {"server": server.pid, "warden": daemon.roles()["warden"][0], "daemon": daemon.pid}
        before = {name: (memory_kib(pid), len(os.listdir(f"/proc/{pid}/fd"))) for name, pid in pids.items()}
        ended = threading.Event()
        guests = [Guest(contract, server, seed + n) for n in range(CLIENTS)]
        threads = [threading.Thread(target=guest.work, args=(ended,)) for guest in guests]
        for thread in threads:
            thread.start()
        timer = threading.Timer(seconds, ended.set)
        timer.start()
        killed = kill_templates(daemon, ended, random.Random(seed))
        timer.cancel()
        for thread in threads:
            thread.join(180 * SLOW)
            assert not thread.is_alive(), "a request gets no answer"
        counts = sum((guest.counts for guest in guests), collections.Counter())
        print(f"{killed} templates killed;", json.dumps(counts.most_common()))
        assert not [guest.failure for guest in guests if guest.failure], \
            "\n".join(guest.failure for guest in guests if guest.failure)
        again = sum(count for name, count in counts.items() if name.startswith("again"))
        assert killed > 0 and sum(counts.values()) - again > 10 * again
        assert Client(contract, server.port).get("/v1/sessions").json["sessions"] == []
        server.quiet()
        daemon.settled(cells)
        assert list(daemon.differences()) == []
        for name, pid in pids.items():
            kib, fds = memory_kib(pid), len(os.listdir(f"/proc/{pid}/fd"))
            print(name, before[name], (kib, fds))
            assert fds <= before[name][1], name
            assert kib < 1.5 * before[name][0] + 8 * 1024, name
    finally:
        server.close()
