# SPDX-License-Identifier: Apache-2.0
"""How connections live: ahead, half closed, slow, idle, unread, gone, many."""
import contextlib
import json
import os
import resource
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from harness.product import SLOW
from harness.web import Malformed, listen_to, request, responses, wait_until

CLOSE = {"Connection": "close"}


def run_body(code, **more):
    limit = {"time_ms": 60000, "cpu_ms": 60000}
    return json.dumps({"code": code, "limits": limit, "policy": "open", **more}).encode()


def run_request(code, headers=(), **more):
    return request("POST", "/v1/run", run_body(code, **more),
                   {"Content-Type": "application/json", **dict(headers)})


def running(web):
    return web.daemon.status()["running"]


# -- several requests ---------------------------------------------------------------------------

def test_requests_sent_ahead_are_answered_in_order(web):
    data = b"".join(request(path=path) for path in ("/healthz", "/one", "/readyz", "/two"))
    data += run_request("print(55)") + request(path="/three", headers=CLOSE)
    heard = web.raw(data)
    assert heard.statuses == [200, 404, 200, 404, 200, 404]
    assert heard.responses[4].json["stdout"] == "55\n"


def test_a_hundred_requests_on_one_connection(web):
    with contextlib.closing(web.connect()) as connection:
        for _ in range(100):
            connection.sendall(request())
            heard = listen_to(connection, until=b"ok\n")
            assert [r.status for r in responses(heard.raw)] == [200]


def test_more_ahead_than_is_kept(web):
    """What a client sends ahead beyond the server's patience waits in the socket."""
    count = 3000
    data = b"".join(request(path=f"/{i}") for i in range(count)) + request(headers=CLOSE)
    with contextlib.closing(web.connect()) as connection:
        sender = threading.Thread(target=connection.sendall, args=(data,), daemon=True)
        sender.start()
        heard = listen_to(connection, 60)
        sender.join()
    assert [r.status for r in responses(heard.raw)] == [404] * count + [200]


def test_continue_is_said_before_a_body(web):
    with contextlib.closing(web.connect()) as connection:
        body = b'{"code":"1"}'
        whole = request("POST", "/v1/check", body, {"Expect": "100-continue", **CLOSE,
                                                    "Content-Type": "application/json"})
        connection.sendall(whole[:-len(body)])
        heard = listen_to(connection, until=b"\r\n\r\n")
        assert heard.raw == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert [r.status for r in responses(listen_to(connection).raw)] == [200]


def test_no_continue_for_what_is_refused(web):
    """A body that is too large is not even sent."""
    heard = web.raw(b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                    b"Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n")
    assert [r.status for r in heard.responses] == [413] and heard.closed


def test_a_body_in_chunks_that_is_too_large(web):
    head = (b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n")
    piece = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    with contextlib.closing(web.connect()) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(head)
            for _ in range(200):
                connection.sendall(piece)
        heard = listen_to(connection)
    if not heard.reset:  # a client that sends and sends may get no more than that
        assert [r.status for r in responses(heard.raw)] == [413]


# -- an end that is half an end -----------------------------------------------------------------

def test_a_client_that_ends_its_side_gets_its_answers(web):
    heard = web.raw(request() + run_request("print(55)"), half_close=True)
    assert heard.statuses == [200, 200] and heard.closed
    assert heard.responses[-1].json["stdout"] == "55\n"


def test_a_request_that_is_cut_short(web):
    for data in (request()[:-2], request()[:20], request("POST", "/v1/check", b"12345")[:-1]):
        heard = web.raw(data, half_close=True)
        assert heard.statuses == [400] and heard.closed
    heard = web.raw(b"", half_close=True)
    assert heard.raw == b"" and heard.closed


@pytest.mark.parametrize("how", ["close", "reset", "half"])
def test_a_client_that_goes_cancels_its_run(web, how):
    """A run that would go on for a minute ends as soon as nobody waits for it; with half an end
    somebody still does."""
    connection = web.connect()
    connection.sendall(run_request("import time; time.sleep(4 if %r == 'half' else 60); print(55)"
                                   % how))
    wait_until(lambda: running(web) == 1)
    began = time.monotonic()
    if how == "half":
        connection.shutdown(socket.SHUT_WR)
        heard = listen_to(connection, 60)
        found = responses(heard.raw)
        assert [r.status for r in found] == [102, 200] and found[-1].json["stdout"] == "55\n"
    elif how == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()
    wait_until(lambda: running(web) == 0)
    assert time.monotonic() - began < 30 * SLOW
    assert web.ask().status == 200


# -- slow clients -------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def hasty(product):
    """A server without patience."""
    from harness.daemon import configuration
    from harness.web import Web
    place = product.directory("hasty")
    server = Web(product, place, configuration(
        {"bare": (1, 2)}, header_time="400ms", body_time="600ms", keep_alive="800ms",
        unread_time="500ms"))
    yield server
    server.close()


def drip(web, data, seconds):
    """Sends a byte now and then, until the server has enough of it."""
    with contextlib.closing(web.connect()) as connection:
        connection.settimeout(seconds)
        heard, began = b"", time.monotonic()
        for i in range(len(data)):
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(data[i:i + 1])
            try:
                piece = connection.recv(65536)
                heard += piece
                if not piece:
                    return responses(heard), time.monotonic() - began
            except socket.timeout:
                pass
            except ConnectionResetError:
                return responses(heard), time.monotonic() - began
    raise AssertionError("the server waits and waits")


def test_a_header_that_drips_in(hasty):
    found, _ = drip(hasty, request(headers={"X": "a" * 1000}), 0.1)
    assert [r.status for r in found] == [408]
    assert found[0].headers["connection"] == "close"


def test_a_body_that_drips_in(hasty):
    found, _ = drip(hasty, request("POST", "/v1/check", b" " * 1000)[:-900] + b"x" * 900, 0.1)
    assert [r.status for r in found] == [408]


def test_chunks_that_drip_in(hasty):
    data = (b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" +
            b"1\r\na\r\n" * 200)
    found, _ = drip(hasty, data, 0.1)
    assert [r.status for r in found] == [408]


def test_a_connection_without_a_request(hasty):
    with contextlib.closing(hasty.connect()) as connection:
        heard = listen_to(connection, 30)
    assert heard.closed and heard.raw == b""
    with contextlib.closing(hasty.connect()) as connection:
        connection.sendall(request())
        heard = listen_to(connection, 30)
    assert heard.closed and [r.status for r in responses(heard.raw)] == [200]


LONG = "/page/codemirror.js"  # hundreds of kilobytes, for anybody


def test_a_client_that_asks_and_does_not_read(web):
    """Of its requests no more are begun until it takes what it asked for; then all are."""
    length = len(web.ask(LONG).body)
    assert length > 300_000
    count, before = 40, memory_kib(web.pid)
    with contextlib.closing(web.connect()) as connection:
        connection.sendall(request(path=LONG) * (count - 1) + request(path=LONG, headers=CLOSE))
        time.sleep(0.5)
        assert memory_kib(web.pid) - before < 4 * 1024
        assert web.ask().status == 200
        heard = listen_to(connection, 60)
    found = responses(heard.raw)
    assert [(r.status, len(r.body)) for r in found] == [(200, length)] * count


def test_one_that_ends_its_side_gets_all_that_it_asked_for(web):
    with contextlib.closing(web.connect()) as connection:
        connection.sendall(request(path=LONG) * 20)
        connection.shutdown(socket.SHUT_WR)
        time.sleep(0.2)
        found = responses(listen_to(connection, 60).raw)
    assert [r.status for r in found] == [200] * 20


def test_a_client_that_reads_slowly_gets_all_of_it(hasty):
    """Longer than an idle connection, and one from which nothing is read, is kept."""
    with contextlib.closing(hasty.connect(receive_bytes=4096)) as connection:
        connection.sendall(request(path=LONG))
        heard, began = b"", time.monotonic()
        while True:
            heard += connection.recv(16384)
            with contextlib.suppress(Malformed):
                response, = responses(heard)
                break
            time.sleep(0.02)
        assert time.monotonic() - began > 1  # longer than an idle one is kept
    assert response.status == 200


def test_what_is_being_sent_is_sent_when_it_ends(serve_web):
    web = serve_web()
    with contextlib.closing(web.connect(receive_bytes=4096)) as connection:
        connection.sendall(request(path=LONG))
        heard = connection.recv(1024)
        web.daemon.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        heard += listen_to(connection, 60).raw
    response, = responses(heard)
    assert response.status == 200
    assert web.daemon.wait(20) == 0


def test_a_client_that_does_not_read(hasty):
    """Its connection ends, and the server's memory is not where the output waits."""
    big = run_request("print('x' * 8_000_000)", headers=CLOSE)
    big = big.replace(b'"time_ms"', b'"output_bytes": 16777216, "time_ms"')
    body = big.split(b"\r\n\r\n", 1)[1]
    big = request("POST", "/v1/run", body, {"Content-Type": "application/json", **CLOSE})
    with contextlib.closing(hasty.connect(receive_bytes=4096)) as connection:
        connection.sendall(big)
        wait_until(lambda: hasty.daemon.status()["runs"] >= 1 and running(hasty) == 0)
        wait_until(lambda: b"execpy_http_connections 1\n" in hasty.ask("/metrics").body, 30)
        heard = listen_to(connection)
    assert len(heard.raw) < 8_000_000
    # The control: who reads gets all of it, however long that takes.
    answer = hasty.ask("/v1/run", "POST", body, {"Content-Type": "application/json"}, seconds=60)
    assert len(answer.json["stdout"]) == 8_000_001


# -- many ---------------------------------------------------------------------------------------

def memory_kib(pid):
    text = Path(f"/proc/{pid}/smaps_rollup").read_text() if os.geteuid() == 0 else \
        Path(f"/proc/{pid}/status").read_text()
    name = "Pss_Anon:" if os.geteuid() == 0 else "VmRSS:"
    return int(text.split(name)[1].split()[0])


def test_idle_connections_cost_little(serve_web, full):
    """100 MB at most for 10,000: so much for each."""
    count, hard = (10000 if full else 200), resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < count + 200:
        pytest.skip(f"this host has no {count} descriptors for a process")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    web = serve_web(keep_alive="1h")
    web.ask()
    before = memory_kib(web.pid)
    with contextlib.ExitStack() as open_ones:
        for i in range(count):
            connection = open_ones.enter_context(contextlib.closing(web.connect()))
            if i % 2:  # one that asked, and one that never did
                connection.sendall(request())
                assert b"ok" in listen_to(connection, until=b"ok\n").raw
        assert b"execpy_http_connections %d\n" % (count + 1) in web.ask("/metrics").body
        cost = (memory_kib(web.pid) - before) * 1024
        assert cost <= 10_000 * count + (4 << 20), f"{cost / count:.0f} bytes a connection"
        assert web.ask().status == 200


def test_no_more_connections_than_may_be(serve_web):
    """One more waits in the kernel until another ends."""
    web = serve_web(connections=5)
    with contextlib.ExitStack() as open_ones:
        held = [open_ones.enter_context(contextlib.closing(web.connect())) for _ in range(5)]
        for connection in held:
            connection.sendall(request())
            assert b"ok" in listen_to(connection, until=b"ok\n").raw
        waiting = open_ones.enter_context(contextlib.closing(web.connect()))
        waiting.sendall(request(headers=CLOSE))
        assert listen_to(waiting, 0.3 / SLOW).raw == b""
        held[0].close()
        assert [r.status for r in responses(listen_to(waiting).raw)] == [200]


def test_runs_side_by_side(web):
    """While one client's run sleeps others are answered."""
    with contextlib.closing(web.connect()) as sleeper:
        sleeper.sendall(run_request("import time; time.sleep(1.5); print('slept')", headers=CLOSE))
        wait_until(lambda: running(web) == 1)
        assert web.ask("/v1/run", "POST", run_body("print(55)"),
                       {"Content-Type": "application/json"}).json["stdout"] == "55\n"
        assert listen_to(sleeper, 0.01).raw == b""
        assert responses(listen_to(sleeper, 60).raw)[0].json["stdout"] == "slept\n"
