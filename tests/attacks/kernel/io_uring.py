# SPDX-License-Identifier: Apache-2.0
#| id = "S05"
#| title = "io_uring"
#| does = "All three calls are refused."
#| [expect]
#| status = "ok"
#| verdicts = {setup = "DENIED (EPERM|ENOSYS)", enter = "DENIED (EPERM|ENOSYS)", register = "DENIED (EPERM|ENOSYS)"}
#| [control]
#| kind = "plain"
#| as = "root"
#| verdicts = {setup = "DID", enter = "DENIED EBADF", register = "DENIED (EBADF|EINVAL)"}
attempt("setup", syscall, "io_uring_setup", 4, ctypes.create_string_buffer(120))
attempt("enter", syscall, "io_uring_enter", -1, 0, 0, 0, None, 0)
attempt("register", syscall, "io_uring_register", -1, 0, None, 0)
