# SPDX-License-Identifier: Apache-2.0
#| id = "F08"
#| title = "Calls that Landlock does not cover, on paths that the host has"
#| does = "Each is refused with ENOENT, because the paths do not exist in the run's mount namespace."
#| [expect]
#| status = "ok"
#| verdicts = {stat = "DENIED ENOENT", chmod = "DENIED ENOENT", utime = "DENIED ENOENT", setxattr = "DENIED ENOENT", chdir = "DENIED ENOENT", access = "DENIED ENOENT", readlink = "DENIED ENOENT", statvfs = "DENIED ENOENT", chown = "DENIED ENOENT", flock = "DENIED ENOENT", truncate = "DENIED ENOENT", shadow = "DENIED ENOENT", root_home = "DENIED ENOENT", homes = "DENIED ENOENT", boot = "DENIED ENOENT", var_log = "DENIED ENOENT", run = "DENIED ENOENT|empty", cgroup = "DENIED ENOENT"}
#| [control]
#| kind = "plain"
#| as = "root"
#| verdicts = {stat = "DID", chmod = "DID", utime = "DID", setxattr = "DID", chdir = "DID", access = "DID", readlink = "DENIED EINVAL", statvfs = "DID", chown = "DID", flock = "DID", truncate = "DID", shadow = "DID", root_home = "DID", homes = "DID", boot = "DID", var_log = "DID", run = "DID", cgroup = "DID"}
path = "@CANARY@/canary.txt"


def access():
    syscall("faccessat2", -100, path, os.R_OK, 0)


attempt("stat", os.stat, path)
attempt("chmod", os.chmod, path, 0o777)
attempt("utime", os.utime, path, (1, 1))
attempt("setxattr", os.setxattr, path, "user.x", b"x")
attempt("access", access)
attempt("readlink", os.readlink, path)
attempt("statvfs", os.statvfs, path)
attempt("chown", os.chown, path, os.getuid(), os.getgid())
attempt("flock", os.open, path, os.O_RDONLY)
attempt("truncate", os.truncate, path, 0)
attempt("chdir", os.chdir, "@CANARY@")
if os.path.isdir("/run") and not os.listdir("/run"):
    verdict("run", "empty")
else:
    attempt("run", os.listdir, "/run")
for name, path in (("shadow", "/etc/shadow"), ("root_home", "/root"), ("homes", "/home"),
                   ("boot", "/boot"), ("var_log", "/var/log"),
                   ("cgroup", "/sys/fs/cgroup")):
    attempt(name, os.stat, path)
