# SPDX-License-Identifier: Apache-2.0
#| id = "P03"
#| title = "A chain of processes, each of which forks the next and ends"
#| does = "The pid moves all the time, so killing pids from a list never catches it."
#| [expect]
#| status = "ok"
#| verdicts = {chain = "DID"}
#| absent = ["alive"]
#| wall_max = 2.4
#| [control]
#| kind = "plain"
#| verdicts = {chain = "DID"}
#| linger = 0.9
#| leaves = ["alive"]
import time

end = time.monotonic() + 30
mark = time.monotonic() + 0.5
if os.fork() == 0:
    for fd in range(3):
        os.close(fd)
    while time.monotonic() < end:
        if time.monotonic() > mark:
            open("alive", "w").close()
        try:
            if os.fork() != 0:
                os._exit(0)
        except OSError:
            pass
    os._exit(0)
verdict("chain", "DID")
