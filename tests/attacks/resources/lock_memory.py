# SPDX-License-Identifier: Apache-2.0
#| id = "R23c"
#| title = "Memory is locked, and pipes are made as large as possible"
#| does = "Locked pages and pipe buffers are bounded: the run cannot hold on to more than its limit."
#| [expect]
#| status = "memory_limit|ok"
#| lacks = ["@pipes: DID"]
#| [control]
#| kind = "plain"
#| as = "root"
#| has = ["@pipes: DID"]
import fcntl

kept = []


def fill_pipes():
    for _ in range(200):
        read, write = os.pipe()
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 1 << 20)
        os.set_blocking(write, False)
        if os.write(write, b"x" * (1 << 20)) < 1 << 20:
            raise OSError(_errno.EAGAIN, "short")


attempt("pipes", fill_pipes)
