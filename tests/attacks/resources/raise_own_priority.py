# SPDX-License-Identifier: Apache-2.0
#| id = "R17"
#| title = "The code gives itself a higher priority"
#| does = "Neither nice, nor a real-time class, nor I/O priority can be won: EPERM."
#| [expect]
#| status = "ok"
#| verdicts = {nice = "DENIED (EPERM|EACCES)", fifo = "DENIED EPERM", deadline = "DENIED (EPERM|EINVAL)", ioprio = "DENIED EPERM"}
#| [control]
#| kind = "plain"
#| as = "root"
#| verdicts = {nice = "DID", fifo = "DID", deadline = "DID|DENIED (EBUSY|EPERM)", ioprio = "DID"}
import struct

attempt("nice", os.setpriority, os.PRIO_PROCESS, 0, -20)
attempt("fifo", os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))
os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0)) if os.geteuid() == 0 else None
attempt("ioprio", syscall, "ioprio_set", 1, 0, 1 << 13)
deadline = struct.pack("IIQiIQQQ", 48, 6, 0, 0, 0, 10**6, 10**7, 10**7)
attempt("deadline", syscall, "sched_setattr", 0, ctypes.c_char_p(deadline), 0)
