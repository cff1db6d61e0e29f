# SPDX-License-Identifier: Apache-2.0
#| id = "R02b"
#| title = "Only a child goes over the limit; the main process ends well"
#| does = "The OOM kill is told all the same: memory_limit."
#| [expect]
#| status = "memory_limit"
#| lacks = ["@child: exit 0"]
#| [control]
#| kind = "plain"
#| verdicts = {child = "exit 0"}
import time

child = os.fork()
if child == 0:
    kept = bytearray(b"x") * (150 << 20)
    time.sleep(0.5)  # where memory is sampled, what comes and goes in between is not seen
    os._exit(0)
status = os.waitpid(child, 0)[1]
if os.WIFEXITED(status):
    verdict("child", f"exit {os.WEXITSTATUS(status)}")
