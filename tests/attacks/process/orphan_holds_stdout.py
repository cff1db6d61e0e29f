# SPDX-License-Identifier: Apache-2.0
#| id = "P09"
#| title = "The main process ends, a child keeps stdout open"
#| does = "The result is there when the main process has ended, after a short drain; the child is killed."
#| [expect]
#| status = "ok"
#| verdicts = {main = "DID"}
#| absent = ["alive"]
#| wall_max = 2.4
#| [control]
#| kind = "plain"
#| verdicts = {main = "DID"}
#| linger = 0.9
#| leaves = ["alive"]
#| alive = true
import time

if os.fork() == 0:
    time.sleep(0.5)
    open("alive", "w").close()
    while True:
        time.sleep(0.1)
        os.write(1, b".") if time.monotonic() < 0 else None
verdict("main", "DID")
