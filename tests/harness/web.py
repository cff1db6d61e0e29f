# SPDX-License-Identifier: Apache-2.0
"""A daemon's HTTP server, as a client meets it: raw bytes, and whole requests.

Answers are taken apart by a reader of our own, which forgives nothing: what a lenient client
would let pass is what these tests look for.
"""
import concurrent.futures
import contextlib
import hashlib
import json
import re
import shutil
import socket
import ssl
import threading
import time
from dataclasses import dataclass, field

from .daemon import Daemon, configuration
from .host import SLOW

SECONDS = 10.0


class Malformed(Exception):
    """What came is no series of responses."""


def wait_until(what, seconds=20):
    deadline = time.monotonic() + seconds * SLOW
    while not what():
        assert time.monotonic() < deadline, "it does not come to be"
        time.sleep(0.02)


def at_once(calls):
    """What each of these calls gives, all made at the same moment."""
    ready = threading.Barrier(len(calls))

    def make(call):
        ready.wait(30)
        return call()

    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(make, call) for call in calls]]


@dataclass
class Response:
    status: int
    headers: dict
    body: bytes = b""

    @property
    def json(self):
        return json.loads(self.body)


@dataclass
class Heard:
    """All that came over one connection."""
    raw: bytes = b""
    closed: bool = False    # the server ended it, properly
    reset: bool = False
    responses: list = field(default_factory=list)

    @property
    def statuses(self):
        return [response.status for response in self.responses if response.status >= 200]


def read_head(raw):
    head, separator, rest = raw.partition(b"\r\n\r\n")
    if not separator:
        raise Malformed(f"a head without an end: {raw[:200]!r}")
    line, *fields = head.split(b"\r\n")
    match = re.fullmatch(rb"HTTP/1\.1 (\d{3}) [ -~]+", line)
    if not match:
        raise Malformed(f"no status line: {line!r}")
    headers = {}
    for text in fields:
        name, colon, value = text.partition(b": ")
        if not colon or not re.fullmatch(rb"[A-Za-z0-9-]+", name) or re.search(rb"[^ -~]", value):
            raise Malformed(f"no field: {text!r}")
        if name.lower().decode() in headers:
            raise Malformed(f"a field that is there twice: {text!r}")
        headers[name.lower().decode()] = value.decode()
    return int(match[1]), headers, rest


def read_chunks(rest):
    body = b""
    while True:
        size, separator, rest = rest.partition(b"\r\n")
        if not separator or not re.fullmatch(rb"[0-9a-f]+", size):
            raise Malformed(f"no chunk's size: {size[:40]!r}")
        length = int(size, 16)
        if length == 0:
            if not rest.startswith(b"\r\n"):
                raise Malformed("chunks without an end")
            return body, rest[2:]
        if rest[length:length + 2] != b"\r\n":
            raise Malformed("a chunk that is cut short")
        body, rest = body + rest[:length], rest[length + 2:]


def responses(raw, methods=()):
    """The responses in these bytes. `methods` of the requests: a HEAD's has no body."""
    found, methods = [], list(methods)
    while raw:
        status, headers, raw = read_head(raw)
        if status < 200:
            found.append(Response(status, headers))
            continue
        method = methods.pop(0) if methods else "GET"
        if method == "HEAD" or status in (204, 304):
            body = b""
        elif headers.get("transfer-encoding") == "chunked":
            body, raw = read_chunks(raw)
        elif "content-length" in headers:
            length = int(headers["content-length"])
            if len(raw) < length:
                raise Malformed(f"{len(raw)} bytes of a body of {length}")
            body, raw = raw[:length], raw[length:]
        else:
            body, raw = raw, b""
        found.append(Response(status, headers, body))
    return found


def listen_to(connection, seconds=SECONDS, until=None):
    """What comes until the end, or for so long, or until `until` is in it."""
    heard = Heard()
    connection.settimeout(seconds * SLOW)
    try:
        while until is None or until not in heard.raw:
            piece = connection.recv(1 << 16)
            if not piece:
                heard.closed = True
                break
            heard.raw += piece
    except (socket.timeout, ssl.SSLWantReadError):
        pass
    except (ConnectionResetError, BrokenPipeError):
        heard.reset = True
    return heard


def request(method="GET", path="/healthz", body=None, headers=(), host="localhost"):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in dict(headers).items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


class Server:
    """`execpy serve` with HTTP on a free port of loopback, unless told otherwise."""

    def __init__(self, product, directory, text, *options, listen=("127.0.0.1:0",), **more):
        self.daemon = Daemon(product, directory, text, *options, listen=listen, **more)
        line = self.daemon.says("serving HTTP on")
        if not line:
            self.daemon.close()
            raise AssertionError(f"HTTP is not served: {self.daemon.log}")
        self.where = line.split("serving HTTP on ", 1)[1].split(", ")
        found = re.search(r"https?://([^/,]+):(\d+)", line)
        self.address = (found[1].strip("[]"), int(found[2])) if found else None

    @property
    def port(self):
        return self.address[1]

    @property
    def url(self):
        return self.where[0].rstrip("/") + "/"

    @property
    def pid(self):
        """Of the server's process."""
        found = self.daemon.roles()["server"]
        return found[0] if found else None

    def cells(self):
        """How many runs go on, by the daemon's own word."""
        return self.daemon.status()["running"]

    def quiet(self, seconds=10):
        """Waits until nothing runs any more."""
        wait_until(lambda: self.cells() == 0, seconds)

    def close(self):
        self.daemon.close()


@contextlib.contextmanager
def keyed_server(product, name, secrets, limits, text=""):
    """A server with a key for each name of `secrets`, and what `limits` says of it."""
    place = product.directory(name)
    lines = ["keys:\n"]
    for tenant, secret in secrets.items():
        hashed = hashlib.sha256(secret.encode()).hexdigest()
        lines.append(f"  - name: {tenant}\n    sha256: {hashed}\n{limits.get(tenant, '')}")
    keys = place / "keys.yaml"
    keys.write_text("".join(lines))
    keys.chmod(0o600)
    server = Server(product, place, f"keys: {keys}\n{text}" + configuration({"bare": (2, 4)}))
    yield server
    server.close()
    shutil.rmtree(place, ignore_errors=True)


class Web(Server):
    """One that is asked in raw bytes, with TLS, too."""

    def __init__(self, *words, tls=None, **more):
        super().__init__(*words, **more)
        self.tls, self.key = tls, None

    def connect(self, path=None, receive_bytes=None):
        if path:
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(SECONDS * SLOW)
            connection.connect(str(path))
            return connection
        connection = socket.socket(socket.AF_INET6 if ":" in self.address[0] else socket.AF_INET)
        if receive_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        connection.settimeout(SECONDS * SLOW)
        connection.connect(self.address)
        if self.tls:
            return self.tls.wrap_socket(connection, server_hostname="localhost")
        return connection

    def raw(self, data, half_close=False, seconds=SECONDS, methods=(), path=None, until=None):
        """Sends these bytes, and hears all that comes back."""
        with contextlib.closing(self.connect(path)) as connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(data)
                if half_close:
                    connection.shutdown(socket.SHUT_WR)
            heard = listen_to(connection, seconds, until)
        heard.responses = responses(heard.raw, methods)
        return heard

    def ask(self, path="/healthz", method="GET", body=None, headers=(), path_of_socket=None,
            host="localhost", key=None, seconds=SECONDS):
        """One request, one response."""
        fields = {"Connection": "close", **dict(headers)}
        if key or self.key:
            fields["Authorization"] = f"Bearer {key or self.key}"
        heard = self.raw(request(method, path, body, fields, host), methods=[method],
                         path=path_of_socket, seconds=seconds)
        final = [response for response in heard.responses if response.status >= 200]
        assert len(final) == 1 and heard.closed, heard
        return final[0]
