# SPDX-License-Identifier: Apache-2.0
#| id = "R05b"
#| title = "Filling /dev/shm"
#| does = "ENOSPC at the disk limit."
#| [expect]
#| status = "ok"
#| verdicts = {fill = "DENIED ENOSPC"}
#| [control]
#| kind = "host"
#| verdicts = {fill = "DID"}
def fill():
    with open("/dev/shm/@MARK@", "wb", buffering=0) as file:
        for _ in range(80):
            block = b"x" * (1 << 20)
            if file.write(block) < len(block):
                raise OSError(_errno.ENOSPC, "short write")


attempt("fill", fill)
