#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A fork server as one would write it in Python: imports done once, a fork for each run.

    fork_server.py SOCKET FILE…     the files import and warm up

The wire is that of bench/client/server.c. The child runs the code, answers by itself, and only
then ends; the parent answers for children that were killed. Its limits: address space, time.
"""
import gc
import os
import resource
import selectors
import signal
import socket
import struct
import sys
import time
import traceback
import warnings

MEMORY = 100 << 20  # beyond what the server has
FILE = "plot.png"


def own_address_space():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def answer(connection, status, out=b"", said=b"", file=b""):
    status = status.encode()
    connection.sendall(struct.pack("<4I", len(status), len(out), len(said), len(file))
                       + status + out + said + file)


def contents(fd):
    return os.pread(fd, os.fstat(fd).st_size, 0)


def child(connection, code, wants_file, limit):
    """One run; never returns."""
    out, said = os.memfd_create("stdout"), os.memfd_create("stderr")
    os.dup2(out, 1)
    os.dup2(said, 2)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    place = f"/workspace/{os.getpid()}"
    os.mkdir(place)
    os.chdir(place)
    sys.stdout = open(1, "w", closefd=False)
    sys.stderr = open(2, "w", closefd=False)
    status = "0"
    try:
        exec(compile(code, "main.py", "exec"), {"__name__": "__main__"})
    except BaseException:
        status = "1"
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    file = b""
    if wants_file and os.path.exists(FILE):
        with open(FILE, "rb") as made:
            file = made.read()
        os.unlink(FILE)
    answer(connection, status, contents(out), contents(said), file)
    os.chdir("/")
    os.rmdir(place)
    os._exit(0)


class Server:
    def __init__(self, path):
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(64)
        self.selector.register(self.listener, selectors.EVENT_READ, self.accept)
        self.limit = own_address_space() + MEMORY
        self.runs = {}  # pid: [connection, when it must end]

    def accept(self, _):
        connection, _ = self.listener.accept()
        self.selector.register(connection, selectors.EVENT_READ, self.request)

    def request(self, connection):
        data = connection.recv(1 << 16)
        if not data:
            self.selector.unregister(connection)
            connection.close()
            return
        time_ms, wants_file, length = struct.unpack_from("<3I", data)
        while len(data) < 12 + length:
            data += connection.recv(1 << 16)
        pid = os.fork()
        if pid == 0:
            child(connection, data[12:], wants_file, self.limit)
        self.runs[pid] = [connection, time.monotonic() + (time_ms or 5000) / 1000]
        self.selector.register(os.pidfd_open(pid), selectors.EVENT_READ, self.ended(pid))

    def ended(self, pid):
        def reap(pidfd):
            self.selector.unregister(pidfd)
            os.close(pidfd)
            _, status = os.waitpid(pid, 0)
            connection, _ = self.runs.pop(pid)
            if os.WIFSIGNALED(status):
                answer(connection, f"signal {os.WTERMSIG(status)}")
        return reap

    def serve(self):
        while True:
            ends = min((end for _, end in self.runs.values()), default=None)
            patience = None if ends is None else max(0, ends - time.monotonic())
            for key, _ in self.selector.select(patience):
                key.data(key.fileobj)
            now = time.monotonic()
            for pid, run in self.runs.items():
                if run[1] <= now:
                    run[1] = now + 60
                    os.kill(pid, signal.SIGKILL)


def warm_up(files):
    """Imports and first uses, the same that our templates have behind them."""
    warnings.simplefilter("ignore")
    for path in files:
        with open(path, encoding="utf-8") as file:
            exec(compile(file.read(), path, "exec"), {"__name__": "warm_up"})
    warnings.resetwarnings()


if __name__ == "__main__":
    warm_up(sys.argv[2:])
    gc.collect()
    gc.freeze()
    Server(sys.argv[1]).serve()
