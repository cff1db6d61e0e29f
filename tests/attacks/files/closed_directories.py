# SPDX-License-Identifier: Apache-2.0
#| id = "F13c"
#| title = "Files and directories of mode 000"
#| does = "Collected or refused with a reason; cleaned up in any case."
#| out = true
#| [expect]
#| status = "ok"
#| verdicts = {made = "DID"}
#| files = ["open.txt"]
#| [control]
#| kind = "plain"
#| verdicts = {made = "DID"}
os.makedirs("closed/inner")
for name in ("open.txt", "closed/inner/file", "unreadable"):
    with open(name, "w") as file:
        file.write("x")
os.chmod("unreadable", 0)
os.chmod("closed/inner/file", 0)
os.chmod("closed/inner", 0)
os.chmod("closed", 0)
verdict("made", "DID")
