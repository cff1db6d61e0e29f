# SPDX-License-Identifier: Apache-2.0
#| id = "R12b"
#| title = "Sleep without end"
#| does = "timeout, although next to no CPU time was used."
#| options = ["--time", "1s", "--cpu", "1s"]
#| time = 1
#| [expect]
#| status = "timeout"
#| verdicts = {start = "DID"}
#| [control]
#| kind = "plain"
#| status = "timeout"
#| time = 1.5
#| verdicts = {start = "DID"}
import time

verdict("start", "DID")
time.sleep(3600)
