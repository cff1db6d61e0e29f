# SPDX-License-Identifier: Apache-2.0
"""A client of the APIs of others: what they answer is in no contract of ours."""
import json

from .product import unique
from .rest import Client


class Unbound:
    def answer(self, method, path, answer):
        pass


class CompatClient(Client):
    def __init__(self, port, key=None):
        super().__init__(Unbound(), port, key)

    def execute(self, code, **keys):
        """What an execution tells, but for what only keeps the connection alive."""
        answer = self.post("/execute", {"code": code, **keys})
        assert answer.status == 200, answer
        assert answer.headers["Content-Type"] == "application/x-ndjson"
        lines = [json.loads(line, object_pairs_hook=unique)
                 for line in answer.body.decode().splitlines()]
        lines = [line for line in lines if line["type"] != "keepalive"]
        assert lines[0]["type"] == "number_of_executions", lines
        assert lines[-1] == {"type": "end_of_execution"}, lines
        return lines[1:-1]

    def value(self, code, **keys):
        """The text of the last expression's value."""
        found = [line for line in self.execute(code, **keys) if line.get("is_main_result")]
        assert len(found) == 1, found
        return found[0]["text"]
