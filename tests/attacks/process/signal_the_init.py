# SPDX-License-Identifier: Apache-2.0
#| id = "P08"
#| title = "Every signal to pid 1 and to the parent"
#| does = "Neither is stopped nor killed by it: the run goes on and its end is reported."
#| [expect]
#| status = "error"
#| exit_code = 7
#| verdicts = {sent = "DID", after = "DID"}
#| [control]
#| kind = "plain"
#| supervisor = true
#| status = "signal"
#| linger = 0.5
#| verdicts = {sent = "DID", after = "DID"}
import signal
import time

targets = {1, os.getppid()} - {0}
for target in targets:
    for number in [signal.SIGSTOP, signal.SIGTSTP, *range(1, 65)]:
        if target == os.getppid() and target != 1 and number in (signal.SIGCONT,):
            continue
        try:
            os.kill(target, number)
        except OSError:
            pass
verdict("sent", "DID")
time.sleep(0.2)
verdict("after", "DID")
sys.exit(7)
