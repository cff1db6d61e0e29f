# SPDX-License-Identifier: Apache-2.0
#| id = "R22"
#| title = "Pages pushed to swap escape the memory limit"
#| does = "Swap of the run is 0: memory_limit."
#| needs = ["swap"]
#| [expect]
#| status = "memory_limit"
#| verdicts = {start = "DID"}
#| [control]
#| kind = "plain"
#| memory = 150
#| verdicts = {start = "DID", memory = "DID"}
verdict("start", "DID")
attempt("memory", lambda: bytearray(b"x") * (300 << 20))
