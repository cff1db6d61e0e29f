# SPDX-License-Identifier: Apache-2.0
#| id = "N02"
#| title = "ptrace, process_vm_writev and /proc/PID/mem on the init and the template"
#| does = "EPERM, EACCES or ENOENT; nothing of them can be read or written."
#| [expect]
#| status = "ok"
#| verdicts = {attach = "DENIED EPERM", writev = "DENIED EPERM", mem = "DENIED (EACCES|EPERM|ENOENT)", maps = "DENIED (EACCES|EPERM|ENOENT)|empty", environ = "DENIED (EACCES|EPERM|ENOENT)", root = "DENIED (EACCES|EPERM|ENOENT)", fds = "DENIED (EACCES|EPERM|ENOENT)", outside = "DENIED (ESRCH|EPERM)"}
#| [control]
#| kind = "plain"
#| as = "root"
#| verdicts = {attach = "DID", writev = "DID|DENIED (EINVAL|EFAULT)", mem = "DID", maps = "DID", environ = "DID", root = "DID", fds = "DID", outside = "DENIED (ESRCH|EPERM)|DID"}
import signal


def read(path):
    with open(path, "rb") as file:
        return file.read(100)


in_child("attach", syscall, "ptrace", 0x4206, 1, 0, 0)
attempt("writev", syscall, "process_vm_writev", 1, None, 0, None, 0, 0)
attempt("mem", os.open, "/proc/1/mem", os.O_RDWR)
try:
    verdict("maps", "DID" if read("/proc/1/maps") else "empty")
except OSError as error:
    verdict("maps", "DENIED " + _errno.errorcode[error.errno])
attempt("environ", read, "/proc/1/environ")
attempt("root", os.listdir, "/proc/1/root")
attempt("fds", os.listdir, "/proc/1/fd")
# Pids of the host, should the number mean anything here.
attempt("outside", os.kill, 4_000_000, 0)
