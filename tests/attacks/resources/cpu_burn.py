# SPDX-License-Identifier: Apache-2.0
#| id = "R12"
#| title = "CPU time without end"
#| does = "cpu_limit, told by the kernel's accounting, well before the wall time."
#| options = ["--cpu", "1s", "--time", "10s"]
#| time = 3
#| [expect]
#| status = "cpu_limit"
#| verdicts = {start = "DID"}
#| [control]
#| kind = "plain"
#| status = "timeout"
#| time = 1.5
#| verdicts = {start = "DID"}
verdict("start", "DID")
while True:
    pass
