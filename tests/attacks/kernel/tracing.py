# SPDX-License-Identifier: Apache-2.0
#| id = "S06b"
#| title = "Tracing, reading and stopping a child of one's own"
#| does = "ptrace is refused with EPERM even among the run's own processes."
#| [expect]
#| status = "ok"
#| verdicts = {traceme = "DENIED EPERM", attach = "DENIED EPERM", readv = "DENIED EPERM", getfd = "DENIED EPERM"}
#| [control]
#| kind = "plain"
#| verdicts = {traceme = "DID", attach = "DID", readv = "DENIED EINVAL|DID", getfd = "DENIED EBADF"}
import signal

child = os.fork()
if child == 0:
    signal.pause()
attempt("attach", syscall, "ptrace", 0x4206, child, 0, 0)
attempt("readv", syscall, "process_vm_readv", child, None, 0, None, 0, 0)
attempt("getfd", syscall, "pidfd_getfd", -1, 0, 0)
in_child("traceme", syscall, "ptrace", 0, 0, 0, 0)
os.kill(child, 9)
