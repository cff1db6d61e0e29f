# SPDX-License-Identifier: Apache-2.0
"""Runs unconfined code as pid 1 of a throw-away pid namespace; prints what became of it as JSON.

Not imported: control.py starts it with /usr/bin/python3 inside `unshare`.  The order is JSON on
descriptor 3; the answer goes to descriptor 4.  When this process ends, the kernel kills all that
is left in its pid namespace, so no control outlives its test.
"""
import fnmatch
import json
import os
import signal
import subprocess
import sys
import time


def command(order):
    words = ["/usr/bin/python3", "-B", "-X", "utf8", "main.py", *order["args"]]
    if order["supervisor"]:
        # A process between pid 1 and the code, which stands for whatever supervises a run.
        words = ["/bin/sh", "-c", '"$@"; exit $?', "supervisor", *words]
    if order["uid"] is not None:
        words = ["setpriv", f"--reuid={order['uid']}", f"--regid={order['uid']}", "--clear-groups",
                 *words]
    return words


def make_host(directory):
    """A throw-away copy of the whole host: every write lands in a tmpfs."""
    run = lambda *words: subprocess.run(words, check=True)
    run("mount", "-t", "tmpfs", "tmpfs", "/mnt")
    for name in ("upper", "work", "root"):
        os.mkdir("/mnt/" + name)
    run("mount", "-t", "overlay", "overlay", "-o",
        "redirect_dir=on,lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work", "/mnt/root")
    root = "/mnt/root"
    run("mount", "-t", "proc", "proc", root + "/proc")
    run("mount", "--rbind", "/sys", root + "/sys")
    # Not devtmpfs: there is only one in the machine.
    run("mount", "-t", "tmpfs", "tmpfs", root + "/dev")
    for name, major, minor in (("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8),
                               ("urandom", 1, 9), ("kmsg", 1, 11), ("tty", 5, 0)):
        os.mknod(f"{root}/dev/{name}", 0o020666, os.makedev(major, minor))
    os.symlink("/proc/self/fd", root + "/dev/fd")
    os.mkdir(root + "/dev/shm")
    run("mount", "-t", "tmpfs", "tmpfs", root + "/dev/shm")
    os.makedirs(root + directory, exist_ok=True)
    run("mount", "--bind", directory, root + directory)
    os.chdir(root)
    run("ip", "link", "set", "lo", "up")
    libc = __import__("ctypes").CDLL(None, use_errno=True)
    if libc.syscall(155, b".", b".") != 0 or libc.umount2(b".", 2) != 0:
        raise OSError("pivot_root failed")
    os.chroot(".")
    os.chdir(directory)


def main():
    signal.signal(signal.SIGINT, lambda *_: None)  # of the others pid 1 has the kernel's protection
    with os.fdopen(3) as source:
        order = json.load(source)
    if order["host"]:
        make_host(order["directory"])
    os.chdir(order["directory"])
    out, err = os.open("stdout", os.O_CREAT | os.O_WRONLY, 0o666), \
        os.open("stderr", os.O_CREAT | os.O_WRONLY, 0o666)
    answers = []
    for index, code in enumerate(order["codes"]):
        with open("main.py", "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(code)
        read_end, write_end = os.pipe()
        started = time.monotonic()
        # A new session in the container, so that kill(0) has the same reach as for a plain script.
        child = subprocess.Popen(command(order), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                 env=order["env"], pass_fds=[write_end] if index == 0 else [],
                                 start_new_session=True)
        os.close(write_end)
        status = wait_for(child, started + order["time"])
        if status == "timeout":
            os.kill(-1, signal.SIGKILL)
        else:
            linger(order["linger"], order["leaves"])
        after = None
        if order["after"]:
            after = repr(eval(order["after"], {"os": os, "open": open, "glob": __import__("glob")}))
        os.close(read_end)
        answers.append({"status": status, "seconds": time.monotonic() - started, "after": after,
                        "alive": sorted(int(p) for p in os.listdir("/proc")
                                        if p.isdigit() and int(p) > 1 and alive(int(p)))})
    with os.fdopen(4, "w") as answer:
        json.dump(answers, answer)


def wait_for(child, deadline):
    """The status of the child as subprocess has it, or "timeout"; reaps every orphan meanwhile."""
    while time.monotonic() < deadline:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == child.pid:
            return os.waitstatus_to_exitcode(status)
        if pid == 0:
            time.sleep(0.002)
    return "timeout"


def linger(seconds, leaves):
    """Gives what was left behind its time, but no more than it takes to leave what it should."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if leaves and all(any(fnmatch.fnmatch(name, pattern) for name in os.listdir("."))
                          for pattern in leaves):
            break
        time.sleep(min(left, 0.02))


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main())
