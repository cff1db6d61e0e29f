# SPDX-License-Identifier: Apache-2.0
#| id = "R23"
#| title = "A fork bomb with a high limit of processes"
#| does = "Kernel stacks and page tables count as memory: it stays within 100 MB and one second."
#| options = ["--processes", "2000", "--time", "1s"]
#| time = 1
#| [expect]
#| status = "timeout|memory_limit"
#| verdicts = {start = "DID"}
#| wall_max = 5
#| [control]
#| kind = "plain"
#| verdicts = {start = "DID"}
#| status = "timeout"
#| time = 1
#| processes = 500
#| peak_over = 100
import signal

verdict("start", "DID")
while True:
    try:
        if os.fork() == 0:
            signal.pause()
    except OSError:
        pass
