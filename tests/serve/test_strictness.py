# SPDX-License-Identifier: Apache-2.0
"""Requests that two readers could understand differently are refused, and end the connection.

Each probe is followed by a second, well-formed request on the same connection. Three things must
hold: one answer with the status that is asked for; the connection ends; the second request, which
in most probes is what would have been smuggled, is not answered. The controls show that the same
bytes, spelt as they should be, are answered, and the second request with them.
"""
import contextlib

import pytest

from harness.web import listen_to, request, responses

SECOND = b"GET /second HTTP/1.1\r\nHost: localhost\r\n\r\n"
BODY = b'{"code":"1"}'
HEX = b"%x" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked"
LENGTH = b"Content-Length: %d" % len(BODY)


def post(*fields, body=BODY, line=b"POST /v1/check HTTP/1.1", host=b"Host: localhost",
         kind=b"Content-Type: application/json", end=b"\r\n"):
    lines = [line] + [text for text in (host, kind) if text] + list(fields)
    return end.join([*lines, b"", b""]) + body


def chunks(*pieces, last=b"0\r\n\r\n"):
    return post(CHUNKED, body=b"".join(pieces) + last)


def chunk(data=BODY, size=None, after=b"\r\n"):
    return (b"%x" % len(data) if size is None else size) + b"\r\n" + data + after


def get(line=b"GET /healthz HTTP/1.1", *fields, host=b"Host: localhost", end=b"\r\n"):
    return end.join([line] + ([host] if host else []) + list(fields) + [b"", b""])


# name: (bytes, status)
PROBES = {
    # how long the body is
    "two lengths that differ": (post(LENGTH, b"Content-Length: 5"), 400),
    "two lengths that agree": (post(LENGTH, LENGTH), 400),
    "a list of lengths": (post(b"Content-Length: 12, 12"), 400),
    "a length with a sign": (post(b"Content-Length: +12"), 400),
    "a negative length": (post(b"Content-Length: -12"), 400),
    "a length in hexadecimal": (post(b"Content-Length: 0xc"), 400),
    "a length with a zero before it": (post(b"Content-Length: 012"), 400),
    "a length with a blank inside": (post(b"Content-Length: 1 2"), 400),
    "an empty length": (post(b"Content-Length:"), 400),
    "a length with a fraction": (post(b"Content-Length: 12.0"), 400),
    "a length of 2**64 + 12": (post(b"Content-Length: 18446744073709551628"), 400),
    "a length of 30 digits": (post(b"Content-Length: " + b"1" * 30), 400),
    "length and chunked": (post(LENGTH, CHUNKED, body=chunk() + b"0\r\n\r\n"), 400),
    "chunked and length": (post(CHUNKED, LENGTH, body=chunk() + b"0\r\n\r\n"), 400),
    "a blank before the colon of the length": (post(b"Content-Length : 12"), 400),
    "a length that is no digit of ASCII": (post("Content-Length: 1２".encode()), 400),
    # transfer encodings
    "a blank before the colon of the encoding": (post(b"Transfer-Encoding : chunked",
                                                      body=chunk() + b"0\r\n\r\n"), 400),
    "a tab before the colon": (post(b"Transfer-Encoding\t: chunked", body=b"0\r\n\r\n"), 400),
    "xchunked": (post(b"Transfer-Encoding: xchunked", body=b"0\r\n\r\n"), 400),
    "chunkedx": (post(b"Transfer-Encoding: chunkedx", body=b"0\r\n\r\n"), 400),
    "gzip, chunked": (post(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"), 400),
    "chunked, gzip": (post(b"Transfer-Encoding: chunked, gzip", body=b"0\r\n\r\n"), 400),
    "chunked, chunked": (post(b"Transfer-Encoding: chunked, chunked", body=b"0\r\n\r\n"), 400),
    "chunked twice": (post(CHUNKED, CHUNKED, body=b"0\r\n\r\n"), 400),
    "identity": (post(b"Transfer-Encoding: identity", LENGTH), 400),
    "an empty encoding": (post(b"Transfer-Encoding:", body=b"0\r\n\r\n"), 400),
    "a quoted encoding": (post(b'Transfer-Encoding: "chunked"', body=b"0\r\n\r\n"), 400),
    "an encoding with a parameter": (post(b"Transfer-Encoding: chunked;a=b", body=b"0\r\n\r\n"),
                                     400),
    "a vertical tab before the encoding": (post(b"Transfer-Encoding: \x0bchunked",
                                                body=b"0\r\n\r\n"), 400),
    "an encoding over two lines": (post(b"Transfer-Encoding:\r\n chunked", body=b"0\r\n\r\n"), 400),
    "chunked in HTTP/1.0": (post(CHUNKED, line=b"POST /v1/check HTTP/1.0", body=b"0\r\n\r\n"), 400),
    # chunks
    "a chunk's size with a sign": (chunks(chunk(size=b"+" + HEX)), 400),
    "a negative chunk": (chunks(chunk(size=b"-1")), 400),
    "a chunk's size with 0x": (chunks(chunk(size=b"0x" + HEX)), 400),
    "a blank before a chunk's size": (chunks(chunk(size=b" " + HEX)), 400),
    "a blank behind a chunk's size": (chunks(chunk(size=HEX + b" ")), 400),
    "a chunk's size that is none": (chunks(chunk(size=b"")), 400),
    "a chunk's size of 9 digits": (chunks(chunk(size=b"00000000" + HEX)), 400),
    "a chunk of 2**64": (chunks(chunk(size=b"1" + b"0" * 16)), 400),
    "a letter that is no digit": (chunks(chunk(size=b"g")), 400),
    "an underscore in a size": (chunks(chunk(size=b"0_c")), 400),
    "a chunk's line that ends in LF": (post(CHUNKED, body=HEX + b"\n" + BODY + b"\r\n0\r\n\r\n"), 400),
    "a chunk's line that ends in CR": (post(CHUNKED, body=HEX + b"\r" + BODY + b"\r\n0\r\n\r\n"), 400),
    "a chunk that is longer than it says": (chunks(chunk(BODY + b"x", size=HEX)), 400),
    "a chunk that ends in LF": (chunks(chunk(after=b"\n")), 400),
    "a chunk that ends in nothing": (chunks(chunk(after=b"")), 400),
    "a last chunk with LF": (chunks(chunk(), last=b"0\n\n"), 400),
    "an extension with LF": (chunks(chunk(size=HEX + b";a\nb")), 400),
    "extensions of 5 KiB": (chunks(chunk(size=HEX + b";" + b"a" * 5120)), 400),
    "a trailer": (chunks(chunk(), last=b"0\r\nHost: other\r\n\r\n"), 400),
    # how lines end, and what is in them
    "lines that end in LF": (get(end=b"\n"), 400),
    "one line that ends in LF": (b"GET /healthz HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n", 400),
    "a head that ends in LF": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\n", 400),
    "a head that ends in CR": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r", 400),
    "a CR inside of a line": (get(b"GET /healthz HTTP/1.1", b"X: a\rb"), 400),
    "two CRs": (b"GET /healthz HTTP/1.1\r\r\nHost: localhost\r\n\r\n", 400),
    "a NUL in a value": (get(b"GET /healthz HTTP/1.1", b"X: a\0b"), 400),
    "a NUL in a name": (get(b"GET /healthz HTTP/1.1", b"X\0: a"), 400),
    "a NUL in the target": (get(b"GET /healthz\0 HTTP/1.1"), 400),
    "a NUL before the request": (b"\0" + get(), 400),
    "a BEL in a value": (get(b"GET /healthz HTTP/1.1", b"X: a\x07b"), 400),
    "a DEL in a value": (get(b"GET /healthz HTTP/1.1", b"X: a\x7fb"), 400),
    "a value over two lines": (get(b"GET /healthz HTTP/1.1", b"X: a\r\n b"), 400),
    "a first field that begins with a blank": (b"GET /healthz HTTP/1.1\r\n Host: localhost\r\n\r\n", 400),
    "a field without a colon": (get(b"GET /healthz HTTP/1.1", b"X"), 400),
    "a field without a name": (get(b"GET /healthz HTTP/1.1", b": x"), 400),
    "a blank in a name": (get(b"GET /healthz HTTP/1.1", b"X y: z"), 400),
    "a bracket in a name": (get(b"GET /healthz HTTP/1.1", b"X(y): z"), 400),
    "a name in UTF-8": (get(b"GET /healthz HTTP/1.1", "Ä: z".encode()), 400),
    # Host
    "no Host": (get(host=None), 400),
    "no Host in HTTP/1.0": (get(b"GET /healthz HTTP/1.0", host=None), 400),
    "an empty Host": (get(host=b"Host:"), 400),
    "two Hosts that differ": (get(b"GET /healthz HTTP/1.1", b"Host: other"), 400),
    "two Hosts that agree": (get(b"GET /healthz HTTP/1.1", b"Host: localhost"), 400),
    "a Host with a blank before the colon": (get(host=b"Host : localhost"), 400),
    "a Host with a path": (get(host=b"Host: localhost/x"), 400),
    "a Host with a user": (get(host=b"Host: user@localhost"), 400),
    "a Host with a port that is none": (get(host=b"Host: localhost:8o"), 400),
    "a Host of two names": (get(host=b"Host: localhost, other"), 400),
    "a Host of another": (get(host=b"Host: rebound.example"), 403),
    # the request line
    "an absolute target": (get(b"GET http://localhost/healthz HTTP/1.1"), 400),
    "an absolute target of another": (get(b"GET http://other.example/healthz HTTP/1.1"), 400),
    "an asterisk": (get(b"OPTIONS * HTTP/1.1"), 400),
    "CONNECT": (get(b"CONNECT localhost:80 HTTP/1.1"), 400),
    "no target": (get(b"GET HTTP/1.1"), 400),
    "two blanks before the target": (get(b"GET  /healthz HTTP/1.1"), 400),
    "two blanks behind the target": (get(b"GET /healthz  HTTP/1.1"), 400),
    "a tab instead of a blank": (get(b"GET\t/healthz HTTP/1.1"), 400),
    "a blank before the method": (b" " + get(), 400),
    "a blank behind the version": (get(b"GET /healthz HTTP/1.1 "), 400),
    "an empty line before it": (b"\r\n" + get(), 400),
    "a method in small letters": (get(b"get /healthz HTTP/1.1"), 501),
    "a method that is none": (get(b"SMUGGLE /healthz HTTP/1.1"), 501),
    "HTTP/0.9": (b"GET /healthz\r\n\r\n", 400),
    "HTTP/1.2": (get(b"GET /healthz HTTP/1.2"), 505),
    "HTTP/2.0": (get(b"GET /healthz HTTP/2.0"), 505),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "http/1.1": (get(b"GET /healthz http/1.1"), 400),
    "HTTP/1.10": (get(b"GET /healthz HTTP/1.10"), 400),
    "HTTP/1": (get(b"GET /healthz HTTP/1"), 400),
    "a fragment": (get(b"GET /healthz#x HTTP/1.1"), 400),
    "UTF-8 in the target": (get("GET /ä HTTP/1.1".encode()), 400),
    # paths
    "an encoded NUL": (get(b"GET /a%00b HTTP/1.1"), 400),
    "half an escape": (get(b"GET /a%2 HTTP/1.1"), 400),
    "an escape that is none": (get(b"GET /a%zz HTTP/1.1"), 400),
    "dot segments": (get(b"GET /a/../healthz HTTP/1.1"), 400),
    "encoded dot segments": (get(b"GET /a/%2e%2E/healthz HTTP/1.1"), 400),
    "a single dot": (get(b"GET /./healthz HTTP/1.1"), 400),
    "bytes that are no UTF-8": (get(b"GET /a%ff HTTP/1.1"), 400),
    "an overlong slash": (get(b"GET /a%c0%af HTTP/1.1"), 400),
    # sizes
    "a request line of 9 KiB": (get(b"GET /" + b"a" * 9216 + b" HTTP/1.1"), 414),
    "a field of 40 KiB": (get(b"GET /healthz HTTP/1.1", b"X: " + b"a" * 40960), 431),
    "a thousand fields": (get(b"GET /healthz HTTP/1.1", *[b"X%d: y" % i for i in range(1000)]), 431),
    # what else may stand there once
    "two keys": (get(b"GET /healthz HTTP/1.1", b"Authorization: Bearer a", b"Authorization: Bearer b"), 400),
    "another expectation": (post(LENGTH, b"Expect: 200-ok"), 417),
    "a body where none belongs": (post(LENGTH, line=b"GET /healthz HTTP/1.1"), 400),
    "another protocol": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 64, 400),
}


@pytest.mark.parametrize("name", PROBES)
def test_what_is_odd_is_refused(web, name):
    data, status = PROBES[name]
    heard = web.raw(data + SECOND)
    assert heard.statuses == [status], heard
    assert heard.closed and not heard.reset, "the connection is not ended properly"
    assert heard.responses[0].headers["connection"] == "close"
    assert heard.responses[0].json["status"] == status


# name: bytes of a first request that is answered with 200
CONTROLS = {
    "a length": post(LENGTH),
    "a length with blanks before it": post(b"Content-Length: \t 12"),
    "one chunk": chunks(chunk()),
    "chunks of one byte": chunks(*[chunk(BODY[i:i + 1]) for i in range(len(BODY))]),
    "Chunked in large letters": post(b"Transfer-Encoding: CHUNKED", body=chunk() + b"0\r\n\r\n"),
    "sizes in large letters": chunks(chunk(b" " * 0xab + BODY, size=b"B7")),
    "a size with a few zeros": chunks(chunk(size=b"000" + HEX)),
    "extensions": chunks(chunk(size=HEX + b';a=b;c="d"'), last=b"0;e\r\n\r\n"),
    "no blank behind the colon": get(host=b"Host:localhost"),
    "a tab inside of a value": get(b"GET /healthz HTTP/1.1", b"X: a\tb"),
    "a value in UTF-8": get(b"GET /healthz HTTP/1.1", "X: ä".encode()),
    "a Host with a port": get(host=b"Host: localhost:8765"),
    "a Host of an address": get(host=b"Host: 127.0.0.1"),
    "a Host of IPv6": get(host=b"Host: [::1]:80"),
    "names in any letters": get(host=b"hOsT: LOCALHOST"),
    "a query": get(b"GET /healthz?a=%20b&c HTTP/1.1"),
    "a field of 20 KiB": get(b"GET /healthz HTTP/1.1", b"X: " + b"a" * 20480),
    "90 fields": get(b"GET /healthz HTTP/1.1", *[b"X%d: y" % i for i in range(90)]),
    "an expectation, and the body at once": post(LENGTH, b"Expect: 100-continue"),
}


@pytest.mark.parametrize("name", CONTROLS)
def test_what_is_well_formed_is_answered(web, name):
    heard = web.raw(CONTROLS[name] + SECOND.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert heard.statuses == [200, 404], heard
    assert heard.closed


def test_byte_by_byte(web):
    """However the bytes of a request are parted, it is the same request."""
    data = CONTROLS["extensions"] + SECOND.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    with contextlib.closing(web.connect()) as connection:
        for i in range(len(data)):
            connection.sendall(data[i:i + 1])
        heard = listen_to(connection)
    assert [r.status for r in responses(heard.raw)] == [200, 404]


def test_HEAD_has_no_body(web):
    heard = web.raw(request("HEAD") + request(headers={"Connection": "close"}),
                    methods=["HEAD", "GET"])
    head, whole = heard.responses
    assert (head.status, head.body, whole.body) == (200, b"", b"ok\n")
    assert head.headers["content-length"] == whole.headers["content-length"] == "3"


def test_methods_that_a_path_does_not_take(web):
    answer = web.ask(method="DELETE")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["title"] == "Method Not Allowed"
    assert web.ask("/nothing").status == 404
    assert web.ask("/healthz/").status == 404


def test_http_1_0(web):
    """Closes, unless the client asks for more; and never gets chunks."""
    heard = web.raw(get(b"GET /healthz HTTP/1.0") + SECOND)
    assert heard.statuses == [200] and heard.closed
    heard = web.raw(get(b"GET /healthz HTTP/1.0", b"Connection: keep-alive") +
                    get(b"GET /second HTTP/1.0"))
    assert heard.statuses == [200, 404] and heard.closed
    assert heard.responses[0].headers["connection"] == "keep-alive"
