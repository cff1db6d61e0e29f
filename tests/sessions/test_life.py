# SPDX-License-Identifier: Apache-2.0
"""Sessions of a daemon: who may use them, how long they live, and what is left of them."""
import json
import struct
import threading
import time

import pytest

from conftest import Refused, Session
from harness.wire import Peer, field, numbers, recorded


@pytest.fixture
def daemon(serve):
    return serve({"bare": (1, 2)})


def test_from_another_engine(daemon, attach):
    one, other = attach(daemon), attach(daemon)
    session = one.open()
    session.ok("x = 1\nopen('a', 'w').write('a')")
    seen = Session(other, {"id": session.id})
    result = seen.ok("x += 1\nx")
    assert result["value"]["text/plain"] == "2" and result["files"] == []
    assert result["template"] == "bare" and result["session"]["run"] == 2
    one.close()
    assert seen.value("x") == "2"
    seen.call("end")
    with pytest.raises(Refused) as refused:
        seen.run("x")
    assert refused.value.errno == "EIDRM" and "ended by its client" in refused.value.text


def test_a_question_behind_that_of_one_who_left(daemon, attach):
    """He asked to return to what is not there, while a checkpoint is made that takes long."""
    one, other = attach(daemon), attach(daemon)
    session = one.open(policy="open")
    session.ok("import os, time\nslow = 0\nos.register_at_fork(before=lambda: time.sleep(slow))")
    session.ok("slow = 1")
    one.process.stdin.write(json.dumps(
        {"call": "rollback", "id": session.id, "name": "typo"}).encode() + b"\n")
    one.process.stdin.flush()
    time.sleep(0.3)
    one.process.kill()
    time.sleep(0.1)
    seen = Session(other, {"id": session.id})
    seen.call("undo")
    assert seen.value("slow") == "0"
    seen.call("end")


def test_list_and_info(daemon, attach):
    tool = attach(daemon)
    assert tool.call("list") == []
    sessions = [tool.open(policy="open") for _ in range(3)]
    assert sorted(i["id"] for i in tool.call("list")) == sorted(s.id for s in sessions)
    sessions[0].ok("x = bytearray(20 << 20)")
    info = sessions[0].call("info")
    assert info["runs"] == 1 and info["memory_bytes"] > 20 << 20 and not info["busy"]
    assert info["template"] == "bare" and info["ended"] == ""
    sessions[1].call("end")
    assert len(tool.call("list")) == 2
    assert "ended by its client" in sessions[1].call("info")["ended"]


def test_no_such_session(daemon, attach):
    tool = attach(daemon)
    for name in ("ses_nosuchsession", "x" * 100, ""):
        with pytest.raises(Refused) as refused:
            Session(tool, {"id": name}).run("1")
        assert refused.value.errno == "ENOENT", refused.value
        with pytest.raises(Refused) as refused:
            Session(tool, {"id": name}).call("end")
        assert refused.value.errno == "ENOENT"


def test_names_are_not_alike(daemon, attach):
    tool = attach(daemon)
    names = {tool.open().id for _ in range(5)}
    assert len(names) == 5 and all(len(name) == 30 for name in names)


def test_one_run_at_a_time(daemon, attach):
    tool, other = attach(daemon), attach(daemon)
    session = tool.open()
    session.ok("order = []")
    thread = threading.Thread(target=lambda: session.ok(
        "import time\norder.append(1)\ntime.sleep(1)\norder.append(2)"))
    thread.start()
    time.sleep(0.4)
    seen = Session(other, {"id": session.id})
    with pytest.raises(Refused, match="a run goes on"):
        seen.call("undo")
    assert seen.call("info")["busy"] is True
    assert seen.value("order") == "[1, 2]"
    thread.join()


def test_an_interrupt_from_elsewhere(daemon, attach):
    tool, other = attach(daemon), attach(daemon)
    session = tool.open()
    results = []
    thread = threading.Thread(target=lambda: results.append(
        session.run("x = 1\nimport time\ntime.sleep(1000)", time_ms=60000)))
    thread.start()
    time.sleep(0.5)
    seen = Session(other, {"id": session.id})
    seen.call("interrupt")
    thread.join(20)
    assert results[0]["status"] == "cancelled", results
    assert seen.value("x") == "1"
    with pytest.raises(Refused, match="no run goes on"):
        seen.call("interrupt")


def test_a_client_that_goes_away(daemon, attach):
    """Its run is ended; what was there before is there for the next."""
    tool, other = attach(daemon), attach(daemon)
    session = tool.open()
    session.ok("x = 1")
    threading.Thread(target=lambda: pytest.raises(
        AssertionError, session.run, "x = 2\nprint('noise' * 1000)\nimport time\ntime.sleep(1000)",
        time_ms=60000), daemon=True).start()
    time.sleep(0.5)
    tool.process.kill()
    result = Session(other, {"id": session.id}).ok("x")
    assert (result["value"]["text/plain"], result["stdout"]) == ("1", "")


def test_ended_while_a_run_goes_on(daemon, attach):
    tool, other = attach(daemon), attach(daemon)
    session = tool.open()
    results = []
    thread = threading.Thread(target=lambda: results.append(
        session.run("import time\ntime.sleep(1000)", time_ms=60000)))
    thread.start()
    time.sleep(0.5)
    Session(other, {"id": session.id}).call("end")
    thread.join(20)
    assert results[0]["status"] == "cancelled", results


def test_time_is_over(serve, attach):
    tool = attach(serve({"bare": (1, 1)}, session_idle="1s", session_life="60s"))
    idle, used, short = tool.open(), tool.open(idle_ms=60000), tool.open(life_ms=2000)
    for _ in range(8):
        if _ < 3:
            short.ok("1")
        time.sleep(0.5)
    with pytest.raises(Refused, match="was not used for"):
        idle.run("1")
    with pytest.raises(Refused, match="its time was over|was not used for"):
        short.run("1")
    assert used.value("1") == "1"


@pytest.mark.full
def test_one_ends_before_more_than_are_remembered(serve, attach):
    """It stands before all that ended, of which the oldest is forgotten with its own end."""
    daemon = serve({"bare": (1, 1)}, session_idle="60s")
    tool = attach(daemon)
    before = daemon.roles()["warden"]
    short = tool.open(life_ms=1000 + 50 * 257)
    for _ in range(257):
        tool.open().call("end")
    with pytest.raises(Refused, match="its time was over"):
        for _ in range(600):
            short.run("1")
            time.sleep(0.1)
    assert tool.open().value("1") == "1" and daemon.roles()["warden"] == before


def test_so_many_and_no_more(serve, attach):
    tool = attach(serve({"bare": (1, 1)}, sessions=2))
    first, _ = tool.open(), tool.open()
    with pytest.raises(Refused, match="2 sessions already") as refused:
        tool.open()
    assert refused.value.errno == "EBUSY"
    first.call("end")
    tool.open()


def test_what_is_left_behind_may_not_work_on(serve, attach):
    tool = attach(serve({"bare": (1, 1)}))
    session = tool.open()
    session.ok("import threading\ndef spin():\n    while True: pass\n"
               "threading.Thread(target=spin, daemon=True).start()")
    deadline = time.monotonic() + 60 * tool.product.SLOW
    while not session.call("info")["ended"] and time.monotonic() < deadline:
        time.sleep(0.5)
    assert "too much of the processor" in session.call("info")["ended"]


def test_a_run_is_not_begun_for_a_client_that_is_gone(serve, attach, product, place):
    """The one before has ended, and its files are still the client's to collect."""
    daemon = serve({"bare": (1, 1)})
    session = attach(daemon).open()
    acquire = recorded(product, place, "x = 1")
    with Peer(daemon.socket) as peer:
        for number in (1, 2):
            whole = acquire(number)
            body = whole[16:] + field("SESSION", session.id)
            peer.say(whole[:4] + struct.pack("<IQ", len(body), number) + body)
        while peer.hear()[:2] != (numbers()["ENDED"], 1):
            pass
    result = session.ok("x")
    assert result["session"]["run"] == 2 and result["session"]["restored"] is False, result
    assert result["value"]["text/plain"] == "1"


@pytest.mark.full
def test_what_is_asked_for_is_not_what_is_left_behind(serve, attach):
    tool = attach(serve({"bare": (1, 1)}))
    session = tool.open(memory_bytes=600 << 20)
    # What is mapped may have changed: it is copied each time.
    session.ok("import mmap\nfile = open('large', 'w+b')\nfile.truncate(40 << 20)\n"
               "held = mmap.mmap(file.fileno(), 0)\nheld[:] = bytes(40 << 20)")
    for _ in range(200):
        session.call("checkpoint", name="here")
    time.sleep(1.5)
    assert session.value("len(held)") == str(40 << 20)


def test_the_daemon_ends_and_so_do_they(serve, attach):
    daemon = serve({"bare": (1, 1)})
    session = attach(daemon).open()
    session.ok("import subprocess\nsubprocess.Popen(['sleep', '1000'])")
    assert daemon.stop() == 0


def test_the_warden_is_killed(serve, attach):
    import os
    import signal
    daemon = serve({"bare": (1, 1)})
    tool = attach(daemon)
    session = tool.open()
    os.kill(daemon.roles()["warden"][0], signal.SIGKILL)
    daemon.says("serving on", times=2)
    with pytest.raises(Refused):
        session.run("1")
    assert tool.open().value("1") == "1"
