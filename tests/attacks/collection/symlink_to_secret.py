# SPDX-License-Identifier: Apache-2.0
#| id = "X01"
#| title = "A created file is a symlink to a secret of the host"
#| does = "Refused with a reason; the secret is nowhere in the result nor in what is fetched."
#| out = true
#| [expect]
#| status = "ok"
#| verdicts = {made = "DID"}
#| files = ["good.txt"]
#| refused = ["secret\\.txt", "passwd", "dangling", "loop"]
#| [control]
#| kind = "plain"
#| verdicts = {made = "DID"}
#| collects_secret = true
with open("good.txt", "w") as file:
    file.write("good")
os.symlink("@CANARY@/secret.txt", "secret.txt")
os.symlink("/etc/passwd", "passwd")
os.symlink("nothing", "dangling")
os.symlink("loop", "loop")
verdict("made", "DID")
