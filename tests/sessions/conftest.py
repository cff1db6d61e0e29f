# SPDX-License-Identifier: Apache-2.0
"""Sessions through libexecpy: one process that calls it, told what to do line by line."""
import json
import os
import subprocess
import threading

import pytest

# For code in a session: its cell's processes, of which any may end while it is looked at.
PROCESSES = """
import os
def pids(): return [int(name) for name in os.listdir('/proc') if name.isdigit()]
def look(pid, name):
    try:
        with open(f'/proc/{pid}/{name}') as file: return file.read()
    except OSError: return ''
def kill(pid):
    try: os.kill(pid, 9)
    except ProcessLookupError: return False
    return True
def kill_checkpoints():
    return [pid for pid in pids() if pid not in (1, os.getpid(), os.getppid()) and kill(pid)]
"""


def programs(product):
    """A directory with what an engine starts, as it is where it was installed."""
    directory = product.base / "programs"
    if not directory.exists():
        directory.mkdir()
        for path in ("warden/execpy-warden", "guest/execpy-guest", "jail/execpy-keeper",
                     "guest/fonts"):
            (directory / path.split("/")[1]).symlink_to(product.binary.parents[1] / path)
    return directory


class Refused(Exception):
    """A call that failed, with the name of its errno."""

    def __init__(self, answer):
        super().__init__(f"{answer['errno']}: {answer['text']}")
        self.errno, self.text = answer["errno"], answer["text"]


class Tool:
    """An engine: with a warden of its own, or of a daemon."""

    def __init__(self, product, cwd, socket=None):
        self.product = product
        words = [*product.prefix(), product.binary.parents[2] / "tests/sessions/session-tool",
                 programs(product), *([socket] if socket else [])]
        self.process = product.start(words=words, cwd=cwd, stdin=subprocess.PIPE, stderr=None)

    def call(self, call, timeout=60, **more):
        more = {key: str(value) if isinstance(value, os.PathLike) else value
                for key, value in more.items() if value is not None}
        self.process.stdin.write(json.dumps({"call": call, **more}).encode() + b"\n")
        self.process.stdin.flush()
        killer = threading.Timer(timeout * self.product.SLOW, self.process.kill)
        killer.start()
        line = self.process.stdout.readline()
        killer.cancel()
        assert line, f"{call} did not come back: exit {self.process.poll()}"
        answer = json.loads(line)
        if "errno" in answer:
            raise Refused(answer)
        if "result" in answer:
            errors = [f"{list(e.absolute_path)}: {e.message}"[:300]
                      for e in self.product.validator.iter_errors(answer["result"])]
            assert not errors, f"{errors}\n{answer}"
            return answer["result"]
        return answer["ok"]

    def open(self, **options):
        options.setdefault("policy", "open")
        return Session(self, self.call("open", **options))

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(30)
        self.process.stdout.close()


class Session:
    def __init__(self, tool, info):
        self.tool, self.id, self.opened = tool, info["id"], info

    def call(self, call, **more):
        return self.tool.call(call, id=self.id, **more)

    def fork(self, count=1, **more):
        """Its branches."""
        return [Session(self.tool, info)
                for info in self.call("fork", count=count, timeout=120, **more)]

    def run(self, code, **more):
        """The result, whatever it is."""
        return self.call("run", code=code, **more)

    def ok(self, code, **more):
        """The result of code that has to succeed."""
        result = self.run(code, **more)
        assert result["status"] == "ok", result
        return result

    def value(self, code):
        value = self.ok(code)["value"]
        return value and value["text/plain"]


@pytest.fixture
def tool(product, watch, place):
    tool = Tool(product, place)
    yield tool
    tool.close()


@pytest.fixture
def session(tool):
    return tool.open()


@pytest.fixture
def attach(product, watch, place):
    """attach(daemon) -> another engine, of that daemon."""
    tools = []

    def attach(daemon):
        tools.append(Tool(product, place, daemon.socket))
        return tools[-1]
    yield attach
    for one in tools:
        one.close()
