# SPDX-License-Identifier: Apache-2.0
#| id = "P19"
#| title = "512 processes with interval timers, all signalling each other's parent"
#| does = "The supervision is not starved: the wall time ends it within the grace."
#| options = ["--time", "1s", "--processes", "512", "--memory", "1G"]
#| time = 1
#| [expect]
#| status = "timeout"
#| verdicts = {start = "DID"}
#| processes_max = 512
#| [control]
#| kind = "plain"
#| status = "timeout"
#| time = 1
#| verdicts = {start = "DID"}
import signal

verdict("start", "DID")
parent = os.getpid()
signal.signal(signal.SIGALRM, lambda *_: None)
for _ in range(500):
    try:
        if os.fork() == 0:
            break
    except OSError:
        break
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
while True:
    signal.pause()
    if os.getpid() != parent:
        os.kill(parent, signal.SIGALRM)
