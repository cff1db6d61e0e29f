# SPDX-License-Identifier: Apache-2.0
"""The process that serves HTTP: confined, watched, started again, ended; and what it tells."""
import contextlib
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from harness.host import need
from harness.daemon import configuration
from harness.product import SLOW
from harness.web import listen_to, request, responses, wait_until

JSON = {"Content-Type": "application/json"}


def run_body(code, **more):
    return json.dumps({"code": code, "policy": "open",
                       "limits": {"time_ms": 60000, "cpu_ms": 60000}, **more}).encode()


def ask_run(web, code, **more):
    return web.ask("/v1/run", "POST", run_body(code, **more), JSON, seconds=60)


def status_of(pid):
    return dict(re.findall(r"^(\w+):[ \t]*(.*)$", Path(f"/proc/{pid}/status").read_text(),
                           re.MULTILINE))


# -- its confinement ----------------------------------------------------------------------------

def test_it_is_confined(web, product):
    """Seen from outside; the daemon beside it shows that the same words can say otherwise."""
    server, daemon = status_of(web.pid), status_of(web.daemon.pid)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(server[name], 16) == 0, name
    assert int(daemon["CapBnd"], 16) != 0
    assert (server["Seccomp"], server["NoNewPrivs"], server["Threads"]) == ("2", "1", "1")
    assert (daemon["Seccomp"], daemon["NoNewPrivs"]) == ("0", "0")
    uids, groups = set(server["Uid"].split()), server["Groups"].split()
    if product.uid is None and os.geteuid() == 0:
        assert len(uids) == 1 and int(uids.pop()) > 1_900_000_000 and not groups
        assert set(daemon["Uid"].split()) == {"0"}
    else:
        assert uids == set(daemon["Uid"].split())


def test_it_sees_no_files(web):
    need("root")
    root, here = (os.readlink(f"/proc/{web.pid}/{name}") for name in ("root", "cwd"))
    assert root == here and re.fullmatch(r"/proc/\d+/fdinfo", root), root
    with pytest.raises(OSError):  # that of a process which is no more
        os.listdir(f"/proc/{web.pid}/root")
    assert os.listdir(f"/proc/{web.daemon.pid}/root")
    # Neither files nor directories are open, but what it was given.
    for name in os.listdir(f"/proc/{web.pid}/fd"):
        target = os.readlink(f"/proc/{web.pid}/fd/{name}")
        assert re.match(r"(socket|anon_inode|pipe):|/dev/null$", target), target


def test_nobody_of_its_user_looks_into_it(web, product):
    """It cannot be dumped: its memory is not even for its own user."""
    need("root")
    uid = int(status_of(web.pid)["Uid"].split()[0])
    read = ["setpriv", f"--reuid={uid}", "--clear-groups", "--", "cat", f"/proc/{web.pid}/maps"]
    done = subprocess.run(read, capture_output=True, check=False)
    assert done.returncode != 0 and done.stdout == b"", done
    # The control: a process of that user which may be.
    sleeper = subprocess.Popen(["setpriv", f"--reuid={uid}", "--clear-groups", "--", "sleep", "60"])
    try:
        wait_until(lambda: status_of(sleeper.pid)["Name"] == "sleep")
        read[-1] = f"/proc/{sleeper.pid}/maps"
        assert b"sleep" in subprocess.run(read, capture_output=True, check=True).stdout
    finally:
        sleeper.kill()
        sleeper.wait()


def test_files_of_cells_are_read_all_the_same(web):
    """Workspaces belong to the id that the warden's cells have; files that only they may read."""
    answer = ask_run(web, "import os; open('a.txt','w').write('x'*70000); os.chmod('a.txt', 0o600)",
                     return_files=True)
    assert answer.json["status"] == "ok", answer.json
    assert [(f["path"], f["size"]) for f in answer.json["files"]] == [("a.txt", 70000)]


# -- its life -----------------------------------------------------------------------------------

def test_it_is_started_again(serve_web):
    web = serve_web()
    port, before = web.address[1], web.pid
    os.kill(before, signal.SIGKILL)
    assert web.daemon.says("the HTTP server ended; it is started again")
    assert web.daemon.says("serving HTTP on", 2)
    assert web.pid != before and web.address[1] == port
    assert ask_run(web, "print(55)").json["stdout"] == "55\n"


def test_a_warden_that_ends(serve_web):
    """The server stays, and finds the next one."""
    web = serve_web()
    before = web.pid
    assert ask_run(web, "print(1)").json["status"] == "ok"
    for pid in web.daemon.roles()["warden"]:
        os.kill(pid, signal.SIGKILL)
    assert web.daemon.says("the warden ended")
    wait_until(lambda: web.ask("/readyz").status == 200 and
               ask_run(web, "print(2)").json["stdout"] == "2\n")
    assert web.pid == before


def test_a_daemon_that_is_killed(serve_web):
    """Its server does not outlive it."""
    web = serve_web()
    server = web.pid
    assert web.ask().status == 200
    web.daemon.process.kill()
    wait_until(lambda: not Path(f"/proc/{server}").exists() or
               status_of(server)["State"].startswith("Z"))
    with pytest.raises(ConnectionRefusedError):
        web.connect()


def test_its_end(serve_web):
    """SIGTERM: no connection is taken, none that is idle stays, a run that goes on is answered,
    a new one is not begun."""
    web = serve_web()
    with contextlib.ExitStack() as open_ones:
        idle, busy, late = (open_ones.enter_context(contextlib.closing(web.connect()))
                            for _ in range(3))
        idle.sendall(request())
        listen_to(idle, until=b"ok\n")
        busy.sendall(request("POST", "/v1/run", run_body("import time; time.sleep(2); print(55)"),
                             JSON))
        late.sendall(request("POST", "/v1/run", run_body("print(1)"), JSON)[:-1])
        wait_until(lambda: web.daemon.status()["running"] == 1)
        web.daemon.process.send_signal(signal.SIGTERM)
        assert listen_to(idle).closed
        with pytest.raises(ConnectionRefusedError):
            web.connect()
        late.sendall(b"}")
        refused = responses(listen_to(late).raw)
        assert [r.status for r in refused] == [503]
        assert refused[0].headers["retry-after"] and refused[0].headers["connection"] == "close"
        heard = listen_to(busy, 60)
        answer = responses(heard.raw)
        assert answer[0].json["stdout"] == "55\n" and heard.closed
        assert answer[0].headers["connection"] == "close"
    assert web.daemon.process.wait(30 * SLOW) == 0


def test_runs_that_do_not_end_are_ended(serve_web):
    """At the daemon's deadline; the client is told."""
    web = serve_web()
    with contextlib.closing(web.connect()) as connection:
        connection.sendall(request("POST", "/v1/run", run_body("import time; time.sleep(50)"), JSON))
        wait_until(lambda: web.daemon.status()["running"] == 1)
        web.daemon.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        web.daemon.process.send_signal(signal.SIGTERM)
        heard = listen_to(connection, 30)
    assert heard.closed or heard.reset
    assert web.daemon.process.wait(30 * SLOW) == 0
    assert not web.daemon.roles()["server"]


def test_sockets_of_a_service_manager(product, watch, place):
    """sd_listen_fds(3): the daemon listens on what it was handed over."""
    config = place / "c.yaml"
    config.write_text(configuration({"bare": (1, 1)}))
    product.give(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        # setpriv and the like, if the mode has them, keep descriptor and process.
        script = ("import os, sys; os.dup2(int(sys.argv[1]), 3);"
                  "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1');"
                  "os.execvp(sys.argv[2], sys.argv[2:])")
        process = subprocess.Popen(
            ["/usr/bin/python3", "-c", script, str(listener.fileno()), *product.prefix(),
             str(product.binary), "serve", "--socket", str(place / "s"), "--config", str(config)],
            stderr=subprocess.PIPE, pass_fds=[listener.fileno()], text=True, cwd=place,
            env=product.environment(EXECPY_SOCKET=""))
        try:
            for line in process.stderr:
                if "serving HTTP on" in line:
                    break
            assert f"http://127.0.0.1:{port}" in line, line
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(request(headers={"Connection": "close"}))
                assert [r.status for r in responses(listen_to(connection).raw)] == [200]
        finally:
            process.terminate()
            process.communicate()


# -- what it tells ------------------------------------------------------------------------------

def metrics(web):
    answer = web.ask("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found, kinds = {}, {}
    for line in answer.body.decode().splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in kinds, "a metric that is described twice"
            kinds[name] = kind
        elif not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            assert re.fullmatch(r'[a-z_]+(\{[a-z]+="[^"]*"\})?', name), line
            base = re.sub(r"\{.*", "", name)
            assert base in kinds or re.sub(r"_(bucket|sum|count)$", "", base) in kinds, line
            assert name not in found
            found[name] = float(value)
    return found


def test_metrics(web):
    before = metrics(web)
    assert ask_run(web, "print(1)").json["status"] == "ok"
    assert ask_run(web, "1/0").json["status"] == "error"
    after = metrics(web)
    for name, more in (('execpy_runs_total{status="ok"}', 1),
                       ('execpy_runs_total{status="error"}', 1),
                       ('execpy_runs_total{status="timeout"}', 0),
                       ("execpy_run_duration_seconds_count", 2),
                       ('execpy_run_duration_seconds_bucket{le="+Inf"}', 2),
                       ("execpy_daemon_runs_total", 2)):
        assert after[name] - before[name] == more, name
    assert after["execpy_run_duration_seconds_sum"] > before["execpy_run_duration_seconds_sum"]
    assert after["execpy_daemon_up"] == 1 and after['execpy_pool_parked{template="bare"}'] >= 0
    buckets = [after[name] for name in after if name.startswith("execpy_run_duration_seconds_b")]
    assert buckets == sorted(buckets)


def test_health(web):
    for path, body in (("/healthz", b"ok\n"), ("/readyz", b"ready\n")):
        answer = web.ask(path)
        assert (answer.status, answer.body) == (200, body)
        assert answer.headers["cache-control"] == "no-store"


def lines_of(path):
    lines = path.read_text().splitlines()
    for line in lines:
        assert re.fullmatch(r"[ -~]+|.*[^\x00-\x1f\x7f-\x9f].*", line) and "\x1b" not in line, line
    return [json.loads(line) for line in lines]


def test_logs(serve_web, product, place):
    """One line of JSON for each request and each run; nothing that was sent gets into a terminal."""
    access, audit = place / "access.log", place / "audit.log"
    web = serve_web(log=access, audit=audit)
    code = "print('\x1b[31m red'); raise ValueError('\x1b]0;title\x07')"
    web.ask("/%1b%5b31m", headers={"User-Agent": "agent/1.0 \"x\" \\ é".encode().decode("latin-1")})
    result = ask_run(web, code).json
    web.raw(b"\x16\x03\x01 nonsense\r\n\r\n")
    wait_until(lambda: len(access.read_text().splitlines()) == 3)
    strange, run, nonsense = lines_of(access)
    assert (strange["method"], strange["path"], strange["status"]) == ("GET", "/%1b%5b31m", 404)
    assert (run["path"], run["status"], run["key"]) == ("/v1/run", 200, "everybody")
    assert run["ms"] > 0 and run["received_bytes"] > 0 and run["sent_bytes"] > 0
    assert (nonsense["method"], nonsense["status"]) == (None, 400)
    told, = lines_of(audit)
    assert told["code_sha256"] == hashlib.sha256(code.encode()).hexdigest()
    assert told["code_bytes"] == len(code.encode())
    assert (told["id"], told["status"], told["key"]) == (result["id"], "error", "everybody")
    assert (told["verdict"], told["policy"]) == ("allow", "open")
    assert code not in audit.read_text()
    for path in (access, audit):
        assert path.stat().st_mode & 0o077 == 0


LOOP = "while True: pass  # "
LEFT = {"run": ("/v1/run", lambda code: {"code": code}),
        "batch run": ("/v1/batch", lambda code: {"runs": [{"code": code}]}),
        "piston execute": ("/api/v2/execute", lambda code: {
            "language": "python", "version": "*", "files": [{"content": code}]}),
        "fusion run_code": ("/run_code", lambda code: {"language": "python", "code": code}),
        "e2b execute": ("/execute", lambda code: {"code": code})}


def test_a_run_that_is_left_is_in_the_records(serve_web, place):
    """Its client has gone away: what ran is known all the same."""
    audit = place / "left.log"
    web = serve_web(audit=audit, compat="[piston, fusion, e2b]")
    for kind, (path, body) in LEFT.items():
        code = LOOP + kind
        with contextlib.closing(web.connect()) as connection:
            connection.sendall(request("POST", path, json.dumps(body(code)).encode(),
                                       {"Content-Type": "application/json"}))
            wait_until(lambda: web.cells() == 1)
        web.quiet()
        digest = hashlib.sha256(code.encode()).hexdigest()
        told = lambda: [line for line in lines_of(audit) if line["code_sha256"] == digest]
        wait_until(told, 5)
        line, = told()
        assert (line["kind"], line["status"], line["key"]) == (kind, "cancelled", "everybody")
        assert line["id"].startswith("run_") and line["policy"] and line["template"]
        assert bool(line["session"]) == (kind == "e2b execute")
    metrics = web.ask("/metrics").body.decode()
    assert f'execpy_runs_total{{status="cancelled"}} {len(LEFT)}' in metrics
    # What nobody left is told of once.
    assert ask_run(web, "1").json["status"] == "ok"
    assert len(lines_of(audit)) == len(LEFT) + 1


def test_logs_are_opened_again(serve_web, place):
    """At SIGHUP, as those who rotate them expect."""
    access = place / "access.log"
    web = serve_web(log=access)
    web.ask("/one")
    access.rename(place / "old.log")
    web.daemon.process.send_signal(signal.SIGHUP)
    assert web.daemon.says("serving on", 2)
    wait_until(lambda: web.ask("/two").status == 404 and access.exists() and
               access.read_text().count("/two") > 0)
    assert "/one" in (place / "old.log").read_text()


def test_a_reload_that_fails_leaves_nothing_of_it(serve_web):
    """Neither at once nor in the next: hosts of a configuration that was not taken are none."""
    web = serve_web()
    text = web.daemon.config.read_text()
    ask = lambda host: web.ask("/v1/sessions", host=host).status
    assert ask("old.example") == ask("new.example") == 403
    web.daemon.config.write_text("hosts: [old.example]\nlog: /nowhere/at/all\n" + text)
    web.daemon.process.send_signal(signal.SIGHUP)
    assert web.daemon.says("/nowhere/at/all")
    assert ask("old.example") == ask("new.example") == 403
    web.daemon.config.write_text("hosts: [new.example]\n" + text)
    web.daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: ask("new.example") == 200)
    assert ask("old.example") == 403


def test_a_log_on_stderr(serve_web):
    web = serve_web(log="'-'")
    web.ask("/told")
    assert json.loads(web.daemon.says('"/told"'))["status"] == 404


def test_a_full_disk_is_counted(serve_web):
    """Lines that no log takes are counted; what is asked is answered all the same."""
    if not Path("/dev/full").exists():
        pytest.skip("this host has no /dev/full")
    web = serve_web(log="/dev/full")
    assert web.ask().status == 200
    assert metrics(web)["execpy_log_lines_lost_total"] >= 1
