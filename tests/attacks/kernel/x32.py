# SPDX-License-Identifier: Apache-2.0
#| id = "S02c"
#| title = "System calls with the x32 bit in their number"
#| does = "Refused with ENOSYS or EPERM, or killed by SIGSYS, whatever the kernel knows of x32."
#| needs = ["x86-64"]
#| [expect]
#| status = "ok"
#| verdicts = {x32 = "DENIED (ENOSYS|EPERM)|KILLED 31"}
#| [control]
#| kind = "none"
#| reason = "kernels without the x32 ABI refuse it by themselves (ENOSYS); with it the call works"
in_child("x32", lambda: syscall(0x40000000 + 39))
