# SPDX-License-Identifier: Apache-2.0
#| id = "S01"
#| title = "Calls that are allowed with some arguments, with others"
#| does = "The allowed form works; the perturbed one is refused with the errno that is written here. (The generated test of the policy table covers every rule.)"
#| [expect]
#| status = "ok"
#| verdicts = {fork = "DID", clone_newuser = "DENIED EPERM", personality_query = "DID", personality_set = "DENIED EPERM", unix = "DID", netlink = "DENIED EAFNOSUPPORT", prctl_name = "DID", prctl_dumpable = "DENIED EPERM", high_bits = "DENIED (EPERM|EINVAL)", tiocsti = "DENIED EPERM"}
#| [control]
#| kind = "plain"
#| as = "root"
#| verdicts = {fork = "DID", clone_newuser = "DID", personality_query = "DID", personality_set = "DID", unix = "DID", netlink = "DID", prctl_name = "DID", prctl_dumpable = "DID", high_bits = "DID|DENIED EINVAL", tiocsti = "DENIED (ENOTTY|EIO)"}
import fcntl
import signal
import socket

CLONE_NEWUSER = 0x10000000


def clone(flags):
    child = syscall("clone", flags | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


attempt("fork", clone, 0)
attempt("clone_newuser", clone, CLONE_NEWUSER)
attempt("personality_query", syscall, "personality", 0xFFFFFFFF)
attempt("personality_set", syscall, "personality", 0x0400000)
attempt("unix", lambda: socket.socket(socket.AF_UNIX).close())
attempt("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close())
attempt("prctl_name", syscall, "prctl", 15, "name", 0, 0, 0)
attempt("prctl_dumpable", syscall, "prctl", 4, 1, 0, 0, 0)
# The upper half of a register must not hide a flag, nor make one of nothing.
attempt("high_bits", syscall, "unshare", CLONE_NEWUSER | 1 << 40)
attempt("tiocsti", fcntl.ioctl, 0, 0x5412, b"x")
