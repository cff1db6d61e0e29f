# SPDX-License-Identifier: Apache-2.0
#| id = "S12"
#| title = "The code installs filters and rule sets of its own"
#| does = "It may only become stricter: whatever it installs, what was refused stays refused."
#| [expect]
#| status = "ok"
#| verdicts = {mount = "DENIED EPERM", canary = "DENIED ENOENT"}
#| [control]
#| kind = "plain"
#| as = "root"
#| verdicts = {mount = "DENIED (EFAULT|EINVAL|ENOENT|ENODEV)", canary = "DID"}
# One instruction: allow everything.
program = ctypes.create_string_buffer(b"\x06\x00\x00\x00\x00\x00\xff\x7f")


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


order = Program(1, ctypes.addressof(program))
try:
    syscall("seccomp", 1, 0, ctypes.byref(order))
except OSError:
    pass
attempt("mount", syscall, "mount", "none", "/proc/self", "nothing", 0, None)
attempt("canary", os.stat, "@CANARY@/canary.txt")
