# SPDX-License-Identifier: Apache-2.0
"""What keys may have over REST, and that those of one never see what is another's."""
import json
import threading
import time

import pytest

from harness.daemon import stopped
from harness.rest import Client
from harness.web import at_once, keyed_server, wait_until

MIB = 1 << 20
SECRETS = {"ada": "execpy_" + "a" * 43, "bob": "execpy_" + "b" * 43, "eve": "execpy_" + "e" * 43}
LIMITS = {
    "ada": "",
    "bob": "    runs: 2\n    sessions: 2\n",
    "eve": "    policies: [standard, open]\n    limits: {time: 2s, memory: 50M}\n",
}


@pytest.fixture(scope="module")
def keyed(product):
    with keyed_server(product, "serve-keys", SECRETS, LIMITS) as server:
        yield server


@pytest.fixture
def tenant(contract, keyed):
    """tenant(name) -> Client with its key."""
    clients = []

    def tenant(name):
        clients.append(Client(contract, keyed.port, SECRETS.get(name, name)))
        return clients[-1]
    yield tenant
    for client in clients:
        client.close()


def test_without_a_key_there_is_nothing(tenant):
    for client in (tenant(None), tenant("execpy_" + "x" * 43), tenant("")):
        for answer in (client.get("/v1/info"), client.post("/v1/run", {"code": "1"}),
                       client.get("/v1/sessions"), client.get("/v1/runs/run_1")):
            assert answer.status == 401
    assert tenant("ada").run("1")["status"] == "ok"


def test_sessions_are_their_owners(tenant):
    ada, eve = tenant("ada"), tenant("eve")
    place = ada.open()
    ada.run("secret = 5\nopen('f', 'w').write('x')", place + "/run")
    never = "/v1/sessions/ses_" + "0" * 26
    for ask in (lambda p: eve.get(p), lambda p: eve.delete(p),
                lambda p: eve.post(p + "/run", {"code": "secret"}),
                lambda p: eve.post(p + "/checkpoint", {"name": "a"}),
                lambda p: eve.post(p + "/rollback", {"name": "a"}),
                lambda p: eve.post(p + "/undo"), lambda p: eve.post(p + "/interrupt"),
                lambda p: eve.post(p + "/fork", {"n": 1}),
                lambda p: eve.delete(p + "/checkpoints/a"), lambda p: eve.get(p + "/files"),
                lambda p: eve.get(p + "/files/f"), lambda p: eve.put(p + "/files/f", b""),
                lambda p: eve.delete(p + "/files/f"), lambda p: eve.get(p + "/files.tar"),
                lambda p: eve.put(p + "/files.tar", b"")):
        theirs, none = ask(place), ask(never)
        # It cannot be told from one that never was.
        assert theirs.status == none.status == 404
        id, other = place.rsplit("/", 1)[1], never.rsplit("/", 1)[1]
        assert theirs.body.replace(id.encode(), other.encode()) == none.body
    assert eve.get("/v1/sessions").json["sessions"] == []
    assert len(ada.get("/v1/sessions").json["sessions"]) == 1
    assert ada.run("secret", place + "/run")["value"] == {"text/plain": "5"}
    assert tenant("ada").delete(place).status == 204
    assert ada.get("/v1/sessions").json["sessions"] == []


def test_detached_runs_are_their_owners(tenant):
    ada, eve = tenant("ada"), tenant("eve")
    place = ada.post("/v1/run", {"code": "1", "detach": True}).headers["Location"]
    assert eve.get(place).status == eve.delete(place).status == 404
    while ada.get(place).json["state"] == "running":
        time.sleep(0.02)
    assert eve.get(place).status == 404
    assert ada.get(place).json["result"]["status"] == "ok"


def test_ceilings_and_policies(tenant):
    eve, ada = tenant("eve"), tenant("ada")
    info = eve.get("/v1/info").json
    assert info["tenant"]["name"] == "eve" and info["policies"] == ["standard", "open"]
    assert info["limits"]["time_ms"] == {"default": 2000, "least": 10, "most": 2000}
    result = eve.run("import os; 1")
    assert result["policy"] == "standard" and result["limits"]["memory_bytes"] == 50 * MIB
    assert result["limits"]["time_ms"] == 2000
    for limits in ({"time_ms": 2001}, {"memory_bytes": 50 * MIB + 1}):
        assert "must be an integer" in eve.refused("/v1/run", {"code": "1", "limits": limits})
        assert "must be an integer" in eve.refused("/v1/sessions", {"limits": limits})
        assert ada.run("1", limits=limits)["status"] == "ok"
    for path, keys in (("/v1/run", {"code": "1"}), ("/v1/check", {"code": "1"}),
                       ("/v1/sessions", {})):
        assert 'policy: "strict"' in eve.refused(path, {**keys, "policy": "strict"})
    assert eve.run("1", policy="open")["policy"] == "open"


def test_as_many_runs_as_it_may(tenant, keyed):
    code = {"code": "import time; time.sleep(30)", "limits": {"time_ms": 60000}, "detach": True}
    bob = tenant("bob")
    places = [bob.post("/v1/run", code).headers["Location"] for _ in range(2)]
    for answer in (bob.post("/v1/run", code), bob.post("/v1/run", {"code": "1"}),
                   bob.post("/v1/batch", {"runs": [{"code": "1"}]}),
                   bob.post("/v1/check", {"code": "1"})):
        assert answer.status == 429 and "as many runs" in answer.json["detail"]
        assert answer.headers["Retry-After"]
    assert tenant("ada").run("1")["status"] == "ok"
    for place in places:
        assert bob.delete(place).status == 204
    keyed.quiet()
    assert bob.run("1")["status"] == "ok"
    # A batch takes what there is, and its runs have their turns.
    lines = bob.post("/v1/batch", {"runs": [{"code": f"{n}"} for n in range(9)]}).lines
    assert [line["result"]["status"] for line in lines] == ["ok"] * 9
    assert bob.get("/v1/info").json["tenant"]["runs"] == 0


def test_as_many_sessions_as_it_may(tenant):
    bob = tenant("bob")
    first, second = bob.open(), bob.open()
    answer = bob.post(first + "/fork", {"n": 1})
    assert answer.status == 429 and "more sessions than you may" in answer.json["detail"]
    answer = bob.post("/v1/sessions", {})
    assert answer.status == 429 and "as many sessions" in answer.json["detail"]
    bob.delete(first)
    third = bob.open(idle_ttl_ms=1000)
    assert bob.post("/v1/sessions", {}).status == 429
    # One that ended by itself counts no more.
    while bob.get(third).json["state"] != "ended":
        time.sleep(0.2)
    fourth = bob.open()
    bob.delete(second)
    bob.delete(fourth)
    assert bob.get("/v1/info").json["tenant"]["sessions"] == 0


def test_as_many_sessions_as_it_may_of_those_asked_for_at_once(tenant):
    clients = [tenant("bob") for _ in range(8)]
    for _ in range(3):
        answers = at_once([lambda c=client: c.post("/v1/sessions", {}) for client in clients])
        assert sorted(answer.status for answer in answers) == [201] * 2 + [429] * 6
        first, second = (a.headers["Location"] for a in answers if a.status == 201)
        clients[0].delete(second)
        answers = at_once([lambda c=client: c.post(first + "/fork", {"n": 1}) for client in clients])
        made = [a.json["sessions"][0]["id"] for a in answers if a.status == 201]
        assert len(made) == 1 and {a.status for a in answers} <= {201, 409, 429}, answers
        for place in (first, f"/v1/sessions/{made[0]}"):
            assert clients[0].delete(place).status == 204


def test_room_for_a_session_is_given_back(tenant, keyed):
    """By a client that goes away while it is made, and not before that has ended."""
    bob = tenant("bob")

    def leave():
        client = tenant("bob")
        client.connection.request("POST", "/v1/sessions", "{}", client.headers(None, {}))
        time.sleep(0.1)
        client.close()

    def opened():
        answer = bob.post("/v1/sessions", {})
        return answer.headers["Location"] if answer.status == 201 else None
    warden, = keyed.daemon.roles()["warden"]
    with stopped(warden):  # so that nothing comes to be
        for _ in range(4):
            leave()
        time.sleep(0.3)
        bob.connection.timeout = 10
        assert bob.post("/v1/sessions", {}).status == 429
    places = []
    wait_until(lambda: places.append(opened()) or len([p for p in places if p]) == 2)
    assert bob.post("/v1/sessions", {}).status == 429
    for place in filter(None, places):
        assert bob.delete(place).status == 204


def test_sessions_that_ended_are_not_counted_for_ever(tenant):
    """Also where the key has no ceiling, and nobody looks."""
    ada = tenant("ada")
    before = len(ada.get("/v1/sessions").json["sessions"])
    for _ in range(64 - before):
        place = ada.open(idle_ttl_ms=1000)
    assert ada.get("/v1/info").json["tenant"]["sessions"] == 64
    wait_until(lambda: ada.get(place).json["state"] == "ended")
    time.sleep(0.5)
    place = ada.open()
    assert ada.get("/v1/info").json["tenant"]["sessions"] <= before + 2
    ada.delete(place)


def test_many_tenants_at_once(contract, keyed):
    """Each gets its own output, whatever the others do."""
    failed = []

    def work(name):
        client = Client(contract, keyed.port, SECRETS[name])
        try:
            for turn in range(6):
                word = f"{name}-{turn}"
                answer = client.post("/v1/run", {"code": f"print({json.dumps(word)})"})
                assert answer.json["stdout"] == word + "\n", answer
        except Exception as error:
            failed.append(error)
        client.close()

    threads = [threading.Thread(target=work, args=(name,)) for name in ("ada", "eve", "bob") * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
