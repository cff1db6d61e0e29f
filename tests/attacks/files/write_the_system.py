# SPDX-License-Identifier: Apache-2.0
#| id = "F01"
#| title = "Writing the system's files and directories"
#| does = "Creating is refused with EROFS, opening what exists for writing with EACCES or EROFS."
#| needs = ["overlay"]
#| [expect]
#| status = "ok"
#| verdicts = {root = "DENIED (EROFS|EACCES)", usr = "DENIED (EROFS|EACCES)", etc = "DENIED (EROFS|EACCES)", stdlib = "DENIED (EROFS|EACCES)", packages = "DENIED (EROFS|EACCES)", dev = "DENIED (EROFS|EACCES)", proc = "DENIED (ENOENT|EACCES|EROFS|EPERM)", python = "DENIED (EROFS|EACCES)", passwd = "DENIED (EROFS|EACCES)", module = "DENIED (EROFS|EACCES)", mkdir = "DENIED (EROFS|EACCES)", unlink = "DENIED (EROFS|EACCES)", chmod = "DENIED (EROFS|EPERM)", chown = "DENIED (EROFS|EPERM)", utime = "DENIED (EROFS|EACCES|EPERM)", xattr = "DENIED (EROFS|EACCES|EPERM|EOPNOTSUPP)"}
#| [control]
#| kind = "host"
#| verdicts = {root = "DID", usr = "DID", etc = "DID", stdlib = "DID", packages = "DID", dev = "DID", proc = "DENIED ENOENT", python = "DID", passwd = "DID", module = "DID", mkdir = "DID", unlink = "DID", chmod = "DID", chown = "DID", utime = "DID", xattr = "DID"}
import sysconfig

stdlib = sysconfig.get_paths()["stdlib"]


def create(directory):
    os.close(os.open(directory + "/@MARK@", os.O_CREAT | os.O_EXCL | os.O_WRONLY))


for name, directory in (("root", ""), ("usr", "/usr/lib"), ("etc", "/etc"), ("stdlib", stdlib),
                        ("packages", "/usr/lib/python3/dist-packages"), ("dev", "/dev"),
                        ("proc", "/proc")):
    attempt(name, create, directory)
for name, path in (("python", "/usr/bin/env"), ("passwd", "/etc/passwd"),
                   ("module", stdlib + "/os.py")):
    attempt(name, os.open, path, os.O_RDWR)
attempt("mkdir", os.mkdir, "/usr/@MARK@-directory")
attempt("unlink", os.unlink, "/usr/bin/env")
attempt("chmod", os.chmod, stdlib + "/os.py", 0o777)
attempt("chown", os.chown, stdlib + "/os.py", os.getuid(), os.getgid())
attempt("utime", os.utime, stdlib + "/os.py", (1, 1))
attempt("xattr", os.setxattr, stdlib + "/os.py", "user.x", b"x")
