# SPDX-License-Identifier: Apache-2.0
"""The API of E2B's code interpreter: by its own client, and what that cannot ask."""
import json
import threading

import pytest

from harness import node
from harness.compat import CompatClient

PNG = "iVBORw0KGgoA"


@pytest.fixture(scope="module")
def said(compat):
    """A whole conversation of the client that others wrote (tests/node/compat.mjs)."""
    return json.loads(node.run("compat.mjs", "e2b", f"http://127.0.0.1:{compat.port}",
                               seconds=120 * compat.daemon.product.SLOW))


@pytest.fixture
def client(compat):
    client = CompatClient(compat.port)
    yield client
    client.close()


# -- its own client ----------------------------------------------------------------------------


def test_values_and_streams(said):
    assert said["value"]["text"] == "text" and said["value"]["count"] == 1
    assert said["kept"]["text"] == "42" and said["kept"]["count"] == 2
    assert [r["main"] for r in said["kept"]["results"]] == [True]
    assert (said["streams"]["stdout"], said["streams"]["stderr"]) == ("out ä\nmore\n", "err\n")


def test_callbacks_are_called_while_it_runs(said):
    events = said["callbacks"]["events"]
    assert [name for name, _ in events] == ["0\n", "1\n", "2\n", "shown", "ZeroDivisionError"]
    # The code sleeps for 400 ms between the first and the last line.
    assert events[2][1] - events[0][1] > 200, events
    assert [r["main"] for r in said["callbacks"]["steps"]["results"]] == [False]


def test_errors(said):
    error = said["error"]["error"]
    assert (error["name"], error["value"]) == ("ZeroDivisionError", "division by zero")
    assert "return 1 / n" in error["traceback"] and "in f\n" in error["traceback"]
    assert said["error"]["stderr"] == "", "the traceback is told once"
    assert said["caught"]["error"] is None
    assert said["caught"]["stderr"].count("Traceback") == 1 and said["caught"]["stdout"] == "2\n"
    assert said["syntax"]["error"]["name"] == "SyntaxError"
    assert (said["exit"]["error"]["name"], said["exit"]["error"]["value"]) == ("SystemExit", "3")
    refused = said["refused"]["error"]
    assert refused["name"] == "SecurityError" and "hint: " in refused["value"]
    assert "/etc/passwd" in refused["traceback"]


def test_environment_is_one_execution_s(said):
    assert said["envs"]["text"].startswith("('me', ")
    assert said["envsGone"]["text"] is None and said["envsGone"]["error"] is None


def test_bundles(said):
    result, = said["bundle"]["results"]
    assert (result["text"], result["html"]) == ("thing", "<b>thing</b>")
    assert result["json"] == {"a": [1, 2]}
    assert result["extra"] == {"application/x.own+json": {"b": 1}}


def test_limits_and_crashes_leave_the_context(said):
    assert said["crash"]["error"]["name"] == "Crash"
    assert "as it was before" in said["crash"]["error"]["traceback"]
    assert said["memory"]["error"]["name"] == "MemoryLimitError"
    assert "hint: " in said["memory"]["error"]["value"]
    assert said["abandoned"]["name"] == "TimeoutError"
    for after in ("afterCrash", "afterMemory", "afterAbandoned"):
        assert said[after]["text"] == "41", after


def test_contexts(said):
    first, second = said["contexts"]["first"], said["contexts"]["second"]
    assert first["language"] == "python" and first["cwd"] == "/workspace/deep/er"
    assert second["cwd"] == "/workspace" and first["id"] != second["id"]
    listed = said["contexts"]["listed"]
    assert len(listed) == 3 and first in listed and second in listed
    assert [e["text"] for e in said["apart"]] == ["/workspace/deep/er", "(False, [])", "41"]
    # A restart takes the variables and what runs, and leaves the files.
    assert said["hung"] is None and said["restarted"]["count"] == 1
    assert said["restarted"]["text"] == "(False, '/workspace/deep/er', 'kept')"
    assert said["removed"]["name"] == said["removedTwice"]["name"] == "NotFoundError"
    assert said["left"] == [c for c in listed if c not in (first, second)]


def test_what_is_not_served(said):
    assert said["language"] == said["directory"]
    assert said["language"]["name"] == "SandboxError" and "400" in said["language"]["message"]


def test_charts(said):
    assert [r["png"] for r in said["charts"]] == [PNG] * 9
    line, scatter, bar, pie, box, dates, several, unknown, large = \
        [r["chart"] for r in said["charts"]]
    assert line["type"] == "line" and line["title"] == "Title"
    assert (line["x_label"], line["x_unit"]) == ("time (s)", "s")
    assert (line["y_label"], line["y_unit"]) == ("speed [m/s]", "m/s")
    assert line["elements"] == [{"label": "a", "points": [[1, 4], [2, 5], [3, 6]]}]
    assert line["x_scale"] == line["y_scale"] == "linear"
    assert len(line["x_ticks"]) == len(line["x_tick_labels"]) > 2
    assert scatter["type"] == "scatter"
    assert scatter["elements"] == [{"label": "dots", "points": [[1, 3], [None, None]]}]
    assert bar["type"] == "bar" and bar["elements"] == [
        {"label": label, "value": value, "group": group} for label, value, group in
        (("a", 1, "first"), ("b", 2, "first"), ("a", 3, "second"), ("b", 4, "second"))]
    assert pie["type"] == "pie" and pie["elements"] == [
        {"label": "No", "angle": 324, "radius": 1}, {"label": "Yes", "angle": 36, "radius": 1}]
    assert box["type"] == "box_and_whisker" and box["elements"] == [
        {"label": "A", "min": 78, "first_quartile": 79.75, "median": 86.5,
         "third_quartile": 89.5, "max": 92, "outliers": [20]},
        {"label": "B", "min": 84, "first_quartile": 84.75, "median": 88,
         "third_quartile": 90.5, "max": 95, "outliers": [76]}]
    assert (dates["x_scale"], dates["y_scale"]) == ("datetime", "log")
    assert dates["elements"][0]["points"] == [["2024-01-01", 1], ["2024-01-02", 2]]
    assert several["type"] == "superchart" and several["title"] == "Both"
    assert [part["type"] for part in several["elements"]] == ["line", "bar"]
    assert several["elements"][1]["elements"] == [{"label": "q", "value": 7, "group": None}]
    assert unknown["type"] == "unknown" and unknown["elements"] == []
    assert large is None


# -- what it cannot ask ------------------------------------------------------------------------


def test_what_clients_leave_out_is_null(client):
    assert client.value("6 * 7", context_id=None, language=None, env_vars=None) == "42"
    assert client.value("6 * 7", language="python", unknown=1) == "42"


@pytest.mark.parametrize("request_, word", [
    ({}, "code"), ({"code": 1}, "code"), ({"code": "1", "language": "r"}, "Python"),
    ({"code": "1", "context_id": "x", "language": "python"}, "either"),
    ({"code": "1", "env_vars": ["a"]}, "env_vars"), ({"code": "1", "env_vars": {"a": 1}}, "env.a"),
])
def test_wrong_requests(client, request_, word):
    assert word in client.refused("/execute", request_)


def test_no_such_context(client):
    assert client.post("/execute", {"code": "1", "context_id": "ses_no"}).status == 404
    assert client.post("/contexts/ses_no/restart").status == 404
    assert client.delete("/contexts/ses_no").status == 404
    assert client.get("/health").status == 200


def test_what_code_sets_in_the_environment_stays(client):
    client.execute("import os\nos.environ['A'] = 'mine'", env_vars={"A": "given", "B": "given"})
    assert client.value("os.environ['A'], os.environ.get('B')") == "('mine', None)"
    client.execute("pass", env_vars={"A": "given"})
    assert client.value("os.environ['A'], os.environ.get('EXECPY_CHARTS')") == "('mine', '1')"


def test_output_that_is_no_text(client):
    found = client.execute("import os, sys\nfor part in (b'\\xc3', b'\\xa4', b'\\xff'):\n"
                           "    os.write(1, part)\n    __import__('time').sleep(0.1)")
    assert "".join(line["text"] for line in found) == "ä\ufffd"


def test_a_guest_cannot_write_lines(client):
    """Line breaks in its JSON, and JSON that is none."""
    found = client.execute(
        "class Thing:\n    def __init__(self, text): self.text = text\n"
        "    def _repr_json_(self): return self.text\n    def __repr__(self): return 'thing'\n"
        "display(Thing('{\\n\"a\":\\n1}'))\ndisplay(Thing('{\"a\": NaN}'))\n"
        "display(Thing('{}\\n{\"type\": \"error\"}'))\n")
    assert found == [{"type": "result", "is_main_result": False, "text": "thing", **more}
                     for more in ({"json": {"a": 1}}, {}, {})]


def test_many_wait_for_the_same_context(compat, client):
    """All of them at once, the first of which makes it."""
    ids = {c["id"] for c in client.get("/contexts").json}
    for id in ids:
        assert client.delete(f"/contexts/{id}").status == 204
    assert client.get("/contexts").json == []
    clients = [CompatClient(compat.port) for _ in range(4)]
    found = []
    threads = [threading.Thread(target=lambda c=c: found.append(c.value("1 + 1")))
               for c in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for other in clients:
        other.close()
    assert found == ["2"] * 4
    assert len(client.get("/contexts").json) == 1


def test_whoever_goes_away_while_it_opens(compat, client):
    assert client.value("1") == "1"  # makes the default one
    before = client.get("/contexts").json
    for _ in range(5):
        other = CompatClient(compat.port)
        other.connection.request("POST", "/contexts", json.dumps({"cwd": "/workspace/gone"}),
                                 {"Content-Type": "application/json"})
        other.close()
    assert client.value("1") == "1"
    compat.quiet()
    # Nobody knows them: they were closed when they were ready.
    for _ in range(100):
        if client.get("/contexts").json == before:
            break
        threading.Event().wait(0.1)
    assert client.get("/contexts").json == before


def test_a_session_that_ended_elsewhere(compat, client):
    default = client.get("/contexts").json[0]["id"]
    client.execute("x = 1")
    assert client.delete(f"/v1/sessions/{default}").status == 204
    found = client.execute("'x' in globals()")
    # The default is made anew, and says so.
    assert any("a new one" in line.get("text", "") for line in found)
    assert found[-1]["text"] == "False"
    named = client.post("/contexts", {}).json["id"]
    assert client.delete(f"/v1/sessions/{named}").status == 204
    assert client.post("/execute", {"code": "1", "context_id": named}).status == 404
    assert named not in [c["id"] for c in client.get("/contexts").json]


@pytest.mark.full
def test_contexts_that_nobody_uses_go(client):
    """The one that was used longest ago first; a session that ended ends no context."""
    for context in client.get("/contexts").json:
        assert client.delete(f"/contexts/{context['id']}").status == 204
    made = []
    for n in range(257):
        made.append(client.post("/contexts", {}).json["id"])
        if n > 1:
            assert client.delete(f"/v1/sessions/{made[-1]}").status == 204
        if n == 200:
            assert client.value("1", context_id=made[0]) == "1"
    found = {context["id"] for context in client.get("/contexts").json}
    assert found == set(made) - {made[1]}
    for context in found:
        assert client.delete(f"/contexts/{context}").status == 204
