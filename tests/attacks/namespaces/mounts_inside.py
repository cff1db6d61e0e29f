# SPDX-License-Identifier: Apache-2.0
#| id = "N07"
#| title = "A mount made inside"
#| does = "Cannot be made, and so never appears on the host (the harness compares the host's mounts)."
#| needs = ["overlay"]
#| [expect]
#| status = "ok"
#| verdicts = {mount = "DENIED EPERM", propagation = "private"}
#| [control]
#| kind = "host"
#| verdicts = {mount = "DID", propagation = ".*"}
os.mkdir("point")
attempt("mount", syscall, "mount", "none", "point", "tmpfs", 0, None)
with open("/proc/self/mountinfo") as file:
    shared = [line for line in file if " shared:" in line]
verdict("propagation", "shared" if shared else "private")
