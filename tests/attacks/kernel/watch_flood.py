# SPDX-License-Identifier: Apache-2.0
#| id = "S14c"
#| title = "The kernel watch: a flood of notices, and callers killed in the middle of theirs"
#| does = "Neither hangs nor opens anything: honest writes go on to the end."
#| options = ["--policy", "standard", "--time", "60s", "--cpu", "60s"]
#| [expect]
#| status = "ok"
#| verdicts = {done = "DID"}
#| [control]
#| kind = "plain"
#| verdicts = {done = "DID"}
import signal
import time


def flood():
    for round_number in range(20):
        child = os.fork()
        if child == 0:
            while True:
                os.close(os.open("flood", os.O_WRONLY | os.O_CREAT))
        for _ in range(200):
            os.close(os.open("mine", os.O_WRONLY | os.O_CREAT))
        time.sleep(0.001 * (round_number % 5))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


attempt("done", flood)
