# SPDX-License-Identifier: Apache-2.0
#| id = "P19b"
#| title = "Children that end as fast as they can be made (SIGCHLD storm)"
#| does = "No EINTR and no lost status in the supervision: the exit code arrives."
#| [expect]
#| status = "error"
#| exit_code = 3
#| verdicts = {storm = "DID"}
#| [control]
#| kind = "plain"
#| status = 3
#| verdicts = {storm = "DID"}
import time

end = time.monotonic() + 0.5
while time.monotonic() < end:
    try:
        if os.fork() == 0:
            if os.fork() == 0:
                os._exit(1)
            os._exit(0)
    except OSError:
        pass
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        pass
verdict("storm", "DID")
sys.exit(3)
