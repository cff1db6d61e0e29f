# SPDX-License-Identifier: Apache-2.0
#| id = "P22"
#| title = "The code waits for, kills and signals processes again after their end"
#| does = "Nothing of it disturbs the accounting of the run."
#| [expect]
#| status = "ok"
#| verdicts = {again = "DENIED ECHILD", kill = "DENIED ESRCH"}
#| [control]
#| kind = "plain"
#| verdicts = {again = "DENIED ECHILD", kill = "DENIED ESRCH"}
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
attempt("again", os.waitpid, child, 0)
attempt("kill", os.kill, child, 9)
