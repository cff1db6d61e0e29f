# SPDX-License-Identifier: Apache-2.0
#| id = "C01"
#| title = "A secret in the environment of whoever started execpy"
#| does = "It is in no environment that the code can read, and not in the memory it inherited."
#| [expect]
#| status = "ok"
#| verdicts = {os_environ = "clean", self_environ = "clean|DENIED .*", init_environ = "clean|DENIED .*", auxiliary = "clean|DENIED .*", memory = "clean"}
#| [control]
#| kind = "plain"
#| verdicts = {os_environ = "secret", self_environ = "secret", init_environ = "secret|DENIED .*", auxiliary = "clean", memory = "secret"}
import re

NAME = b"EXECPY_TEST_" + b"SECRET="


def look(name, read):
    try:
        verdict(name, "secret" if NAME in read() else "clean")
    except OSError as error:
        verdict(name, "DENIED " + _errno.errorcode[error.errno])


def file(path):
    with open(path, "rb") as source:
        return source.read()


def memory():
    """The stack and the heap, through the address space (the code's own constants excepted)."""
    with open("/proc/self/maps") as maps:
        areas = [line.split()[0] for line in maps if "[stack]" in line]
    found = b""
    for area in areas:
        start, end = (int(x, 16) for x in area.split("-"))
        found += ctypes.string_at(start, end - start) if "/" not in area else b""
    # The joined name itself may be on the stack; what counts is a value behind it.
    return NAME if re.search(NAME + rb"[0-9a-z]{20}", found) else b""


look("os_environ", lambda: b"\0".join(k + b"=" + v for k, v in os.environb.items()))
look("self_environ", lambda: file("/proc/self/environ"))
look("init_environ", lambda: file("/proc/1/environ"))
look("auxiliary", lambda: file("/proc/self/cmdline"))
look("memory", memory)
