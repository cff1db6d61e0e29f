# SPDX-License-Identifier: Apache-2.0
#| id = "R15"
#| title = "Many small files beyond the limit, and the error is not caught"
#| does = "disk_limit, because it was the end of the run."
#| [expect]
#| status = "disk_limit"
#| has = ["No space left on device"]
#| [control]
#| kind = "plain"
#| has = ["@all: DID"]
os.mkdir("many")
for number in range(700):
    with open(f"many/{number}", "wb") as file:
        file.write(b"x" * (100 << 10))
verdict("all", "DID")
