# SPDX-License-Identifier: Apache-2.0
#| id = "F02"
#| title = "The mount family, pivot_root, chroot"
#| does = "Every call is refused with EPERM by number, whatever its arguments are."
#| needs = ["overlay"]
#| [expect]
#| status = "ok"
#| verdicts = {mount = "DENIED EPERM", bind = "DENIED EPERM", remount = "DENIED EPERM", umount = "DENIED EPERM", pivot = "DENIED EPERM", chroot = "DENIED EPERM", open_tree = "DENIED (EPERM|ENOSYS)", fsopen = "DENIED (EPERM|ENOSYS)", fspick = "DENIED (EPERM|ENOSYS)", setattr = "DENIED (EPERM|ENOSYS)", move = "DENIED (EPERM|ENOSYS)"}
#| [control]
#| kind = "host"
#| verdicts = {mount = "DID", bind = "DID", remount = "DID", umount = "DID", pivot = "DENIED (EINVAL|EBUSY)", chroot = "DID", open_tree = "DID", fsopen = "DID", fspick = "DID", setattr = "DID", move = "DENIED (EINVAL|EBADF|ENOENT)"}
MS_BIND, MS_REMOUNT = 4096, 32
os.mkdir("point")
here = os.getcwd() + "/point"
attempt("mount", syscall, "mount", "none", here, "tmpfs", 0, None)
attempt("bind", syscall, "mount", "/usr", here, None, MS_BIND, None)
attempt("remount", syscall, "mount", None, here, None, MS_BIND | MS_REMOUNT, None)
attempt("umount", syscall, "umount2", here, 2)
attempt("fsopen", syscall, "fsopen", "tmpfs", 0)
attempt("fspick", syscall, "fspick", -100, "/", 0)
attempt("open_tree", syscall, "open_tree", -100, "/usr", 1)
attempt("setattr", syscall, "mount_setattr", -100, "/", 0, ctypes.c_char_p(bytes(32)), 32)
attempt("move", syscall, "move_mount", -1, "", -100, here, 4)
attempt("pivot", syscall, "pivot_root", "/usr", "/usr/lib")
attempt("chroot", syscall, "chroot", ".")
