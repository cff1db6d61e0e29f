# SPDX-License-Identifier: Apache-2.0
#| id = "R05c"
#| title = "Half the limit in each of three places"
#| does = "The disk limit is one for /workspace, /tmp and /dev/shm together."
#| [expect]
#| status = "ok"
#| verdicts = {fill = "DENIED ENOSPC"}
#| [control]
#| kind = "host"
#| verdicts = {fill = "DID"}
def fill():
    for directory in (".", "/tmp", "/dev/shm"):
        with open(directory + "/@MARK@", "wb", buffering=0) as file:
            for _ in range(32):
                block = b"x" * (1 << 20)
                if file.write(block) < len(block):
                    raise OSError(_errno.ENOSPC, "short write")


attempt("fill", fill)
