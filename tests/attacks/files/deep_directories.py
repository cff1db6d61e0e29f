# SPDX-License-Identifier: Apache-2.0
#| id = "F13"
#| title = "A directory tree 10,000 deep"
#| does = "Collecting and cleaning is iterative and bounded: the result comes within the grace."
#| out = true
#| [expect]
#| status = "ok|disk_limit"
#| has = ["@made"]
#| files = ["top.txt"]
#| [control]
#| kind = "plain"
#| has = ["@made: 1000"]
with open("top.txt", "w") as file:
    file.write("top")
import time

count, end = 0, time.monotonic() + 2
try:
    for count in range(1, (10000 if os.path.exists("/workspace") else 1000) + 1):
        os.mkdir("d")
        os.chdir("d")
        if time.monotonic() > end and os.path.exists("/workspace"):
            break  # Landlock walks up the tree at each step
except OSError:
    pass
try:
    with open("@MARK@", "w") as file:
        file.write("bottom")
except OSError:
    pass
verdict("made", str(count))
