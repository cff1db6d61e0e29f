# SPDX-License-Identifier: Apache-2.0
"""A client of the REST API that holds every answer against docs/openapi.yaml."""
import http.client
import json
import re
import threading
from dataclasses import dataclass

import jsonschema
import yaml

from . import host
from .product import unique

CONTRACT = host.REPOSITORY / "docs" / "openapi.yaml"
TIMEOUT_S = 60


class Contract:
    """Which operation a request is, and whether an answer is one that it may have."""

    def __init__(self):
        self.document = yaml.safe_load(CONTRACT.read_text())
        files = {path.as_uri(): json.loads(path.read_text())
                 for path in CONTRACT.parent.glob("*.schema.json")}
        files.update({schema["$id"]: schema for schema in files.values()})
        self.resolver = jsonschema.RefResolver(CONTRACT.as_uri(), self.document, store=files)
        self.seen, self.lock = set(), threading.Lock()
        self.paths = []
        for path, item in self.document["paths"].items():
            # A path of a file may hold slashes, which no template of OpenAPI can say.
            pattern = re.sub(r"\\\{(\w+)\\\}",
                             lambda m: ".+" if m[1] == "path" else "[^/]+", re.escape(path))
            self.paths.append((re.compile(pattern + r"\Z"), path, item))

    def resolve(self, thing):
        while "$ref" in thing:
            thing = self.resolver.resolve(thing["$ref"])[1]
        return thing

    def check(self, schema, value):
        jsonschema.Draft202012Validator(schema, resolver=self.resolver).validate(value)

    def operation(self, method, path):
        method = "get" if method == "HEAD" else method.lower()
        for pattern, name, item in self.paths:
            if pattern.match(path) and method in item:
                return name, item[method]
        raise AssertionError(f"{method} {path} is not in {CONTRACT.name}")

    def answer(self, method, path, answer):
        """Asserts that the operation may be answered so, and remembers it."""
        with self.lock:  # the resolver is for one at a time
            self._answer(method, path, answer)

    def _answer(self, method, path, answer):
        name, operation = self.operation(method, path.split("?")[0])
        responses = operation["responses"]
        assert str(answer.status) in responses, \
            f"{method} {name}: {answer.status} is not in the contract: {answer}"
        self.seen.add((method, name, answer.status))
        response = self.resolve(responses[str(answer.status)])
        for header in response.get("headers", ()):
            assert header == "Retry-After" or answer.headers.get(header), f"{header} is missing"
        content = response.get("content")
        if content is None or method == "HEAD":
            assert not answer.body, answer
            return
        kind = answer.headers["Content-Type"].split(";")[0]
        assert kind in content or "*/*" in content, f"{method} {name}: {kind}: {answer}"
        schema = content.get(kind, content.get("*/*"))["schema"]
        if kind == "text/event-stream":
            for event in answer.events:
                self.check(schema["contentSchema"], event)
        elif kind == "application/x-ndjson":
            for line in answer.lines:
                self.check(schema["contentSchema"], line)
        elif kind in ("application/json", "application/problem+json"):
            self.check(schema, answer.json)
            if kind == "application/problem+json":
                assert answer.json["status"] == answer.status


def read_events(text):
    """[{event, data}] of a stream; comments are left out."""
    found = []
    assert text == "" or text.endswith("\n\n"), text[-200:]
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            fields = dict(line.split(": ", 1) for line in lines)
            assert list(fields) == ["event", "data"], block
            found.append({"event": fields["event"],
                          "data": json.loads(fields["data"], object_pairs_hook=unique)})
    return found


@dataclass
class Answer:
    status: int
    headers: object
    body: bytes

    @property
    def json(self):
        return json.loads(self.body, object_pairs_hook=unique)

    @property
    def lines(self):
        return [json.loads(line, object_pairs_hook=unique)
                for line in self.body.decode().splitlines()]

    @property
    def events(self):
        return read_events(self.body.decode())


class Client:
    """One connection, kept as long as the server keeps it."""

    def __init__(self, contract, port, key=None):
        self.contract, self.port, self.key = contract, port, key
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)

    def close(self):
        self.connection.close()

    def headers(self, headers, json_body):
        found = {} if json_body is None else {"Content-Type": "application/json"}
        if self.key:
            found["Authorization"] = f"Bearer {self.key}"
        return {**found, **(headers or {})}

    def send(self, method, path, document=None, *, body=None, headers=None):
        """Only sends it: the response that is still to be read."""
        if document is not None:
            body = json.dumps(document)
        self.connection.request(method, path, body, self.headers(headers, document))
        return self.connection.getresponse()

    def ask(self, method, path, document=None, *, body=None, headers=None):
        response = self.send(method, path, document, body=body, headers=headers)
        answer = Answer(response.status, response.headers, response.read())
        self.contract.answer(method, path, answer)
        return answer

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def put(self, path, body, **more):
        return self.ask("PUT", path, body=body, **more)

    def delete(self, path, **more):
        return self.ask("DELETE", path, **more)

    def post(self, path, document=None, **more):
        return self.ask("POST", path, document, **more)

    # -- what is asked most ------------------------------------------------------------------

    def run(self, code, path="/v1/run", **keys):
        answer = self.post(path, {"code": code, **keys})
        assert answer.status == 200, answer
        return answer.json

    def events(self, code, path="/v1/run", **keys):
        answer = self.post(path, {"code": code, **keys}, headers={"Accept": "text/event-stream"})
        assert answer.status == 200, answer
        return answer.events

    def refused(self, path, document, status=400):
        """The sentence with which it is refused."""
        answer = self.post(path, document)
        assert answer.status == status, answer
        return answer.json["detail"]

    def open(self, **keys):
        answer = self.post("/v1/sessions", keys)
        assert answer.status == 201, answer
        assert answer.headers["Location"] == f"/v1/sessions/{answer.json['id']}"
        return answer.headers["Location"]
