# SPDX-License-Identifier: Apache-2.0
#| id = "X09"
#| title = "Files with several names"
#| does = "Refused with a reason: a link count above one is never handed out."
#| out = true
#| [expect]
#| status = "ok"
#| verdicts = {link = "DID"}
#| refused = ["one", "two"]
#| files = ["single"]
#| [control]
#| kind = "plain"
#| verdicts = {link = "DID"}
#| leaves = ["two"]
for name in ("one", "single"):
    with open(name, "w") as file:
        file.write(name)
attempt("link", os.link, "one", "two")
