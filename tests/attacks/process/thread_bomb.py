# SPDX-License-Identifier: Apache-2.0
#| id = "P02c"
#| title = "More threads than allowed"
#| does = "Threads and processes share one limit: the 100th thread is never there."
#| [expect]
#| status = "ok"
#| verdicts = {threads = "DENIED RuntimeError"}
#| processes_max = 64
#| [control]
#| kind = "plain"
#| verdicts = {threads = "DID"}
import threading

stop = threading.Event()


def start_all():
    for _ in range(100):
        threading.Thread(target=stop.wait).start()


attempt("threads", start_all)
stop.set()
