# SPDX-License-Identifier: Apache-2.0
#| id = "N06"
#| title = "A user namespace inside, which would give all capabilities again"
#| does = "EPERM by every way in; the limit of namespaces is zero besides."
#| files = ["tool=helper:payload"]
#| [expect]
#| status = "ok"
#| verdicts = {unshare = "DENIED (EPERM|ENOSPC)", clone = "DENIED (EPERM|ENOSPC)", clone3 = "DENIED ENOSYS", native = "DENIED .*|refused"}
#| [control]
#| kind = "plain"
#| verdicts = {unshare = "DID", clone = "DID", clone3 = "DID", native = "DID"}
import signal
import struct
import subprocess

USER = 0x10000000


def clone():
    child = syscall("clone", USER | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def clone3():
    order = struct.pack("11Q", USER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, 0)
    child = syscall("clone3", ctypes.c_char_p(order), len(order))
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


in_child("unshare", syscall, "unshare", USER)
attempt("clone", clone)
attempt("clone3", clone3)
try:
    os.chmod("tool", 0o755)
    done = subprocess.run(["./tool", "try-syscall", str(_NR["unshare"]), str(USER)])
    verdict("native", "DID" if done.returncode == 0 else "refused")
except OSError as error:
    verdict("native", "DENIED " + _errno.errorcode[error.errno])
