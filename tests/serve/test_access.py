# SPDX-License-Identifier: Apache-2.0
"""Who may ask: keys and what they allow, names of the host, pages of other sites, encryption."""
import hashlib
import json
import re
import signal
import ssl
import stat
import subprocess

import pytest

from harness.web import listen_to, request, wait_until

RUN = json.dumps({"code": "print(55)", "policy": "open"}).encode()
JSON = {"Content-Type": "application/json"}


def new_key(product, place, name="alice", file="keys.yaml"):
    done = product.execute("serve", "--new-key", name, "--keys", place / file, cwd=place)
    assert done.returncode == 0, str(done)
    return done.out.strip()


def keys_file(place, product, entries):
    """{name: (key, lines)} as a file."""
    path = place / "keys.yaml"
    text = "keys:\n"
    for name, (key, more) in entries.items():
        text += f"  - name: {name}\n    sha256: {hashlib.sha256(key.encode()).hexdigest()}\n"
        text += "".join(f"    {line}\n" for line in more)
    path.write_text(text)
    product.give(path)
    return path


# -- where it listens ---------------------------------------------------------------------------

@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "10.255.255.254:0"])
def test_without_keys_nobody_outside_is_served(product, watch, place, address):
    done = product.execute("serve", "--socket", place / "s", "--listen", address, cwd=place,
                           env={"EXECPY_SOCKET": ""})
    assert done.returncode == 125, str(done)
    assert "without keys HTTP is served on loopback or a unix socket only" in done.err
    assert not (place / "s").exists()


@pytest.mark.parametrize("address, word", [
    ("8765", "is no address"), ("localhost", "is no address"), ("example.com:80", "IP address"),
    ("127.0.0.1:65536", "is no address"), ("127.0.0.1:-1", "is no address"),
    ("::1:80", "IP address"), ("unix:", "are possible"), ("unix:" + "x" * 200, "are possible")])
def test_addresses_that_are_none(product, watch, place, address, word):
    done = product.execute("serve", "--socket", place / "s", "--listen", address, cwd=place,
                           env={"EXECPY_SOCKET": ""})
    assert done.returncode == 125 and word in done.err, str(done)


def test_a_port_that_is_taken(serve_web, product, place):
    web = serve_web()
    done = product.execute("serve", "--socket", place / "other", "--listen",
                           f"127.0.0.1:{web.address[1]}", cwd=place, env={"EXECPY_SOCKET": ""})
    assert done.returncode == 125 and "listens there already; --listen" in done.err, str(done)


def test_several_places(serve_web, place):
    web = serve_web(listen=("127.0.0.1:0", f"unix:{place}/web", "[::1]:0"))
    assert [where.split(":")[0] for where in web.where] == ["http", "unix", "http"]
    socket = place / "web"
    assert stat.S_IMODE(socket.lstat().st_mode) == 0o600
    assert web.ask(path_of_socket=socket, host="any.name").status == 200
    port = int(web.where[2].rsplit(":", 1)[1])
    web.address = ("::1", port)
    assert web.ask(host=f"[::1]:{port}").status == 200
    web.daemon.stop()
    assert not socket.exists()


def test_the_configuration_says_where(serve_web, place):
    web = serve_web(listen=(), text=f'listen: ["unix:{place}/web", "127.0.0.1:0"]\n')
    assert web.ask(path_of_socket=place / "web").status == 200
    assert web.ask().status == 200


# -- keys ---------------------------------------------------------------------------------------

def test_a_new_key(product, watch, place):
    key = new_key(product, place)
    assert re.fullmatch(r"execpy_[A-Za-z0-9_-]{43}", key)
    path = place / "keys.yaml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert key not in text and hashlib.sha256(key.encode()).hexdigest() in text
    other = new_key(product, place, "bob")
    assert other != key and path.read_text().startswith(text)
    for name in ("alice", "a b", "", "x" * 64, "../x"):
        done = product.execute("serve", "--new-key", name, "--keys", path, cwd=place)
        assert done.returncode == 125 and done.stdout == b"", str(done)
    done = product.execute("serve", "--new-key", "carol", cwd=place)
    assert done.returncode == 2 and "--keys FILE" in done.err


def test_a_key_is_needed(serve_web, product, place):
    key = new_key(product, place)
    web = serve_web("--keys", place / "keys.yaml")
    for path in ("/metrics", "/v1/sessions"):
        answer = web.ask(path)
        assert answer.status == 401 and answer.headers["www-authenticate"].startswith("Bearer")
        assert web.ask(path, key=key).status == 200
    for wrong in (key[:-1], key + "x", key.upper(), key.replace("execpy_", ""), "x", "x" * 4000):
        answer = web.ask("/metrics", key=wrong)
        assert answer.status == 401 and "invalid_token" in answer.headers["www-authenticate"], wrong
    assert web.ask("/metrics", headers={"Authorization": f"Basic {key}"}).status == 401
    assert web.ask("/metrics", headers={"Authorization": f"bearer  {key}"}).status == 200
    assert web.ask("/healthz").status == web.ask("/readyz").status == 200
    # A body is not read from whom nobody knows.
    before = web.daemon.status()["runs"]
    answer = web.ask("/v1/run", "POST", RUN, JSON)
    assert answer.status == 401 and web.daemon.status()["runs"] == before
    assert web.ask("/v1/run", "POST", RUN, JSON, key=key).json["stdout"] == "55\n"


def test_with_keys_others_are_served(serve_web, product, place):
    key = new_key(product, place)
    web = serve_web("--keys", place / "keys.yaml", listen=("0.0.0.0:0",))
    web.address = ("127.0.0.1", web.address[1])
    assert web.ask("/metrics").status == 401 and web.ask("/metrics", key=key).status == 200


def test_the_rate_of_a_key(serve_web, product, place):
    keys_file(place, product, {"slow": ("slow-key", ["rate: 3"]), "quick": ("quick-key", [])})
    web = serve_web("--keys", place / "keys.yaml")
    statuses = [web.ask("/metrics", key="slow-key").status for _ in range(6)]
    assert statuses[:3] == [200] * 3 and statuses.count(429) >= 2, statuses
    refused = next(a for a in (web.ask("/metrics", key="slow-key") for _ in range(5))
                   if a.status == 429)
    assert 1 <= int(refused.headers["retry-after"]) <= 21
    assert [web.ask("/metrics", key="quick-key").status for _ in range(6)] == [200] * 6


@pytest.mark.parametrize("text, word", [
    ("keys: [{name: a}]", "both name and sha256"),
    ("keys: [{name: a, sha256: abc}]", "64 digits"),
    ("keys: [{name: 'a b', sha256: %s}]" % ("0" * 64), "cannot be a name"),
    ("keys: [{name: a, sha256: %s, runs: 0}]" % ("0" * 64), "out of range"),
    ("keys: [{name: a, sha256: %s, limits: {time: 100h}}]" % ("0" * 64), "out of range"),
    ("keys: [{name: a, sha256: %s, limits: {tim: 1s}}]" % ("0" * 64), "no limit 'tim'"),
    ("keys: [{name: a, sha256: %s}, {name: a, sha256: %s}]" % ("0" * 64, "1" * 64), "twice"),
    ("keys: [{name: a, sha256: %s}, {name: b, sha256: %s}]" % ("0" * 64, "0" * 64), "twice"),
    ("keys: [{name: a, sha256: %s, secret: x}]" % ("0" * 64), "no key 'secret'"),
    ("key: []", "no key 'key'"),
    ("[]", "1:1")])
def test_files_of_keys_that_are_none(product, watch, place, text, word):
    path = place / "keys.yaml"
    path.write_text(text + "\n")
    product.give(path)
    done = product.execute("serve", "--new-key", "x", "--keys", path, cwd=place)
    assert done.returncode == 125 and word in done.err and "keys.yaml:1:" in done.err, str(done)
    assert path.read_text() == text + "\n"


def test_a_file_of_keys_that_is_none_at_the_start(product, watch, place):
    path = place / "keys.yaml"
    path.write_text("keys: [{name: a}]\n")
    (place / "c.yaml").write_text("templates: [{name: bare, pool: {min: 1, max: 1}}]\n")
    product.give(path, place / "c.yaml")
    done = product.execute("serve", "--socket", place / "s", "--listen", "127.0.0.1:0", "--keys",
                           path, "--config", place / "c.yaml", cwd=place,
                           env={"EXECPY_SOCKET": ""})
    assert done.returncode == 125 and "keys.yaml:1:" in done.err, str(done)


def test_keys_are_read_again(serve_web, product, place):
    """At SIGHUP: a new key is known, one that is gone is not; connections stay, and what a key's
    owner has under way goes on. A file that is none changes nothing."""
    keys_file(place, product, {"old": ("old-key", []), "kept": ("kept-key", [])})
    web = serve_web("--keys", place / "keys.yaml")
    before = web.pid
    with web.connect() as connection:
        connection.sendall(request(headers={"Authorization": "Bearer old-key"}, path="/metrics"))
        listen_to(connection, until=b'execpy_pool_misses_total{template="bare"}')
        keys_file(place, product, {"new": ("new-key", []), "kept": ("kept-key", [])})
        web.daemon.process.send_signal(signal.SIGHUP)
        assert web.daemon.says("serving on", 2)
        wait_until(lambda: web.ask("/metrics", key="new-key").status == 200)
        assert web.ask("/metrics", key="old-key").status == 401
        assert web.ask("/metrics", key="kept-key").status == 200
        connection.sendall(request(headers={"Connection": "close"}))
        heard = listen_to(connection)
        assert heard.closed and b"ok\n" in heard.raw, "the connection was kept"
    (place / "keys.yaml").write_text("keys: [{}]\n")
    web.daemon.process.send_signal(signal.SIGHUP)
    assert web.daemon.says("keys.yaml:1:")
    assert web.ask("/metrics", key="new-key").status == 200
    assert web.pid == before


def test_policies_of_its_own(serve_web, product, place):
    """A policy file is named by its name, by whose key allows it, and read again at SIGHUP."""
    (place / "lab.yaml").write_text("name: lab\nprofile: standard\nmodules: {math: block}\n")
    keys_file(place, product, {"a": ("a-key", ["policies: [lab, strict]"]), "b": ("b-key", [])})
    product.give(place / "lab.yaml")
    web = serve_web("--keys", place / "keys.yaml", text=f"policies: [{place}/lab.yaml]\n")

    def check(key, policy, code="import math"):
        body = json.dumps({"code": code, "policy": policy}).encode()
        return web.ask("/v1/check", "POST", body, JSON, key=key)

    assert check("a-key", "lab").json["decision"] == "block"
    assert check("a-key", "strict").json["decision"] == "allow"
    assert check("b-key", "lab").json["decision"] == "block"
    assert check("a-key", "open").status == check("b-key", "other").status == 400
    assert check("b-key", str(place / "lab.yaml")).status == 400, "no file by its path"
    (place / "lab.yaml").write_text("name: lab\nprofile: standard\nmodules: {math: allow}\n")
    web.daemon.process.send_signal(signal.SIGHUP)
    assert web.daemon.says("serving on", 2)
    wait_until(lambda: check("a-key", "lab").json["decision"] == "allow")
    (place / "lab.yaml").write_text("name: open\nprofile: standard\n")
    web.daemon.process.send_signal(signal.SIGHUP)
    assert web.daemon.says("is that of a built-in policy")
    assert check("a-key", "lab").json["decision"] == "allow"


# -- pages of other sites -----------------------------------------------------------------------

@pytest.mark.parametrize("host, status", [
    ("localhost", 200), ("localhost:1", 200), ("LocalHost", 200), ("app.localhost", 200),
    ("127.0.0.1", 200), ("127.8.9.10:80", 200), ("[::1]:80", 200),
    ("rebound.example", 403), ("localhost.example", 403), ("notlocalhost", 403),
    ("127.0.0.1.example", 403), ("10.0.0.1", 403), ("[::2]", 403), ("2130706433", 403),
    ("0.0.0.0", 403)])
def test_names_of_the_host(web, host, status):
    assert web.ask(host=host).status == status


@pytest.mark.parametrize("headers, status", [
    ({"Origin": "http://localhost"}, 200),
    ({"Origin": "https://localhost"}, 200),
    ({"Origin": "http://localhost:81"}, 403),
    ({"Origin": "http://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": "file://"}, 403),
    ({"Sec-Fetch-Site": "same-origin"}, 200),
    ({"Sec-Fetch-Site": "none"}, 200),
    ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403),
    ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200)])
def test_pages_of_other_sites(web, headers, status):
    assert web.ask(headers=headers).status == status


def test_pages_of_other_sites_run_nothing(web):
    before = web.daemon.status()["runs"]
    assert web.ask("/v1/run", "POST", RUN, {**JSON, "Origin": "http://evil.example"}).status == 403
    assert web.ask("/v1/run", "OPTIONS", headers={"Origin": "http://evil.example",
                                                  "Access-Control-Request-Method": "POST"}
                   ).status == 403
    assert web.daemon.status()["runs"] == before
    assert web.ask("/v1/run", "POST", RUN, {**JSON, "Origin": "http://localhost"}).status == 200


def test_names_that_the_configuration_adds(serve_web):
    web = serve_web(text="hosts: [sandbox.example]\n")
    assert web.ask(host="sandbox.example").status == 200
    assert web.ask(host="Sandbox.Example:443", headers={"Origin": "https://sandbox.example:443"}
                   ).status == 200
    assert web.ask(host="other.example").status == 403


# -- encryption ---------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def certificate(product):
    directory = product.directory("certificate")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost", "-keyout", directory / "key.pem",
                    "-out", directory / "cert.pem"], check=True, capture_output=True)
    product.give(directory / "key.pem", directory / "cert.pem")
    return directory


def tls_text(certificate):
    return f"tls: {{certificate: {certificate}/cert.pem, key: {certificate}/key.pem}}\n"


def test_tls(serve_web, certificate):
    context = ssl.create_default_context(cafile=certificate / "cert.pem")
    context.set_alpn_protocols(["h2", "http/1.1"])
    web = serve_web(text=tls_text(certificate), tls=context)
    assert web.where[0].startswith("https://")
    with web.connect() as connection:
        assert connection.version() == "TLSv1.3"
        assert connection.selected_alpn_protocol() == "http/1.1"
    assert web.ask().body == b"ok\n"
    assert web.ask("/v1/run", "POST", RUN, JSON).json["stdout"] == "55\n"
    # Old versions, and those who do not encrypt at all.
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    web.tls = old
    with pytest.raises((ssl.SSLError, ConnectionError)):
        web.connect()
    web.tls = None
    with web.connect() as connection:
        connection.sendall(request())
        heard = listen_to(connection)
    assert b"HTTP/" not in heard.raw and (heard.closed or heard.reset)
    web.tls = context
    assert web.ask().status == 200


def test_a_megabyte_over_tls(serve_web, certificate):
    context = ssl.create_default_context(cafile=certificate / "cert.pem")
    web = serve_web(text=tls_text(certificate), tls=context)
    body = json.dumps({"code": "print('x' * 900_000)", "policy": "open"}).encode()
    answer = web.ask("/v1/run", "POST", body, JSON, seconds=60)
    assert len(answer.json["stdout"]) == 900_001


@pytest.mark.parametrize("certificate_text, key_text, word", [
    (None, "no key", "private key"), ("no certificate", None, "certificate")])
def test_certificates_that_are_none(product, watch, place, certificate, certificate_text,
                                    key_text, word):
    (place / "cert.pem").write_text(certificate_text or (certificate / "cert.pem").read_text())
    (place / "key.pem").write_text(key_text or (certificate / "key.pem").read_text())
    (place / "c.yaml").write_text("templates: [{name: bare, pool: {min: 1, max: 1}}]\n" +
                                  tls_text(place))
    product.give(*place.iterdir())
    done = product.execute("serve", "--socket", place / "s", "--listen", "127.0.0.1:0",
                           "--config", place / "c.yaml", cwd=place, env={"EXECPY_SOCKET": ""})
    assert done.returncode == 125 and f"tls: the {word}" in done.err, str(done)
