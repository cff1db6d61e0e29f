# SPDX-License-Identifier: Apache-2.0
#| id = "P10b"
#| title = "The main process ends and leaves 50 zombies"
#| does = "None of them is left on the host."
#| [expect]
#| status = "ok"
#| verdicts = {zombies = "50"}
#| [control]
#| kind = "plain"
#| verdicts = {zombies = "50"}
import time

for _ in range(50):
    if os.fork() == 0:
        os._exit(0)
count, until = 0, time.monotonic() + 4
while count < 50 and time.monotonic() < until:
    time.sleep(0.02)
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with open(f"/proc/{pid}/stat") as stat:
            count += stat.read().rsplit(")", 1)[1].split()[:2] == ["Z", str(os.getpid())]
verdict("zombies", str(count))
os._exit(0)
