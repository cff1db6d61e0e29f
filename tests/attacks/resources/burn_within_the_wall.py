# SPDX-License-Identifier: Apache-2.0
#| id = "R12c"
#| title = "CPU time without end, but the wall time is shorter"
#| does = "timeout, never cpu_limit."
#| options = ["--time", "1s", "--cpu", "5s"]
#| time = 1
#| [expect]
#| status = "timeout"
#| verdicts = {start = "DID"}
#| [control]
#| kind = "plain"
#| status = "timeout"
#| time = 1.5
#| verdicts = {start = "DID"}
verdict("start", "DID")
while True:
    pass
