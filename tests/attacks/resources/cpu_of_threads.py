# SPDX-License-Identifier: Apache-2.0
#| id = "R12d"
#| title = "CPU time of several processes adds up"
#| does = "Two children burn at once; the CPU limit of 1 s is reached before 1 s of wall time where there are two processors."
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
for _ in range(2):
    if os.fork() == 0:
        while True:
            pass
os.wait()
