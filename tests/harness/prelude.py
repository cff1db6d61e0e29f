# SPDX-License-Identifier: Apache-2.0
# Put before the code of every attack: prints one line `@name: verdict` for each thing it tries.
import ctypes
import errno as _errno
import os
import sys

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_NR = {}  # filled in by the harness: the numbers of the system calls that the payload names


def verdict(name, text):
    os.write(1, f"@{name}: {text}\n".encode())


def attempt(name, function, *arguments, **keywords):
    """DID, DENIED with the errno's name, or DENIED with the name of another exception."""
    try:
        value = function(*arguments, **keywords)
    except OSError as error:
        verdict(name, "DENIED " + _errno.errorcode.get(error.errno, str(error.errno)))
    except BaseException as error:
        verdict(name, "DENIED " + type(error).__name__)
    else:
        verdict(name, "DID")
        return value


def in_child(name, function, *arguments, **keywords):
    """As attempt, in a forked child; KILLED with the signal when it does not survive."""
    child = os.fork()
    if child == 0:
        attempt(name, function, *arguments, **keywords)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        verdict(name, f"KILLED {os.WTERMSIG(status)}")


def _argument(value):
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, int):
        return ctypes.c_long(value)
    return value


def syscall(call, *arguments):
    """The raw system call, by name or number; raises OSError."""
    ctypes.set_errno(0)
    number = call if isinstance(call, int) else _NR[call]
    value = _libc.syscall(ctypes.c_long(number), *map(_argument, arguments))
    if value == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(call))
    return value


def status_of(pid="self"):
    with open(f"/proc/{pid}/status") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
