# SPDX-License-Identifier: Apache-2.0
"""A client of /mcp: each message one POST, its response looked at as it comes."""
import http.client
import json
import socket

from conftest import META, STATELESS, Failed, text_of
from harness.product import no_constants, unique

BOTH = "application/json, text/event-stream"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def load(data):
    return json.loads(data.decode("utf-8"), parse_constant=no_constants, object_pairs_hook=unique)


class Answer:
    """A response: its status, header and messages; `answer` is the last."""

    def __init__(self, response):
        self.status, self.header = response.status, {k.lower(): v for k, v in response.getheaders()}
        body = response.read()
        self.type = self.header.get("content-type", "")
        self.body, self.messages, self.comments = body, [], 0
        if self.type == "application/json":
            self.messages = [load(body)]
        elif self.type == "text/event-stream":
            assert body == b"" or body.endswith(b"\n\n")
            for event in body.split(b"\n\n")[:-1]:
                if event.startswith(b":"):
                    self.comments += 1
                    continue
                kind, data = event.split(b"\n")
                assert kind == b"event: message" and data.startswith(b"data: ")
                self.messages.append(load(data[6:]))

    @property
    def code(self):
        return self.messages[-1]["error"]["code"]

    @property
    def result(self):
        assert self.status == 200, (self.status, self.body)
        if "error" in self.messages[-1]:
            raise Failed(self.messages[-1]["error"])
        return self.messages[-1]["result"]

    @property
    def text(self):
        return text_of(self.result)


class Web:
    """One server; each message goes over a connection of its own, which is left alone then."""

    def __init__(self, url, seconds=60, key=None):
        self.host, port = url.removeprefix("http://").split("/")[0].split(":")
        self.port, self.seconds, self.serial = int(port), seconds, 0
        self.standard = {"Authorization": f"Bearer {key}"} if key else {}
        self.session = None  # of MCP

    def send(self, body, headers, method="POST"):
        """The connection, with the request sent."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=self.seconds)
        headers = {**self.standard, **headers}
        connection.request(method, "/mcp", body, {k: v for k, v in headers.items() if v is not None})
        return connection

    def post(self, body, headers=None, method="POST"):
        connection = self.send(body if isinstance(body, bytes) or body is None
                               else json.dumps(body).encode(), headers or {}, method)
        try:
            return Answer(connection.getresponse())
        finally:
            connection.close()

    # -- 2026-07-28 -----------------------------------------------------------------------------

    def stateless(self, method, params=None, _meta=None, **header):
        """The message and the header of a request; header={"Mcp-Name": None} leaves one out."""
        self.serial += 1
        params = {**(params or {}), "_meta": {**META, **(_meta or {})}}
        headers = {"Content-Type": "application/json", "Accept": BOTH,
                   "MCP-Protocol-Version": STATELESS, "Mcp-Method": method}
        if method in NAMED:
            headers["Mcp-Name"] = params.get(NAMED[method])
        message = {"jsonrpc": "2.0", "id": self.serial, "method": method, "params": params}
        return message, {**headers, **header.get("header", {})}

    def ask(self, method, params=None, **more):
        return self.post(*self.stateless(method, params, **more))

    def tool(self, name, _meta=None, header=None, **arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments}, _meta=_meta,
                        header=header or {})

    def run(self, code, **more):
        return self.tool("execute_python", code=code, **more)

    # -- those that begin with initialize ----------------------------------------------------------

    def begin(self, version="2025-11-25"):
        """Says hello; the MCP session is used from now on."""
        answer = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize",
                            "params": {"protocolVersion": version, "capabilities": {},
                                       "clientInfo": {"name": "tests", "version": "1"}}},
                           {"Content-Type": "application/json", "Accept": BOTH})
        self.session, self.version = answer.header.get("mcp-session-id"), version
        return answer

    def legacy(self, message, **header):
        headers = {"Content-Type": "application/json", "Accept": BOTH,
                   "Mcp-Session-Id": self.session, "MCP-Protocol-Version": self.version}
        return {"jsonrpc": "2.0", **message}, {**headers, **header.get("header", {})}

    def request(self, method, params=None, _id=None, **more):
        self.serial += 1
        message = {"id": self.serial if _id is None else _id, "method": method}
        if params is not None:
            message["params"] = params
        return self.post(*self.legacy(message, **more))

    def notify(self, method, **params):
        return self.post(*self.legacy({"method": method, "params": params}))

    # -- what goes wrong on purpose ------------------------------------------------------------------

    def leave(self, body, headers, after):
        """Sends a request and goes away when `after()` has returned."""
        connection = self.send(json.dumps(body).encode(), headers)
        after()
        connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()
