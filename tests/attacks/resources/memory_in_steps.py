# SPDX-License-Identifier: Apache-2.0
#| id = "R01b"
#| title = "More memory than allowed, a little at a time"
#| does = "As above; what was printed before the end is returned."
#| [expect]
#| status = "memory_limit"
#| has = ["step 1\n", "step 3\n"]
#| lacks = ["step 20"]
#| [control]
#| kind = "plain"
#| has = ["step 20"]
kept = []
for step in range(1, 26):
    kept.append(b"x" * (10 << 20))
    print("step", step, flush=True)
