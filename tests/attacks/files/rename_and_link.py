# SPDX-License-Identifier: Apache-2.0
#| id = "F10"
#| title = "rename, link and exchange between read-only and writable directories"
#| does = "EXDEV, EROFS, EACCES or EPERM; nothing of the system moves, nothing gets a second name."
#| needs = ["overlay"]
#| [expect]
#| status = "ok"
#| verdicts = {rename_out = "DENIED (EXDEV|EROFS|EACCES)", rename_in = "DENIED (EXDEV|EROFS|EACCES)", link_out = "DENIED (EXDEV|EROFS|EACCES|EPERM)", link_in = "DENIED (EXDEV|EROFS|EACCES)", exchange = "DENIED (EXDEV|EROFS|EACCES)", mounts = "DENIED EXDEV", passwd = "DENIED (EXDEV|EROFS|EACCES|EBUSY)", descriptor = "DENIED (EXDEV|ENOENT|EPERM|EACCES)"}
#| [control]
#| kind = "host"
#| has = ["@rename_out: DID", "@rename_in: DID", "@link_out: DID", "@link_in: DID", "@exchange: DID"]
os.mkdir("/tmp/@MARK@")
with open("own", "w") as file:
    file.write("own\n")
# In the control /tmp lies on the same file system as the rest of the host.
area = "/tmp/@MARK@" if not os.path.exists("/workspace") else "."
for name in ("a", "b"):
    with open(f"{area}/{name}", "w") as file:
        file.write(name)
attempt("rename_in", os.rename, area + "/a", "/usr/bin/@MARK@")
attempt("link_in", os.link, area + "/b", "/usr/bin/@MARK@2")
attempt("link_out", os.link, "/usr/bin/env", area + "/env")
attempt("exchange", syscall, "renameat2", -100, area + "/b", -100, "/usr/bin/id", 2)
attempt("rename_out", os.rename, "/usr/bin/dirname", area + "/dirname")
attempt("passwd", os.rename, "own", "/etc/passwd")
attempt("mounts", os.rename, "own", "/dev/shm/@MARK@")
fd = os.open("/usr/bin/env", os.O_RDONLY)
attempt("descriptor", os.link, f"/proc/self/fd/{fd}", area + "/env2", follow_symlinks=True)
