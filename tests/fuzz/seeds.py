#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the hand-made part of the fuzz corpora: seeds.py DIRECTORY. One file one case, named after it."""
import json
import re
import struct
import sys
from pathlib import Path

VALUE, DISPLAY, ERROR, DONE, FRAMES = 130, 129, 131, 132, 133
TEXT, MIME, DATA, TYPE, TRACEBACK, ERRNO, FRAME, FILE = 1, 14, 15, 16, 17, 18, 19, 20
LINE, COLUMN, END_LINE, END_COLUMN, FUNCTION, SOURCE = 21, 22, 23, 24, 25, 26


def field(name, value, length=None):
    if isinstance(value, int):
        value = struct.pack("<Q", value)
    if isinstance(value, str):
        value = value.encode()
    return struct.pack("<HI", name, len(value) if length is None else length) + value


def frame(kind, *fields, number=1, magic=0x5845, length=None):
    body = b"".join(fields)
    return struct.pack("<HHIQ", magic, kind, len(body) if length is None else length, number) + body


def frames():
    one = frame(7, field(1, "hello"), field(2, 2**63))
    yield "memory-empty", b"\0"
    yield "memory-one", b"\0" + one
    yield "memory-two", b"\0" + one + one
    yield "memory-cut", b"\0" + one[:-1]
    yield "memory-wrong-tag", b"\0" + frame(7, magic=0x4558)
    yield "memory-oversized", b"\0" + frame(7, length=2**32 - 1)
    yield "memory-negative", b"\0" + frame(7, length=2**31)
    yield "memory-field-cut", b"\0" + frame(7, field(1, "abc", length=4))
    yield "memory-field-oversized", b"\0" + frame(7, field(1, "abc", length=2**32 - 1))
    yield "memory-field-header-cut", b"\0" + frame(7, b"\1\0\0")
    yield "memory-empty-field", b"\0" + frame(7, field(3, ""))

    def message(data, fds=0, controls=0):
        return struct.pack("<BBH", fds, controls, len(data)) + data
    yield "socket-one", b"\1" + message(one)
    yield "socket-descriptors", b"\1" + message(one, 3, 1) + message(one, 16, 1)
    yield "socket-spam", b"\1" + message(one, 17, 1) + message(one, 39, 1) + message(one, 1, 23)
    yield "socket-twice-in-one", b"\1" + message(one + one, 2, 1)
    yield "socket-cut", b"\1" + message(one[:-1], 2, 1)
    yield "socket-empty-with-descriptors", b"\1" + message(b"", 3, 1) + message(one)
    yield "socket-trailing", b"\1" + message(one + b"x", 1, 2)


def trees():
    def name(text):
        text = text.encode("latin-1")
        return bytes([len(text)]) + text

    def make(step, text="", *arguments):
        return bytes([step]) + name(text) + b"".join(arguments)
    byte = lambda n: bytes([n])                                     # noqa: E731
    up = make(1)
    yield "empty", b""
    yield "files", make(2, "a", byte(3)) + make(0, "d") + make(2, "b", byte(0)) + up + make(2, "c", byte(9))
    yield "links", b"".join(make(3, f"l{i}", byte(i)) for i in range(8)) + make(2, "a", byte(1))
    yield "fifo", make(4, "fifo") + make(2, "a", byte(1))
    yield "hard-link", make(2, "a", byte(1)) + make(0, "d") + make(5, "b", b"\0\0")
    yield "sparse", b"".join(make(6, f"s{i}", byte(i)) for i in (0, 19, 20, 21, 40, 50, 62))
    yield "modes", make(2, "a", byte(1)) + make(7, "", b"\0\0") + make(0, "d") + make(2, "b", byte(1)) + make(8, "", b"\0\0")
    yield "shut-root", make(2, "a", byte(1)) + make(8, "", b"\0\0")
    yield "many", make(9, "m", byte(255))
    yield "deep", make(10, "d", byte(50)) + make(2, "bottom", byte(1))
    yield "long-path", make(10, "n" * 79, byte(20)) + make(2, "f", byte(1))
    long_levels = b"".join(make(0, "n" * 79) + make(2, "f", byte(1)) for _ in range(17))
    yield "long-path-files", long_levels
    yield "odd-names", b"".join(make(2, n, byte(1)) for n in ("\n", "\x1b[31m", "\xff\xfe", " ", "...", "%s", "-rf"))


def verdict(flags=0, *findings, imports=()):
    body = field(1, flags) + b"".join(field(2, name) for name in imports)
    for rule, severity, message in findings:
        body += field(3, rule) + b"".join(field(4 + i, n) for i, n in enumerate((severity, 1, 2, 1, 9)))
        body += field(9, message) + field(10, "do something else")
    return frame(134, field(43, body), field(45, 1234))


def responses():
    def case(response, ending=1, flags=1, status=0, judged=verdict(), **more):
        return raw(judged + response, ending, flags, status, **more)

    def raw(response, ending=1, flags=1, status=0, claimed=0, stop=b"", stop_claimed=0, code=b""):
        return struct.pack("<BBHIIHH", ending, flags, status, claimed, stop_claimed, len(stop), len(code)) + stop + code + response
    value = frame(VALUE, field(MIME, "text/plain"), field(DATA, "42"), field(MIME, "image/png"), field(DATA, b"\x89PNG\0"))
    error = frame(ERROR, field(TYPE, "ValueError"), field(TEXT, "no \ud7ff\U0001f600"), field(TRACEBACK, "Traceback\n"), field(ERRNO, 28),
                  field(FRAME, field(FILE, "main.py") + field(LINE, 1) + field(COLUMN, 2) + field(END_LINE, 1) + field(END_COLUMN, 9)
                        + field(FUNCTION, "f") + field(SOURCE, "x = \"\t\"")))
    stop = frame(FRAMES, *(field(FRAME, field(FILE, "main.py") + field(LINE, n) + field(COLUMN, 4) + field(FUNCTION, "g")) for n in (3, 2, 1)))
    code = "é = 1\nwhile True:\n    pass\n".encode()
    yield "empty", raw(b"")
    yield "value", case(value)
    yield "no-verdict-time", raw(b"", ending=2)
    yield "no-verdict-memory", raw(b"", ending=4)
    yield "no-verdict-crash", raw(b"", status=11)
    yield "no-verdict-stderr", raw(b"", code=b"\xff no end")
    yield "blocked", case(b"", judged=verdict(1, ("forbidden-module", 3, "module 'os' is not allowed")))
    yield "blocked-flag-only", case(b"", judged=verdict(1))
    yield "findings", case(value, judged=verdict(2, ("syntax-error", 2, "m"), ("encoding", 1, "\U0001f600"), imports=("os", "numpy")))
    yield "check-only", case(b"", flags=65)
    yield "verdict-twice", case(verdict(1) + value)
    yield "verdict-cut", case(frame(134, field(43, field(3, "import"))))
    yield "verdict-unknown-rule", case(b"", judged=verdict(0, ("no-such-rule", 3, "m")))
    yield "anomaly", case(frame(135, field(41, "socket.bind"), field(42, "0.0.0.0:80\n\x1b"), field(21, 3)), status=9)
    yield "anomaly-odd", case(frame(135, field(41, b"\xff" * 400), field(42, b"\0")), status=9)
    yield "value-and-displays", case(frame(DISPLAY, field(MIME, "text/html"), field(DATA, "<b>")) * 3 + value + frame(DONE))
    yield "error", case(error, status=0x100)
    yield "error-disk-full", case(error, status=0x100, flags=3)
    yield "error-without-fields", case(frame(ERROR), status=0x100)
    yield "killed-by-signal", case(value, status=11)
    yield "time-with-frames", case(value, ending=2, stop=stop, code=code)
    yield "cpu-with-frames-cut", case(b"", ending=3, stop=stop[:-3], code=code)
    yield "memory", case(b"", ending=4)
    yield "output", case(b"x" * 9000, ending=5, flags=1 | 2 << 3)
    yield "cancelled", case(b"", ending=5, flags=5)
    yield "failed", case(b"", ending=6)
    yield "claims-everything", case(value, claimed=0xffffffff)
    yield "claims-more", case(value, claimed=1000)
    yield "not-a-frame", case(b"\xff" * 100)
    yield "cut", case(value[:-1])
    yield "mime-odd", case(frame(VALUE, *(field(MIME, m) + field(DATA, "x") for m in ("", "/", "a/", "/b", "a/b\"", "a b/c", "A/b", "a/" + "b" * 98, "a/" + "b" * 99, "a/b/c"))))
    yield "mime-twice", case(frame(VALUE, field(MIME, "text/plain"), field(DATA, "1"), field(MIME, "text/plain"), field(DATA, "2")))
    yield "data-without-mime", case(frame(DISPLAY, field(DATA, "x"), field(MIME, "text/plain")))
    yield "bytes-of-all-kinds", case(frame(VALUE, field(MIME, "text/plain"), field(DATA, bytes(range(256)) * 2)))
    yield "surrogates", case(frame(ERROR, field(TYPE, b"\xed\xa0\x80"), field(TEXT, b"\xf4\x90\x80\x80\xc0\x80")), status=0x100)
    yield "numbers-huge", case(frame(ERROR, field(FRAME, field(LINE, 2**64 - 1) + field(COLUMN, 2**64 - 1))), status=0x100)
    yield "stop-numbers-huge", case(b"", ending=2, stop=frame(FRAMES, field(FRAME, field(FILE, "main.py") + field(LINE, 2**64 - 1) + field(COLUMN, 2**64 - 1) + field(END_COLUMN, 2**64 - 1))), code=code)
    yield "many-frames", case(frame(ERROR, *([field(FRAME, b"")] * 70)), status=0x100)
    yield "many-displays", case(frame(DISPLAY) * 300)


def field_numbers():
    """Name -> number of every field, as src/proto/messages.h counts them."""
    header = Path(__file__).resolve().parent.parent.parent / "src/proto/messages.h"
    names = re.search(r"enum field_name \{(.*?)\};", header.read_text(), re.DOTALL)[1]
    return {name: at for at, name in enumerate(re.findall(r"^\tFIELD_(\w+)", names, re.MULTILINE), 1)}


def configurations():
    f = field_numbers()
    name, module, code = (lambda *text: b"".join(field(f[key], t) for t in text) for key in ("NAME", "MODULE", "CODE"))
    pool = lambda least, most: field(f["POOL_MIN"], least) + field(f["POOL_MAX"], most)     # noqa: E731
    numbers = {"SIZE": 1 << 30, "ROTATE_CELLS": 9, "ROTATE_MS": 1000, "IDLE_MS": 0, "RUNS": 0, "QUEUE": 0,
               "QUEUE_MS": 100, "COUNT": 3}
    yield "file-numbers", b"memory: 2G\nrotate_cells: 17\nrotate_after: 1.5m\nidle_after: 0\nruns: 3\nqueue: 0\nqueue_wait: 250ms\nclients: 9\n"
    yield "file-templates", (b"templates:\n  - name: bare\n    pool: {min: 0, max: 1}\n  - name: lab\n    modules: [json, os.path]\n"
                             b"    warm_up: |\n      import json\n    pool: {max: 1}\n")
    yield "file-flow", b"{templates: [{name: a, modules: [], warm_up: \"\\x41\\n\", pool: {min: 5, max: 4}}]}"
    yield "file-empty-list", b"templates: []"
    yield "file-tag", b"runs: !!int 1"
    yield "file-number-huge", b"queue: 99999999999999999999"
    yield "file-latin", b"queue: \xff"
    yield "template", name("lab") + module("os", "a.b") + code("pass\n") + pool(1, 2)
    yield "template-nul", name("l\0b") + code("\0") + pool(1, 2)
    yield "template-twice", name("a", "b") + module("os", "os") + code("", "") + pool(2, 1)
    yield "template-cut", (name("lab") + code("x") + pool(1, 2))[:-3]
    yield "serve", b"".join(field(f[key], value) for key, value in numbers.items())
    yield "serve-huge", b"".join(field(f[key], 2**64 - 1) for key in numbers)
    yield "serve-twice", field(f["RUNS"], 1) * 2


def conversations():
    """Lines of a client of MCP; one that begins with a space did not say `initialize`."""
    def line(method, number=1, **params):
        return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"

    def call(tool, **arguments):
        return line("tools/call", name=tool, arguments=arguments)
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}, "progressToken": "t"}
    uri = "execpy://session/ses_1/d/%C3%A4%20b"
    yield "handshake", line("initialize", "a", protocolVersion="2025-06-18", capabilities={}) + line("ping", -3)
    yield "stateless", b" \n" + line("server/discover", _meta=meta) + line("tools/list", _meta=meta)
    yield "version", b" \n" + line("server/discover", _meta={**meta, "io.modelcontextprotocol/protocolVersion": "1"})
    yield "lists", line("tools/list") + line("resources/list") + line("resources/templates/list", cursor="x")
    yield "run", call("execute_python", code="print(1)\0", time_ms=100, output_bytes=0, stdin="a", template="numpy",
                      files=[{"path": "a/b", "content": "x"}, {"path": "c", "content_base64": "AAE="}])
    yield "run-wrong", call("execute_python", code="1", files=[{"path": "../x", "content": "", "content_base64": 1}])
    yield "run-session", call("execute_python", code="1", session="ses_1", memory_bytes=1) + call("check_python", code="x")
    yield "sessions", b"".join(call("python_session", action=action, session="ses_1", name="n") for action in
                               ("create", "list", "info", "checkpoint", "rollback", "undo", "end", "x"))
    yield "read", line("resources/read", uri=uri) + line("resources/read", uri=uri + "%00") + line("resources/read", uri=1)
    yield "notifications", (b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n'
                            b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
    yield "wrong", b'[]\n{}\n"\n{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}'


def requests():
    """What the strictness suite sends, a few sizes of pieces before it."""
    root = Path(__file__).resolve().parent.parent
    sys.path[:0] = [str(root), str(root / "serve")]
    from test_strictness import CONTROLS, PROBES
    cases = {**{name: data for name, (data, _) in PROBES.items()}, **CONTROLS}
    for number, (name, data) in enumerate(cases.items()):
        if len(data) < 4096:
            yield re.sub(r"[^a-z0-9]+", "-", name.lower()), bytes([number % 64]) + data


def bodies():
    """A route (with 0x80: events are wanted) and what is sent to it."""
    def body(route, **keys):
        return bytes([route]) + json.dumps(keys).encode()
    run, batch, check, probe, sessions, session_run, checkpoint, rollback = range(8)
    yield "run", body(run, code="print(1)\0", stdin="a", args=["x", "ä"], env={"A": "b=c"}, policy="open",
                      template="numpy", output="truncate", return_files=True,
                      limits={"time_ms": 100, "cpu_ms": 10, "memory_bytes": 1 << 22, "processes": 1,
                              "output_bytes": 0, "disk_bytes": 1 << 16},
                      files=[{"path": "a/b", "content": "x"}, {"path": "c", "content_base64": "AAE="}])
    yield "run-events", body(run | 0x80, code="print(1)")
    yield "run-detached", body(run, code="1", detach=True)
    yield "run-wrong", body(run, code="1", files=[{"path": "../x", "content": "", "content_base64": 1}])
    yield "run-limits", body(run, code="1", limits={"time_ms": 1e300, "memory_bytes": -1, "x": 1})
    yield "run-twice", b'\0{"code":"1","code":"2"}'
    yield "run-text", b'\0{"code":"\\ud800","a\\u0000":[[[[1]]]]} '
    yield "batch", body(batch, runs=[{"code": "1"}, {"cod": 1}, 5, {"code": "2", "detach": True}])
    yield "batch-empty", body(batch, runs=[])
    yield "check", body(check, code="import os", policy="strict")
    yield "probe", body(probe, code="import os", policy="/etc/passwd")
    yield "session", body(sessions, template="numpy", policy="open", limits={"disk_bytes": 1 << 20}, idle_ttl_ms=1000)
    yield "session-empty", bytes([sessions])
    yield "session-run", body(session_run | 0x80, code="1", limits={"memory_bytes": 1})
    yield "checkpoint", body(checkpoint, name="ä" * 40)
    yield "rollback", body(rollback, name="")


def main():
    root = Path(sys.argv[1])
    for target, cases in (("frame", frames()), ("collect", trees()), ("response", responses()),
                          ("config", configurations()), ("mcp", conversations()),
                          ("http", requests()), ("rest", bodies())):
        (root / target).mkdir(parents=True, exist_ok=True)
        for name, data in cases:
            (root / target / name).write_bytes(data)


if __name__ == "__main__":
    main()
