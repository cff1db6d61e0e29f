# SPDX-License-Identifier: Apache-2.0
#| id = "X10"
#| title = "A run leaves a symlink where the next run's code and input will be written"
#| does = "The workspace of the next run is new: the input arrives, and nothing outside is written."
#| files = ["input.txt=text:hello"]
#| [expect]
#| status = "ok"
#| verdicts = {planted = "DID"}
#| [next]
#| status = "ok"
#| verdicts = {input = "hello", kind = "file"}
#| [control]
#| kind = "plain"
#| has = ["@planted: DID", "@kind: link"]
for name in ("input.txt", "main.py"):
    if name == "input.txt" or os.path.exists("/workspace"):
        os.unlink(name)
        os.symlink("@CANARY@/canary.txt", name)
verdict("planted", "DID")
#== next run
verdict("kind", "link" if os.path.islink("input.txt") else "file")
with open("input.txt") as file:
    verdict("input", file.read().strip())
