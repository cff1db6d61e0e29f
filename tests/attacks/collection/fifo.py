# SPDX-License-Identifier: Apache-2.0
#| id = "X04"
#| title = "A created file is a FIFO"
#| does = "Refused with a reason; the collector does not hang in opening it."
#| out = true
#| [expect]
#| status = "ok"
#| verdicts = {fifo = "DID", blocks = "DID"}
#| refused = ["fifo"]
#| wall_max = 2.5
#| [control]
#| kind = "plain"
#| verdicts = {fifo = "DID", blocks = "DID"}
import signal

attempt("fifo", os.mkfifo, "fifo")
# That a plain open of it hangs:
child = os.fork()
if child == 0:
    os.open("fifo", os.O_RDONLY)
    os._exit(1)
signal.signal(signal.SIGALRM, lambda *_: os.kill(child, 9))
signal.setitimer(signal.ITIMER_REAL, 0.2)
verdict("blocks", "DID" if os.waitpid(child, 0)[1] == 9 else "no")
