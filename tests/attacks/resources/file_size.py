# SPDX-License-Identifier: Apache-2.0
#| id = "R16"
#| title = "One file beyond the disk limit, by truncate and by writing far out"
#| does = "EFBIG or ENOSPC; SIGXFSZ does not end the run unexplained."
#| [expect]
#| status = "ok"
#| verdicts = {write = "DENIED (EFBIG|ENOSPC)", allocate = "DENIED (EFBIG|ENOSPC)"}
#| [control]
#| kind = "plain"
#| verdicts = {write = "DID", allocate = "DID"}
def write():
    with open("big", "wb", buffering=0) as file:
        for _ in range(70):
            block = b"x" * (1 << 20)
            if file.write(block) < len(block):
                file.write(block)


attempt("write", write)
os.unlink("big")
with open("big", "wb") as file:
    attempt("allocate", os.posix_fallocate, file.fileno(), 0, 70 << 20)
os.unlink("big")
