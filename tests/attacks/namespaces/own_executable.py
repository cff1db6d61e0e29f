# SPDX-License-Identifier: Apache-2.0
#| id = "N03"
#| title = "The interpreter's own binary is opened for writing"
#| does = "By /proc/self/exe, /proc/1/exe and reopened descriptors: refused, the binary cannot be altered."
#| [expect]
#| status = "ok"
#| verdicts = {self = "DENIED (EACCES|EROFS|ETXTBSY|EPERM|ENOENT)", init = "DENIED (EACCES|EROFS|ETXTBSY|EPERM|ENOENT)", reopened = "DENIED (EACCES|EROFS|ETXTBSY|EPERM|ENOENT)", child = "DENIED (EACCES|EROFS|ETXTBSY|EPERM|ENOENT)", library = "DENIED (EACCES|EROFS|EPERM)"}
#| [control]
#| kind = "host"
#| has = ["@library: DID"]
def reopen():
    fd = os.open("/proc/self/exe", os.O_PATH)
    os.close(os.open(f"/proc/self/fd/{fd}", os.O_WRONLY))


attempt("self", os.open, "/proc/self/exe", os.O_WRONLY)
attempt("init", os.open, "/proc/1/exe", os.O_WRONLY)
attempt("reopened", reopen)
in_child("child", os.open, f"/proc/{os.getppid() or 1}/exe", os.O_RDWR)
with open("/proc/self/maps") as maps:
    library = next(line.split()[5] for line in maps if "libc.so" in line)
attempt("library", os.open, library, os.O_WRONLY)
