# SPDX-License-Identifier: Apache-2.0
#| id = "P02"
#| title = "More processes than allowed"
#| does = "100 children are asked for; the 64th process is refused with EAGAIN, and the peak is told."
#| [expect]
#| status = "ok"
#| verdicts = {fork = "DENIED EAGAIN", at = "(5\\d|6[0-3])"}
#| processes_min = 50
#| processes_max = 64
#| [without_cgroups]
#| processes_min = 1
#| [control]
#| kind = "plain"
#| verdicts = {fork = "DID", at = "100"}
import signal

children = []


def fork_all():
    for _ in range(100):
        child = os.fork()
        if child == 0:
            signal.pause()
        children.append(child)


attempt("fork", fork_all)
verdict("at", str(len(children)))
for child in children:
    os.kill(child, 9)
    os.waitpid(child, 0)
