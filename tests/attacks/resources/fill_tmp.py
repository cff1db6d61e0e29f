# SPDX-License-Identifier: Apache-2.0
#| id = "R05"
#| title = "Filling /tmp"
#| does = "ENOSPC at the disk limit, caught by the code, which then ends well."
#| [expect]
#| status = "ok"
#| verdicts = {fill = "DENIED ENOSPC", size = "[3-6]\\d"}
#| [control]
#| kind = "host"
#| verdicts = {fill = "DID", size = "80"}
size = 0


def fill():
    global size
    with open("/tmp/@MARK@", "wb", buffering=0) as file:
        while size < 80:
            block = b"x" * (1 << 20)
            if file.write(block) < len(block):
                raise OSError(_errno.ENOSPC, "short write")
            size += 1


attempt("fill", fill)
verdict("size", str(size))
os.unlink("/tmp/@MARK@")
