# SPDX-License-Identifier: Apache-2.0
#| id = "F02b"
#| title = "The classical way out of a chroot: dot-dot from a directory above the root"
#| does = "chroot is refused, and dot-dot from anywhere ends at the jail's root."
#| [expect]
#| status = "ok"
#| verdicts = {chroot = "DENIED EPERM", dots = "DID", canary = "DENIED ENOENT"}
#| [control]
#| kind = "plain"
#| as = "root"
#| verdicts = {chroot = "DID", dots = "DID", canary = "DID"}
os.mkdir("deep")
above = os.open(".", os.O_RDONLY)
attempt("chroot", os.chroot, "deep")
os.fchdir(above)
attempt("dots", os.chdir, "../" * 40)
attempt("canary", os.stat, "@CANARY@/canary.txt".lstrip("/"))
