# SPDX-License-Identifier: Apache-2.0
"""A client of `execpy mcp`: raw lines over pipes, every one that comes back looked at."""
import json
import queue
import subprocess
import threading

import pytest

from harness import witness
from harness.product import no_constants, unique

STATELESS = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
META = {VERSION: STATELESS, "io.modelcontextprotocol/clientCapabilities": {}}


class Failed(Exception):
    """A JSON-RPC error."""

    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['message']}")
        self.code, self.text, self.data = error["code"], error["message"], error.get("data")


class Client:
    def __init__(self, product, cwd, *options, socket=None, policy="open"):
        self.product = product
        words = [] if socket or product.daemon else ["--no-daemon"]
        words += ["--policy", policy] if policy else []
        env = {"EXECPY_SOCKET": str(socket)} if socket else {}
        self.process = product.start("mcp", *words, *options, cwd=cwd, env=env,
                                     stdin=subprocess.PIPE)
        self.lines, self.aside, self.serial = queue.Queue(), [], 0
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    # -- messages -------------------------------------------------------------------------------

    def raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        self.raw(json.dumps(message).encode() + b"\n")

    def next(self, seconds=30):
        """The next message; None when stdout has ended."""
        line = self.lines.get(timeout=seconds * self.product.SLOW)
        if line is None:
            return None
        assert line.endswith(b"\n")
        message = json.loads(line.decode("utf-8"), parse_constant=no_constants,
                             object_pairs_hook=unique)
        assert message["jsonrpc"] == "2.0", message
        kind = set(message) - {"jsonrpc"}
        assert kind in ({"id", "result"}, {"id", "error"}, {"method", "params"}), message
        return message

    def silent(self, seconds):
        """Nothing comes for so long."""
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            return True
        raise AssertionError(f"{line!r}")

    def begin(self, method, _id=None, **params):
        self.serial += 1
        number = self.serial if _id is None else _id
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number

    def notify(self, method, **params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def answer(self, number, seconds=30):
        """The answer to this request; other messages are kept in `aside`."""
        for at, message in enumerate(self.aside):
            if message.get("id") == number and "method" not in message:
                return self._open(self.aside.pop(at))
        while True:
            message = self.next(seconds)
            assert message is not None, f"it ended: {self.process.poll()}"
            if message.get("id") == number:
                return self._open(message)
            self.aside.append(message)

    @staticmethod
    def _open(message):
        if "error" in message:
            assert set(message["error"]) <= {"code", "message", "data"}
            raise Failed(message["error"])
        return message["result"]

    def ask(self, method, **params):
        return self.answer(self.begin(method, **params))

    def error(self):
        """The next message is an error: its id and code."""
        message = self.next()
        assert "error" in message, message
        assert message["error"]["message"]
        return message["id"], message["error"]["code"]

    # -- the protocol -----------------------------------------------------------------------------

    def initialize(self, version="2025-11-25"):
        result = self.ask("initialize", protocolVersion=version, capabilities={},
                          clientInfo={"name": "tests", "version": "1"})
        self.notify("notifications/initialized")
        return result

    def tool(self, tool, **arguments):
        return self.ask("tools/call", name=tool, arguments=arguments)

    def run(self, code, **arguments):
        """The whole result of execute_python, valid by the schema of results."""
        result = self.tool("execute_python", code=code, **arguments)
        if "structuredContent" in result:
            errors = [f"{list(e.absolute_path)}: {e.message}"[:300] for e in
                      self.product.validator.iter_errors(result["structuredContent"])]
            assert not errors, errors
            assert result["isError"] is (result["structuredContent"]["status"] != "ok")
        else:
            assert result["isError"] is True
        return result

    def text(self, code, **arguments):
        return text_of(self.run(code, **arguments))

    def session(self, **arguments):
        result = self.tool("python_session", action="create", **arguments)
        assert not result["isError"], result
        return result["structuredContent"]["sessions"][0]["id"]

    # -- its end ------------------------------------------------------------------------------------

    def close(self):
        """Closes its stdin and waits: its exit status."""
        if self.process.poll() is None:
            if not self.process.stdin.closed:
                self.process.stdin.close()
        status = self.process.wait(20 * self.product.SLOW)
        self.reader.join(5)
        return status

    def end(self):
        try:
            self.close()
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()


def text_of(result):
    return "".join(block["text"] for block in result["content"] if block["type"] == "text")


@pytest.fixture
def connect(product, watch, place):
    """connect(*options) -> Client that has said nothing yet."""
    clients = []

    def connect(*options, **more):
        clients.append(Client(product, place, *options, **more))
        return clients[-1]
    yield connect
    for client in clients:
        client.end()


@pytest.fixture
def client(connect):
    client = connect()
    client.initialize()
    return client


@pytest.fixture(scope="module")
def common(product, canary, request):
    """One client for the tests of a module that do it no harm; what they leave is looked for at
    its end."""
    seen = witness.Witness(canary)
    if product.daemon:
        seen.daemon_check, seen.patience = product.daemon.differences, 10 * product.SLOW
    client = Client(product, product.directory(f"common-{request.module.__name__}"))
    client.initialize()
    witness.exempt.add(client.process.pid)
    yield client
    witness.exempt.discard(client.process.pid)
    client.end()
    seen.check()
