# SPDX-License-Identifier: Apache-2.0
#| id = "X11"
#| title = "A tree with symlinks that a careless clean-up would follow"
#| does = "No chmod, chown or remove by path reaches the host: the canary stays as it is."
#| [expect]
#| status = "ok"
#| verdicts = {made = "DID"}
#| [control]
#| kind = "plain"
#| as = "root"
#| verdicts = {made = "DID"}
#| after = "os.chmod('tree/file', 0o600) or oct(os.stat('tree/file').st_mode & 0o777)"
#| after_is = "'0o600'"
os.mkdir("tree")
os.symlink("@CANARY@/canary.txt", "tree/file")
os.symlink("@CANARY@/tree", "tree/directory")
os.symlink("@CANARY@", "all")
verdict("made", "DID")
