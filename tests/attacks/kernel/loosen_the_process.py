# SPDX-License-Identifier: Apache-2.0
#| id = "S08"
#| title = "personality and prctl options that could loosen the fence"
#| does = "Refused with EPERM (or EINVAL); what is locked stays locked."
#| [expect]
#| status = "ok"
#| verdicts = {read_implies_exec = "DENIED EPERM", no_randomize = "DENIED EPERM", linux32 = "DENIED EPERM", dumpable = "DENIED EPERM", mm = "DENIED (EPERM|EINVAL)", securebits = "DENIED EPERM", ptracer = "DENIED (EPERM|EINVAL)", no_new_privs = "1", seccomp_off = "DENIED (EPERM|EINVAL|EFAULT)", keepcaps = "DENIED EPERM"}
#| [control]
#| kind = "plain"
#| as = "root"
#| has = ["@read_implies_exec: DID", "@no_randomize: DID", "@linux32: DID", "@dumpable: DID", "@securebits: DID", "@no_new_privs: 0", "@keepcaps: DID"]
PR_SET_DUMPABLE, PR_SET_MM, PR_SET_SECUREBITS, PR_SET_PTRACER, PR_SET_KEEPCAPS = \
    4, 35, 28, 0x59616D61, 8
in_child("read_implies_exec", syscall, "personality", 0x0400000)
in_child("no_randomize", syscall, "personality", 0x0040000)
in_child("linux32", syscall, "personality", 0x0008)
attempt("dumpable", syscall, "prctl", PR_SET_DUMPABLE, 1, 0, 0, 0)
attempt("mm", syscall, "prctl", PR_SET_MM, 6, 0x10000, 0, 0)
attempt("keepcaps", syscall, "prctl", PR_SET_KEEPCAPS, 1, 0, 0, 0)
in_child("securebits", syscall, "prctl", PR_SET_SECUREBITS, 0, 0, 0, 0)
attempt("ptracer", syscall, "prctl", PR_SET_PTRACER, -1, 0, 0, 0)
try:
    syscall("prctl", 38, 0, 0, 0, 0)
except OSError:
    pass
verdict("no_new_privs", status_of()["NoNewPrivs"])
attempt("seccomp_off", syscall, "prctl", 22, 0, 0, 0, 0)
