# SPDX-License-Identifier: Apache-2.0
#| id = "P09b"
#| title = "The main process ends, a child writes to stdout without end"
#| does = "A busy stdout does not prolong the run, and does not end it by output_limit either."
#| [expect]
#| status = "ok"
#| verdicts = {main = "DID"}
#| wall_max = 2.4
#| [control]
#| kind = "plain"
#| verdicts = {main = "DID"}
#| linger = 0.3
#| alive = true
import time

verdict("main", "DID")
if os.fork() == 0:
    while True:
        time.sleep(0.01)
        os.write(1, b".\n")
