# SPDX-License-Identifier: Apache-2.0
#| id = "R01"
#| title = "More memory than allowed"
#| does = "300 MB are written; the kernel's OOM evidence makes it memory_limit, not a plain signal 9."
#| [expect]
#| status = "memory_limit"
#| verdicts = {start = "DID"}
#| [without_cgroups]
#| status = "ok"
#| verdicts = {start = "DID", memory = "DENIED MemoryError"}
#| [control]
#| kind = "plain"
#| verdicts = {start = "DID", memory = "DID"}
verdict("start", "DID")
attempt("memory", lambda: bytearray(b"x") * (300 << 20))
