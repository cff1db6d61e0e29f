# SPDX-License-Identifier: Apache-2.0
#| id = "R14"
#| title = "CPU time burnt in grandchildren that nobody waits for"
#| does = "It is counted all the same: cpu_limit, although the main process used next to nothing."
#| options = ["--cpu", "1s", "--time", "10s"]
#| time = 5
#| [expect]
#| status = "cpu_limit"
#| lacks = ["@escaped"]
#| [control]
#| kind = "plain"
#| verdicts = {escaped = "DID"}
import resource
import time

# All hold the pipe open: it ends with the last of them, however long they take.
ended, hold = os.pipe()
for _ in range(50):
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            until = time.thread_time() + 0.05
            while time.thread_time() < until:
                pass
            os._exit(0)
        os._exit(0)
    os.waitpid(child, 0)
os.close(hold)
os.read(ended, 1)
used = sum(resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime
           for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
verdict("escaped", "DID" if used < 0.8 else f"no: {used}")
