# SPDX-License-Identifier: Apache-2.0
#| id = "X02b"
#| title = "Symlinks into /proc"
#| does = "Magic links of the collecting process are not followed."
#| out = true
#| [expect]
#| status = "ok"
#| verdicts = {made = "DID"}
#| refused = ["environ", "root", "fd0", "cwd"]
#| [control]
#| kind = "plain"
#| verdicts = {made = "DID"}
#| collects_secret = true
os.symlink("/proc/self/environ", "environ")
os.symlink("/proc/self/root@CANARY@/secret.txt", "root")
os.symlink("/proc/self/fd/0", "fd0")
os.symlink("/proc/self/cwd", "cwd")
verdict("made", "DID")
