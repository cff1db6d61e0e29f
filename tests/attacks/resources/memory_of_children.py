# SPDX-License-Identifier: Apache-2.0
#| id = "R02"
#| title = "The same amount, split over four children"
#| does = "The limit is one for all processes of the run."
#| [expect]
#| status = "memory_limit"
#| lacks = ["@sum: DID"]
#| [control]
#| kind = "plain"
#| verdicts = {sum = "DID"}
import time

# Each keeps what it has until all have theirs.
ready, say = os.pipe()
gate, keep = os.pipe()
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        os.close(keep)
        kept = bytearray(b"x") * (40 << 20)
        os.write(say, b".")
        os.read(gate, 1)
        os._exit(0)
    children.append(child)
for _ in children:
    os.read(ready, 1)
time.sleep(0.5)  # where memory is sampled, what comes and goes in between is not seen
os.close(keep)
if [os.waitpid(child, 0)[1] for child in children] == [0] * 4:
    verdict("sum", "DID")
