# SPDX-License-Identifier: Apache-2.0
"""What the APIs of others have in common: off by default, their policy, keys' ceilings."""
import pytest

from harness.compat import CompatClient
from harness.daemon import Daemon
from harness.web import at_once, keyed_server

SECRETS = {name: "execpy_" + letter * 43 for name, letter in
           (("ada", "a"), ("bob", "b"), ("eve", "e"))}
LIMITS = {"ada": "", "bob": "    runs: 1\n    sessions: 1\n",
          "eve": "    policies: [open]\n    limits: {time: 3s, memory: 60M}\n"}
PISTON = {"language": "python", "version": "*"}


@pytest.fixture(scope="module")
def keyed(product):
    with keyed_server(product, "serve-compat-keys", SECRETS, LIMITS,
                      "compat: [e2b, piston]\ncompat_policy: strict\n") as server:
        yield server


@pytest.fixture
def tenant(keyed):
    clients = []

    def tenant(name):
        clients.append(CompatClient(keyed.port, SECRETS.get(name)))
        return clients[-1]
    yield tenant
    for client in clients:
        client.close()


def test_off_unless_enabled(server, tenant):
    """The server of the other tests names none; this one names two."""
    client = CompatClient(server.port)
    for method, path in (("POST", "/execute"), ("GET", "/contexts"), ("GET", "/health"),
                         ("POST", "/api/v2/execute"), ("POST", "/run_code")):
        assert client.ask(method, path).status == 404, path
    client.close()
    assert tenant("ada").post("/run_code", {"code": "1", "language": "python"}).status == 404
    assert tenant("ada").get("/api/v2/runtimes").status == 200


@pytest.mark.parametrize("text, word", [
    ("compat: [e2b, jupyter]", "there is no 'jupyter'"), ("compat: e2b", "compat must be a list"),
    ("compat_policy: lax", "there is no policy 'lax'"), ("compat_time: 1ms", "compat_time"),
])
def test_configuration(product, place, text, word):
    daemon = Daemon(product, place, text + "\n", wait=False)
    assert daemon.process.wait(60) == 2
    daemon.reader.join(60)
    assert word in "\n".join(daemon.lines)


def test_keys_are_asked_for(tenant):
    nobody = tenant(None)
    assert nobody.post("/execute", {"code": "1"}).status == 401
    assert nobody.get("/contexts").status == nobody.get("/api/v2/runtimes").status == 401
    assert nobody.get("/health").status == 200


def test_the_policy_is_the_configured_one(tenant):
    code = "import os; print(os.system('exit 3'))"
    found = tenant("ada").execute(code)
    assert found[0]["name"] == "SecurityError" and "os.system" in found[0]["value"]
    assert tenant("ada").post("/api/v2/execute", {**PISTON, "files": [{"content": code}]}) \
        .json["run"]["code"] == 126
    # Whose key does not have it gets the first of those that it has.
    assert tenant("eve").execute(code)[0] == {"type": "stdout", "text": "768\n"}


def test_ceilings(tenant):
    eve = tenant("eve")
    found = eve.execute("while True: pass")
    assert found[0]["name"] == "TimeLimitError" and "3 s" in found[0]["value"]
    assert "60 MiB" in eve.execute("x = bytearray(1 << 33)")[0]["value"]
    request = {**PISTON, "files": [{"content": "while True: pass"}]}
    assert "3 s" in eve.post("/api/v2/execute", request).json["run"]["message"]
    answer = eve.post("/api/v2/execute", {**request, "run_timeout": 3001})
    assert answer.status == 400 and "limit of 3000" in answer.json["message"]


def test_contexts_are_their_owners(tenant):
    ada, eve = tenant("ada"), tenant("eve")
    context = ada.post("/contexts", {}).json["id"]
    assert ada.value("x = 5; x", context_id=context) == "5"
    assert eve.post("/execute", {"code": "x", "context_id": context}).status == 404
    assert eve.delete(f"/contexts/{context}").status == 404
    assert eve.post(f"/contexts/{context}/restart").status == 404
    assert context not in [c["id"] for c in eve.get("/contexts").json]
    # The default ones are not the same, either.
    ada.execute("y = 1")
    assert eve.value("'y' in globals()") == "False"
    assert ada.delete(f"/contexts/{context}").status == 204


def test_as_many_as_it_may(tenant):
    bob = tenant("bob")
    assert bob.value("1") == "1"
    answer = bob.post("/contexts", {})
    assert answer.status == 429 and "as many sessions" in answer.json["detail"]
    assert bob.value("2") == "2"
    other = tenant("bob")
    response = other.send("POST", "/execute", {"code": "print(1)\nimport time\ntime.sleep(30)"})
    assert response.readline().startswith(b'{"type":"number_of_executions"')
    answer = bob.post("/api/v2/execute", {**PISTON, "files": [{"content": "1"}]})
    assert answer.status == 429 and "as many runs" in answer.json["message"]
    other.close()
    # A session that ended by itself counts no more.
    default = bob.get("/contexts").json[0]["id"]
    assert bob.delete(f"/v1/sessions/{default}").status == 204
    others = [tenant("bob") for _ in range(6)]
    answers = at_once([lambda c=client: c.post("/contexts", {}) for client in others])
    assert sorted(a.status for a in answers) == [200] + [429] * 5
