# SPDX-License-Identifier: Apache-2.0
#| id = "X02"
#| title = "A directory on the way is a symlink to the host"
#| does = "Not followed: neither listed nor fetched."
#| out = true
#| [expect]
#| status = "ok"
#| verdicts = {made = "DID"}
#| files = ["real/file.txt"]
#| refused = ["results"]
#| absent = ["results/secret.txt", "real/up/canary.txt"]
#| [control]
#| kind = "plain"
#| verdicts = {made = "DID"}
#| collects_secret = true
os.symlink("@CANARY@", "results")
os.mkdir("real")
with open("real/file.txt", "w") as file:
    file.write("x")
os.symlink("../..", "real/up")
verdict("made", "DID")
