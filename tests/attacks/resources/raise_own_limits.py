# SPDX-License-Identifier: Apache-2.0
#| id = "R17b"
#| title = "The code raises its hard limits and lowers its OOM score"
#| does = "EPERM for each limit (EACCES for the score); the limits of other processes cannot be set either."
#| [expect]
#| status = "ok"
#| verdicts = {core = "DENIED EPERM", nofile = "DENIED EPERM", fsize = "DENIED EPERM|no limit", memlock = "DENIED EPERM|no limit", oom = "DENIED (EPERM|EACCES|EROFS|ENOENT)", init = "DENIED (EPERM|EINVAL)"}
#| [control]
#| kind = "plain"
#| as = "root"
#| needs = ["resource-capability"]
#| verdicts = {core = "DID", nofile = "DID", fsize = "DID|no limit", memlock = "DID|no limit", oom = "DID", init = "DID"}
import resource
import struct


def raise_limit(which):
    old = ctypes.create_string_buffer(16)
    syscall("prlimit64", 0, which, None, old)
    soft, hard = struct.unpack("QQ", old.raw)
    if hard == 2**64 - 1:
        if which in (resource.RLIMIT_FSIZE, resource.RLIMIT_MEMLOCK):
            raise LookupError
        hard = 2**64 - 2
        syscall("prlimit64", 0, which, ctypes.c_char_p(struct.pack("QQ", 0, hard)), None)
    syscall("prlimit64", 0, which, ctypes.c_char_p(struct.pack("QQ", 0, hard + 1)), None)


def oom():
    with open("/proc/self/oom_score_adj", "r+") as file:
        score = int(file.read())
        file.seek(0)
        file.write(str(score - 1))


for name in ("core", "nofile", "fsize", "memlock"):
    try:
        raise_limit(getattr(resource, "RLIMIT_" + name.upper()))
        verdict(name, "DID")
    except LookupError:
        verdict(name, "no limit")
    except OSError as error:
        verdict(name, "DENIED " + _errno.errorcode[error.errno])
attempt("oom", oom)
attempt("init", syscall, "prlimit64", 1, resource.RLIMIT_NOFILE,
        ctypes.c_char_p(struct.pack("QQ", 9, 9)), None)
