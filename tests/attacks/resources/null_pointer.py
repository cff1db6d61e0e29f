# SPDX-License-Identifier: Apache-2.0
#| id = "R11c"
#| title = "A null pointer is read"
#| does = "crashed by signal 11; what was printed before, flushed or not by Python, is not invented."
#| [expect]
#| status = "crashed"
#| signal = 11
#| verdicts = {before = "DID"}
#| [control]
#| kind = "plain"
#| status = -11
#| verdicts = {before = "DID"}
verdict("before", "DID")
ctypes.string_at(0)
