# SPDX-License-Identifier: Apache-2.0
#| id = "P10"
#| title = "A thousand orphans that end"
#| does = "The cell's init reaps them, so that they do not use up the limit of 64 processes."
#| [expect]
#| status = "ok"
#| verdicts = {orphans = "DID", count = "1000"}
#| [control]
#| kind = "plain"
#| verdicts = {orphans = "DID", count = "1000"}
#| time = 20
import time

count = 0


def make():
    global count
    while count < 1000:
        child = os.fork()
        if child == 0:
            for _ in range(20):
                while True:
                    try:
                        if os.fork() == 0:
                            os._exit(0)
                        break
                    except BlockingIOError:
                        time.sleep(0.001)
            os._exit(0)
        os.waitpid(child, 0)
        count += 20


attempt("orphans", make)
verdict("count", str(count))
