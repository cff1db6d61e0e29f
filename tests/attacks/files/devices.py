# SPDX-License-Identifier: Apache-2.0
#| id = "F05"
#| title = "Devices: made by mknod, or opened where the host has them"
#| does = "mknod is refused with EPERM; no device that is not on the list exists."
#| needs = ["overlay"]
#| [expect]
#| status = "ok"
#| verdicts = {char = "DENIED EPERM", block = "DENIED EPERM", listed = "DID", others = "none", mem = "DENIED ENOENT", kmsg = "DENIED ENOENT", kvm = "DENIED ENOENT", fuse = "DENIED ENOENT", tun = "DENIED ENOENT", loop = "DENIED ENOENT", ptmx = "DENIED ENOENT", tty = "DENIED (ENOENT|ENXIO)", console = "DENIED ENOENT", userfaultfd = "DENIED ENOENT"}
#| [control]
#| kind = "host"
#| has = ["@char: DID", "@block: DID", "@others: some", "@kmsg: DID"]
import stat

attempt("char", os.mknod, "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
attempt("block", os.mknod, "disk", stat.S_IFBLK | 0o666, os.makedev(254, 0))
LISTED = {"null", "zero", "full", "random", "urandom", "tty"}


def open_listed():
    for name in ("null", "zero", "urandom"):
        os.close(os.open("/dev/" + name, os.O_RDONLY))


attempt("listed", open_listed)
others = [name for name in os.listdir("/dev") if name not in LISTED
          and stat.S_IFMT(os.lstat("/dev/" + name).st_mode) in (stat.S_IFCHR, stat.S_IFBLK)]
verdict("others", "some" if others else "none")
for name in ("mem", "kmsg", "kvm", "fuse", "net/tun", "loop-control", "ptmx", "tty", "console",
             "userfaultfd"):
    attempt(name.split("/")[-1].split("-")[0], os.open, "/dev/" + name, os.O_RDONLY | os.O_NONBLOCK)
