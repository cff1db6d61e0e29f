# SPDX-License-Identifier: Apache-2.0
"""Clients and suites that others wrote, against the real server and against mcp-fixture, whose
tools, resources and prompts are what the conformance suite asks for."""
import concurrent.futures
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from harness import node
from harness.daemon import Daemon, configuration

pytestmark = pytest.mark.cold  # each has a daemon of its own
HERE = Path(__file__).resolve().parent
PACKAGES = "node_modules/@modelcontextprotocol"
REVISIONS = ["2026-07-28", "2025-11-25"]


@pytest.fixture(scope="module")
def url(product):
    node.program()
    place = product.directory("mcp-clients")
    # What the conversation asks for fits into a session of the default size but for its plot.
    daemon = Daemon(product, place, configuration({"bare": (2, 4)}), listen=("127.0.0.1:0",))
    line = daemon.says("serving HTTP on")
    assert line, daemon.lines
    yield line.split()[-1] + "/mcp"
    daemon.close()


@pytest.fixture(scope="module")
def fixture_url(product):
    node.program()
    program = Path(os.environ["EXECPY_BIN"]).resolve().parents[2] / "tests/mcp-fixture"
    process = subprocess.Popen([program, HERE / "fixture.json"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    yield process.stdout.readline().strip()
    process.stdin.close()
    assert process.wait(20) == 0
    process.stdout.close()


@pytest.fixture(scope="module")
def told(request, product, url, fixture_url):
    """told(request) -> what the program of a test said. All programs of this module's tests that
    are run at all run side by side, a few at a time: most of it is waiting."""
    places = {"execpy": url, "fixture": fixture_url, "http": [url],
              "stdio": [str(product.binary), "mcp", "--no-daemon"]}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        begun = {item.name: pool.submit(PROGRAMS[item.originalname], places, product.SLOW,
                                        **item.callspec.params)
                 for item in request.session.items
                 if item.path == request.path and not item.get_closest_marker("skip")}
        yield lambda asked: begun[asked.node.name].result()


# --- the conformance suite -------------------------------------------------------------------------------

def conform(places, slow, server, revision):
    """The suite has clocks of its own, of half a second some: on a host that is busy it may need
    a second go."""
    for _ in range(2):
        status, out = conform_once(places, slow, server, revision)
        if status == 0:
            break
    return status, out


def conform_once(places, slow, server, revision):
    process = node.start(
        f"{PACKAGES}/conformance/dist/index.js", "server", "--url", places[server],
        "--requirements", revision, "--expected-failures",
        HERE / f"conformance/{server}-{revision}.yaml")
    out, err = node.finish(process, 90 * slow)
    return process.returncode, out + err


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("server", ["fixture", "execpy"])
def test_it_conforms(told, request, server, revision):
    """No scenario fails but those that the list names, and each that it names does fail: the
    suite's own rule for such lists."""
    status, out = told(request)
    assert status == 0, out[out.find("=== SUMMARY"):]
    scenarios = re.findall(r"^[✓✗] ([\w-]+): \d+ passed, \d+ failed", out, re.MULTILINE)
    sums = re.search(r"^Total: (\d+) passed, (\d+) failed", out, re.MULTILINE)
    assert len(scenarios) > 30 and int(sums[1]) >= {"fixture": 65, "execpy": 40}[server], out[-3000:]


# --- the inspector ------------------------------------------------------------------------------------------

def inspect(places, slow, transport, era, *words):
    return json.loads(node.run(f"{PACKAGES}/inspector/clients/launcher/build/index.js", "--cli",
                               *places[transport], "--protocol-era", era, "--format", "json",
                               *(words or ("--method", "tools/call", "--tool-name", "execute_python",
                                           "--tool-args-json", '{"code": "print(6 * 7)"}')),
                               seconds=60 * slow))


def inspect_schemas(places, slow, transport, era):
    return inspect(places, slow, transport, era, "--method", "tools/list", "--strict")


@pytest.mark.parametrize("transport, era", [
    ("stdio", "auto"), ("http", "legacy"), ("http", "modern"),
    *(pytest.param(*each, marks=pytest.mark.full)
      for each in (("stdio", "legacy"), ("stdio", "modern"), ("http", "auto")))])
def test_the_inspector(told, request, transport, era):
    assert told(request)["result"]["content"][0] == {"type": "text", "text": "42\n"}


@pytest.mark.parametrize("transport, era", [("http", "auto")])
def test_the_inspector_finds_no_error_in_the_schemas(told, request, transport, era):
    assert len(told(request)["result"]["tools"]) == 3


# --- a conversation -----------------------------------------------------------------------------------------

def converse(places, slow, transport, client, era):
    return json.loads(node.run("conversation.mjs", client, era, *places[transport],
                               seconds=90 * slow))


@pytest.mark.parametrize("transport, client, era", [
    ("stdio", "sdk", "legacy"), ("http", "sdk", "legacy"), ("stdio", "client", "modern"),
    ("http", "client", "auto"), ("http", "langchain", "legacy"),
    *(pytest.param(*each, marks=pytest.mark.full)
      for each in (("stdio", "client", "auto"), ("http", "client", "modern"),
                   ("stdio", "langchain", "legacy")))])
def test_a_conversation(told, request, transport, client, era):
    said = told(request)
    assert said["era"] == ("legacy" if client in ("sdk", "langchain") else "modern")
    assert said["tools"] == ["execute_python", "check_python", "python_session"]
    assert said["wrong"]["isError"] is True
    assert "NameError" in said["wrong"]["text"] and "Did you mean: 'prices'?" in said["wrong"]["text"]
    assert said["right"]["isError"] is False and "7" in said["right"]["text"]
    assert "socket" in said["verdict"]["text"]
    assert said["kept"]["isError"] is False and "42" in said["kept"]["text"]
    assert said["plot"]["isError"] is False and "note.txt" in said["plot"]["text"]
    assert "image" in said["plot"]["kinds"]
    if client != "langchain":
        assert said["plot"]["kinds"] == ["text", "image", "resource_link"]
        assert said["file"] == "kept" and said["progress"] >= 1
    assert "ended" in said["ended"]["text"]


PROGRAMS = {"test_it_conforms": conform, "test_the_inspector": inspect,
            "test_the_inspector_finds_no_error_in_the_schemas": inspect_schemas,
            "test_a_conversation": converse}
