# SPDX-License-Identifier: Apache-2.0
"""An engine of ill manners: speaks to a warden in whatever frames a test wants (docs/protocol.md)."""
import array
import functools
import re
import select
import socket
import struct
import time

from . import host

MAGIC = 0x5845


@functools.lru_cache(None)
def numbers():
    """Name -> number of every message and field, as src/proto/messages.h counts them."""
    text = (host.REPOSITORY / "src/proto/messages.h").read_text()
    found = {}
    for kind in ("message", "field_name"):
        at = 0
        for name, value in re.findall(r"^\t(\w+)(?: = (\d+))?,",
                                      re.search(rf"enum {kind} \{{(.*?)\n\}};", text, re.DOTALL)[1],
                                      re.MULTILINE):
            at = int(value) if value else at + 1
            found[name.removeprefix("MESSAGE_") if kind == "message" else name] = at
    return found


def field(name, value):
    if isinstance(value, int):
        value = struct.pack("<Q", value)
    elif isinstance(value, str):
        value = value.encode()
    number = name if isinstance(name, int) else numbers()["FIELD_" + name]
    return struct.pack("<HI", number, len(value)) + value


def frame(message, *fields, id=0, magic=MAGIC, length=None):
    """fields: (name, value) pairs, or bytes as they are."""
    body = b"".join(f if isinstance(f, bytes) else field(*f) for f in fields)
    kind = message if isinstance(message, int) else numbers()[message]
    return struct.pack("<HHIQ", magic, kind, len(body) if length is None else length, id) + body


def request(code, policy):
    """A whole REQUEST frame; `policy` are the bytes of an encoded policy, taken from elsewhere."""
    return frame("REQUEST", ("POLICY", policy), ("CODE", code), ("WALL_US", 5000000))


class Peer:
    """A connection to a daemon's socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(30)
        self.socket.connect(str(path))
        self.fds = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.drop_fds()
        self.socket.close()

    def drop_fds(self):
        for fd in self.fds:
            socket.close(fd)
        self.fds.clear()

    def say(self, data, fds=()):
        """False when the warden has ended the connection."""
        try:
            socket.send_fds(self.socket, [data], list(fds))
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def hear(self, seconds=10):
        """(message's number, id, {field's number: last value}) or None at the end; raises TimeoutError."""
        if not select.select([self.socket], [], [], seconds)[0]:
            raise TimeoutError
        try:
            data, ancillary, _, _ = self.socket.recvmsg(1 << 18, socket.CMSG_SPACE(4 * 64))
        except ConnectionResetError:
            return None
        for _, kind, content in ancillary:
            fds = array.array("i")
            fds.frombytes(content[:len(content) - len(content) % 4])
            self.fds += fds
        if not data:
            return None
        magic, kind, length, id = struct.unpack_from("<HHIQ", data)
        assert magic == MAGIC and length == len(data) - 16
        at, fields = 16, {}
        while at < len(data):
            name, size = struct.unpack_from("<HI", data, at)
            fields[name] = data[at + 6:at + 6 + size]
            at += 6 + size
        return kind, id, fields

    def hear_all(self, seconds):
        """What comes within so many seconds; ends with None when the warden hung up."""
        found, deadline = [], time.monotonic() + seconds
        while True:
            try:
                heard = self.hear(max(0, deadline - time.monotonic()))
            except TimeoutError:
                return found
            found.append(heard)
            if heard is None:
                return found

    def hangs_up(self, seconds=10):
        """True when the warden ends the connection."""
        return None in self.hear_all(seconds)


def limits(**changes):
    """The bytes of a run's limits, in the order of src/policy/limits.h."""
    values = {"time_ms": 5000, "cpu_ms": 5000, "memory_bytes": 100 << 20, "processes": 64,
              "output_bytes": 1 << 20, "disk_bytes": 64 << 20, **changes}
    return b"".join(struct.pack("<Q", value) for value in values.values())


def recorded(product, directory, code, *options):
    """The ACQUIRE with which `execpy run OPTIONS -c CODE` asks a daemon, as a function of the run's id.

    Its request holds an encoded policy, which only the engine can write."""
    path = directory / "recorder"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        path.chmod(0o777)
        listener.listen()
        listener.settimeout(30)
        process = product.start("run", "--policy", "open", *options, "-c", code, daemon=True,
                                env={"EXECPY_SOCKET": str(path)})
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(30)
            connection.send(frame("READY", ("CGROUP", "none")))
            data = connection.recv(1 << 18)
        process.communicate(timeout=30)
    path.unlink()
    assert struct.unpack_from("<HH", data) == (MAGIC, numbers()["ACQUIRE"]), data[:16]
    return lambda id: data[:8] + struct.pack("<Q", id) + data[16:]
