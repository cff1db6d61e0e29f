# SPDX-License-Identifier: Apache-2.0
#| id = "P07"
#| title = "kill(-1, SIGKILL)"
#| does = "Reaches the run's own processes only; the code itself goes on and ends well."
#| [expect]
#| status = "ok"
#| verdicts = {kill = "DID", children = "9 9 9", after = "DID"}
#| [control]
#| kind = "plain"
#| verdicts = {kill = "DID", children = "9 9 9", after = "DID"}
import signal

children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        signal.pause()
    children.append(child)
attempt("kill", os.kill, -1, 9)
verdict("children", " ".join(str(os.WTERMSIG(os.waitpid(c, 0)[1])) for c in children))
verdict("after", "DID")
