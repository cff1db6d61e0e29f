# SPDX-License-Identifier: Apache-2.0
#| id = "R04"
#| title = "Memory hidden in a memfd"
#| does = "Its pages are the run's: memory_limit (or memfd_create is refused with EPERM)."
#| [expect]
#| status = "memory_limit|ok"
#| lacks = ["@write: DID"]
#| [control]
#| kind = "plain"
#| has = ["@memfd: DID", "@write: DID"]
fd = attempt("memfd", os.memfd_create, "x")


def write_all():
    for _ in range(300):
        os.write(fd, b"x" * (1 << 20))


if fd is not None:
    attempt("write", write_all)
