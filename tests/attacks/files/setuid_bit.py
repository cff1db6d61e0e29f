# SPDX-License-Identifier: Apache-2.0
#| id = "F06"
#| title = "The setuid bit on an own file"
#| does = "Has no effect inside (nosuid on all that is writable), and is not on what is handed out."
#| out = true
#| [expect]
#| status = "ok"
#| verdicts = {workspace = "DID", tmp = "DID", shm = "DID", chmod = "DID|DENIED EPERM"}
#| files = ["tool"]
#| [control]
#| kind = "plain"
#| has = ["@workspace: nosuid is missing", "@chmod: DID"]
for name, directory in (("workspace", "."), ("tmp", "/tmp"), ("shm", "/dev/shm")):
    flags = os.statvfs(directory).f_flag
    wanted = os.ST_NOSUID | os.ST_NODEV
    verdict(name, "DID" if flags & wanted == wanted else "nosuid is missing")
with open("tool", "w") as file:
    file.write("#!/bin/sh\nid\n")
attempt("chmod", os.chmod, "tool", 0o6755)
