# SPDX-License-Identifier: Apache-2.0
#| id = "S04"
#| title = "Every kind of new namespace, by clone, unshare and setns"
#| does = "EPERM for each flag, alone and together, with and without a user namespace."
#| [expect]
#| status = "ok"
#| verdicts = {unshare = "EPERM", unshare_with_user = "EPERM", clone = "EPERM", setns = "EPERM", program = "refused"}
#| [control]
#| kind = "plain"
#| as = "root"
#| verdicts = {unshare = "DID", unshare_with_user = "DID", clone = "DID", setns = "DID", program = "DID"}
import signal
import subprocess

USER = 0x10000000
FLAGS = {"time": 0x80, "mnt": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000,
         "user": USER, "pid": 0x20000000, "net": 0x40000000}


def in_children(calls):
    found = set()
    for function in calls:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                function()
                os.write(write, b"DID")
            except OSError as error:
                os.write(write, _errno.errorcode[error.errno].encode())
            os._exit(0)
        os.close(write)
        os.waitpid(child, 0)
        found.add(os.read(read, 100).decode() or "died")
        os.close(read)
    return " and ".join(sorted(found))


def clone(flags):
    child = syscall("clone", flags | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def setns(kind):
    fd = os.open(f"/proc/self/ns/{kind}", os.O_RDONLY)
    syscall("setns", fd, 0)


verdict("unshare", in_children([lambda f=f: syscall("unshare", f) for f in FLAGS.values()]))
verdict("unshare_with_user",
        in_children([lambda f=f: syscall("unshare", f | USER) for f in FLAGS.values()]))
verdict("clone", in_children([lambda f=f: clone(f) for n, f in FLAGS.items() if n != "time"]))
verdict("setns", in_children([lambda k=k: setns(k) for k in FLAGS if k not in ("user", "time")]))
done = subprocess.run(["unshare", "--user", "--map-root-user", "true"], stderr=subprocess.DEVNULL)
verdict("program", "DID" if done.returncode == 0 else "refused")
