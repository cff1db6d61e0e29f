# SPDX-License-Identifier: Apache-2.0
#| id = "P01"
#| title = "A daemon by double fork, in its own session, that ignores SIGHUP"
#| does = "The daemon would leave a file after half a second; nothing of the run lives that long."
#| [expect]
#| status = "ok"
#| verdicts = {daemon = "DID"}
#| absent = ["alive"]
#| wall_max = 2.4
#| [control]
#| kind = "plain"
#| verdicts = {daemon = "DID"}
#| linger = 0.9
#| leaves = ["alive"]
#| alive = true
import signal
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        for fd in range(3):
            os.close(fd)
        time.sleep(0.5)
        open("alive", "w").close()
        time.sleep(60)
    os._exit(0)
os.wait()
verdict("daemon", "DID")
