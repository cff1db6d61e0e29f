# SPDX-License-Identifier: Apache-2.0
#| id = "X08"
#| title = "A process that is left truncates, grows and renames files while they are collected"
#| does = "It is dead before the collecting starts; each file listed is whole."
#| out = true
#| [expect]
#| status = "ok"
#| verdicts = {made = "DID"}
#| files = ["steady"]
#| [control]
#| kind = "plain"
#| verdicts = {made = "DID"}
#| linger = 0.2
#| alive = true
with open("steady", "wb") as file:
    file.write(b"x" * 100000)
with open("shaky", "wb") as file:
    file.write(b"x" * 100000)
if os.fork() == 0:
    while True:
        os.truncate("shaky", 1)
        os.truncate("shaky", 1000000)
        os.rename("shaky", "moved")
        os.symlink("@CANARY@/secret.txt", "shaky")
        os.unlink("shaky")
        os.rename("moved", "shaky")
verdict("made", "DID")
