# SPDX-License-Identifier: Apache-2.0
#| id = "X06"
#| title = "Sparse files of 1 TiB and 1 PiB"
#| does = "Refused by size with a reason (or never made: EFBIG); the memory of execpy does not grow."
#| out = true
#| [expect]
#| status = "ok"
#| verdicts = {tera = "DID|DENIED EFBIG", peta = "DID|DENIED EFBIG"}
#| files = ["small.txt"]
#| absent = ["tera", "peta"]
#| [control]
#| kind = "plain"
#| has = ["@tera: DID"]
def make(name, size):
    with open(name, "wb") as file:
        try:
            os.truncate(file.fileno(), size)
        except OSError:
            os.unlink(name)
            raise


with open("small.txt", "w") as file:
    file.write("small")
attempt("tera", make, "tera", 1 << 40)
attempt("peta", make, "peta", 1 << 50)
