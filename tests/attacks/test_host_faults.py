# SPDX-License-Identifier: Apache-2.0
"""Faults of the host during set-up: each ends in a confined run or in a refusal with a reason.

H01 a full disk, H02 few descriptors, H03 little memory, H04 and H05 calls that fail or do not
exist, H06 no cgroups, H12 the clock, H13 a closed or full stdout, P12 missing parts of ours."""
import errno
import glob
import os
import signal
import subprocess
import time

import pytest

from common import confined_code, judge, reasons
from harness.host import need
from harness import host
from harness.product import SLOW


def attempt(product, watch, canary, place, launcher, timeout=30, options=()):
    return product.execute("run", "--json", "--policy", "open", *options, "-c",
                           confined_code(canary, watch.mark), cwd=place, launcher=launcher,
                           timeout=timeout)


def test_confined_without_faults(product, watch, canary, place):
    """The positive case, without which a refusal of everything would pass."""
    assert judge(product, attempt(product, watch, canary, place, ())) == "ran"


def test_confined_code_sees_what_is_missing(canary, watch, place):
    """The control: run plainly, the same code finds every layer missing."""
    done = subprocess.run([host.PYTHON, "-c", confined_code(canary, watch.mark).replace(
        'open("/usr/', 'open("./')], capture_output=True, text=True, cwd=place, check=True)
    for layer in ("seccomp", "no_new_privs", "mounts", "network", "read-only"):
        assert layer in done.stdout


def test_H02_few_descriptors(product, watch, canary, place, full):
    """From so few that nothing starts to enough: no number in between runs code unconfined."""
    outcomes = {}
    tool = host.helper("payload")
    for limit in [*range(3, 61, 1 if full else 2), 1024]:
        done = attempt(product, watch, canary, place, [tool, "nofile", str(limit)])
        outcomes[limit] = judge(product, done)
        watch.check()
    assert outcomes[1024] == "ran", outcomes
    assert outcomes[3] == "refused", outcomes
    product.answers(place)


@pytest.mark.parametrize("limit", ["--fsize=1000000", "--fsize=100000000", "--nproc=50", "--cpu=30",
                                   "--stack=262144", "--sigpending=0", "--memlock=0", "--data=300000000"])
def test_H03_low_limits_of_the_caller(product, watch, canary, place, limit):
    """What `ulimit` may have lowered for good: a right run, or a refusal that says which."""
    done = product.execute("run", "--json", "--policy", "open", "-c",
                           confined_code(canary, watch.mark), cwd=place,
                           launcher=["prlimit", limit, "--"])
    if judge(product, done) == "refused":
        message = done.result["error"]["message"]
        assert message != "the warden ended", "that is no reason"
    watch.check()


def test_H03_little_memory(product, watch, canary, place):
    """The address space of execpy and all below it is too small at some step or another."""
    outcomes = {}
    for megabytes in (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 8192):
        done = product.execute(
            "run", "--json", "--policy", "open", "-c", confined_code(canary, watch.mark), cwd=place,
            launcher=["prlimit", f"--as={megabytes << 20}", "--"])
        if done.returncode in (1, 126, 127, -signal.SIGKILL, -signal.SIGSEGV) and not done.stdout:
            outcomes[megabytes] = "refused"  # setpriv or the loader, before ours
            continue
        if done.returncode == 1 and b"MemoryError" in done.stdout:
            outcomes[megabytes] = "refused"  # confined code that had too little itself
            continue
        outcomes[megabytes] = judge(product, done)
        watch.check()
    assert outcomes[8192] == "ran", outcomes
    product.answers(place)


# Every call that a set-up may need, with the errno of a kernel or a container that lacks it.
MASKED = [
    ("openat2", "ENOSYS"), ("openat2", "EPERM"), ("landlock_create_ruleset", "ENOSYS"),
    ("landlock_create_ruleset", "EOPNOTSUPP"), ("landlock_add_rule", "EINVAL"),
    ("landlock_restrict_self", "EPERM"), ("landlock_restrict_self", "E2BIG"), ("clone3", "ENOSYS"),
    ("clone3", "EPERM"), ("clone3", "EAGAIN"), ("mount_setattr", "ENOSYS"),
    ("mount_setattr", "EPERM"), ("open_tree", "ENOSYS"), ("open_tree", "EPERM"),
    ("move_mount", "EPERM"), ("fsopen", "ENOSYS"), ("fsopen", "EPERM"), ("fsmount", "EPERM"),
    ("fsconfig", "EINVAL"), ("seccomp", "ENOSYS"), ("seccomp", "EINVAL"), ("seccomp", "EACCES"),
    ("pidfd_open", "ENOSYS"), ("pidfd_open", "EPERM"), ("pidfd_send_signal", "ENOSYS"),
    ("close_range", "ENOSYS"), ("close_range", "EPERM"), ("pivot_root", "EPERM"),
    ("pivot_root", "EINVAL"), ("umount2", "EPERM"), ("mount", "EPERM"), ("setns", "EPERM"),
    ("unshare", "EPERM"), ("unshare", "ENOSPC"), ("capset", "EPERM"), ("setgroups", "EPERM"),
    ("setresuid", "EPERM"), ("setresgid", "EPERM"), ("setsid", "EPERM"),
    ("memfd_create", "ENOSYS"), ("memfd_create", "EPERM"), ("socketpair", "EMFILE"),
    ("pipe2", "EMFILE"), ("prlimit64", "EPERM"), ("timerfd_create", "EMFILE"),
    ("epoll_create1", "EMFILE"), ("epoll_ctl", "ENOSPC"), ("signalfd4", "EMFILE"),
    ("eventfd2", "EMFILE"), ("waitid", "ECHILD"), ("wait4", "EINVAL"), ("mkdirat", "ENOSPC"),
    ("sethostname", "EPERM"), ("ftruncate", "ENOSPC"), ("sendmsg", "ENOBUFS"),
    ("recvmsg", "ENOMEM"), ("getrandom", "ENOSYS"), ("execveat", "EPERM"), ("execve:0:0", "EPERM"),
    ("fcntl:1:1033", "EPERM"),                   # F_ADD_SEALS
    ("prctl:0:38", "EINVAL"),                    # PR_SET_NO_NEW_PRIVS
    ("prctl:0:24", "EPERM"),                     # PR_CAPBSET_DROP
    ("prctl:0:28", "EPERM"),                     # PR_SET_SECUREBITS
    ("prctl:0:47", "EINVAL"),                    # PR_CAP_AMBIENT
    ("prctl:0:4", "EPERM"),                      # PR_SET_DUMPABLE
    ("prctl:0:1", "EINVAL"),                     # PR_SET_PDEATHSIG
    ("clone:0:&0x10000000", "EPERM"),            # CLONE_NEWUSER
    ("unshare:0:&0x10000000", "ENOSPC"),
    ("unshare:0:&0x02000000", "EPERM"),          # CLONE_NEWCGROUP
    ("unshare:0:&0x40000000", "ENOSPC"),         # CLONE_NEWNET
]


@pytest.mark.parametrize("call,error", MASKED, ids=lambda v: str(v).replace(":", "-"))
def test_H05_masked_call(product, watch, canary, place, call, error):
    """The call fails for every process of the run: a documented refusal, or another way."""
    name, _, test = call.partition(":")
    number = host.syscall_number(name)
    code = getattr(errno, error)
    done = attempt(product, watch, canary, place,
                   [host.helper("mask-syscall"), f"{number}{':' + test if test else ''}", str(code)],
                   timeout=15)
    # What breaks the talk between our own processes can only be told as that.
    talk = name in ("wait4", "waitid", "sendmsg", "recvmsg")
    judge(product, done, names=() if talk else (name, name.split("_")[0], os.strerror(code), error))
    product.answers(place)  # and sweeps what the failing call kept the last one from removing
    watch.check()


def test_H05_the_mask_masks(canary, watch, place):
    """The control of the shim: the masked call does fail in a program that it starts."""
    done = subprocess.run([host.helper("mask-syscall"), str(host.syscall_number("getppid")),
                           str(errno.ENOSYS), host.helper("payload"), "try-syscall",
                           str(host.syscall_number("getppid"))], capture_output=True, text=True)
    assert done.stdout == "syscall: DENIED ENOSYS\n"


INJECTED = ["openat2", "landlock_add_rule", "clone3", "mount_setattr", "open_tree", "move_mount",
            "fsopen", "seccomp", "pidfd_open", "close_range", "setns", "capset", "prlimit64",
            "socketpair", "pipe2", "memfd_create", "mkdir", "write", "prctl", "mmap", "clone"]


@pytest.mark.parametrize("call", INJECTED)
def test_H04_nth_call_fails(product, watch, canary, place, full, call):
    """The n-th call of a kind fails in each process: the earlier ones have worked by then."""
    need("strace")
    need("root")
    name = {"mkdir": "/mkdir"}.get(call, call)
    outcomes = []
    for nth in (*range(1, 12),) if full else (1, 2, 4):
        error = {"write": "EIO", "mmap": "ENOMEM", "clone": "EAGAIN"}.get(call, "EPERM")
        launcher = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + name, "-e",
                    f"inject={name}:error={error}:when={nth}"]
        done = attempt(product, watch, canary, place, launcher, timeout=40)
        if call in ("write", "mmap", "clone", "prlimit64", "pipe2") and done.returncode not in (
                0, 125):
            # These are Python's own calls as well, or the loader's: then the code may fail, or
            # nothing starts; what counts is that it never ran unconfined.
            assert b"UNCONFINED" not in done.stdout, str(done)
            outcomes.append("failed")
            continue
        if call == "write" and not done.stdout:
            outcomes.append("failed")  # the result itself could not be written
            continue
        outcomes.append(judge(product, done))
    product.answers(place)  # and sweeps what the failing call kept the others from removing
    watch.check()


HIDE_CGROUPS = ["unshare", "--mount", "sh", "-c",
                'mount -t tmpfs tmpfs /sys/fs/cgroup && exec "$@"', "sh"]
READ_ONLY_CGROUPS = ["unshare", "--mount", "sh", "-c",
                     'for m in $(awk \'$3 ~ /^cgroup/ {print $2}\' /proc/self/mounts); do '
                     'mount -o remount,bind,ro "$m" || exit 9; done; exec "$@"', "sh"]


@pytest.mark.parametrize("launcher", [HIDE_CGROUPS, READ_ONLY_CGROUPS],
                         ids=["hidden", "read-only"])
@pytest.mark.parametrize("code,status,options", [
    ("x = bytearray(b'x') * (300 << 20)\nprint('UNLIMITED')", ("memory_limit", "error"), ()),
    ("import os, time\nkids = []\ntry:\n for _ in range(100):\n  p = os.fork()\n  if p == 0:\n"
     "   time.sleep(30)\n  kids.append(p)\n print('UNLIMITED')\nexcept BlockingIOError:\n"
     " print('refused')\nos.kill(-1, 9)", ("ok",), ()),
    ("while True: pass", ("cpu_limit",), ("--cpu", "1s", "--time", "8s")),
], ids=["memory", "processes", "cpu"])
def test_H06_without_cgroups(product, watch, place, launcher, code, status, options):
    """The limit is enforced in another way, or the run is refused: never silently unlimited."""
    need("root")
    done = product.execute("run", "--json", "--policy", "open", *options, "-c", code, cwd=place,
                           launcher=launcher)
    product.parse(done)
    assert "UNLIMITED" not in done.result["stdout"], str(done)
    if done.result["status"] == "internal_error":
        assert any(word in done.result["error"]["message"].lower()
                   for word in ("limit", "cgroup", "memory", "processes", "cpu")), str(done)
    else:
        assert done.result["status"] in status, str(done)


def test_H06_control(watch):
    """The launchers do hide the cgroups."""
    need("root")
    hidden = subprocess.run([*HIDE_CGROUPS, "ls", "/sys/fs/cgroup"], capture_output=True, text=True)
    assert hidden.returncode == 0 and hidden.stdout == ""
    where = str(host.cgroup_mounts()[0][0])
    done = subprocess.run([*READ_ONLY_CGROUPS, "mkdir", where + "/control-x"], capture_output=True)
    assert done.returncode == 1 and b"Read-only" in done.stderr


def test_H01_out_on_a_full_disk(product, watch, place):
    need("root")
    target = place / "target"
    target.mkdir()
    product.give(target)
    launcher = ["unshare", "--mount", "sh", "-c",
                f'mount -t tmpfs -o size=64k,mode=777 tmpfs {target} && exec "$@"', "sh"]
    code = "open('big', 'wb').write(b'x' * 1000000)"
    done = product.execute("run", "--policy", "open", "--out", target, "-c", code, cwd=place,
                           launcher=launcher)
    assert done.returncode == 125, str(done)
    assert "No space left" in done.err and len(reasons(done.err)) == 1, str(done)
    control = product.execute("run", "--policy", "open", "--out", target, "-c", code, cwd=place)
    assert control.returncode == 0 and (target / "big").stat().st_size == 1000000


def test_H01_out_where_nothing_may_be_written(product, watch, place):
    for target in (place / "a-file" / "below", "/proc/nowhere"):
        (place / "a-file").write_text("x")
        done = product.execute("run", "--policy", "open", "--out", target, "-c",
                               "open('x', 'w').write('x')", cwd=place)
        assert done.returncode in (2, 125), str(done)
        assert len(reasons(done.err)) == 1, str(done)


@pytest.mark.parametrize("json", [False, True])
def test_H13_full_stdout(product, watch, place, json):
    with open("/dev/full", "w") as full:
        options = ["--json"] if json else []
        done = product.execute("run", *options, "--policy", "open", "-c", "print('x' * 10000)",
                               cwd=place, stdout=full)
    assert done.returncode == 125, str(done)
    assert len(reasons(done.err)) == 1 and "write" in done.err, str(done)
    product.answers(place)


@pytest.mark.parametrize("json", [False, True])
def test_H13_closed_stdout(product, watch, place, json):
    """The reader went away (`| head -1`): execpy ends soon, and nothing is left."""
    options = ["--json"] if json else []
    process = product.start("run", *options, "--policy", "open", "--time", "10s", "-c",
                            "import time\nfor _ in range(80):\n print('x' * 1000, flush=True)\n"
                            " time.sleep(0.01)", cwd=place)
    process.stdout.close()
    try:
        process.wait(5 * SLOW)
    finally:
        if process.poll() is None:
            process.kill()
    err = process.stderr.read()
    process.stderr.close()
    assert process.returncode in (125, -signal.SIGPIPE, 128 + signal.SIGPIPE), \
        (process.returncode, err)
    watch.check()
    product.answers(place)


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_H13_closed_descriptors(product, watch, place, closed):
    """Started with some of 0, 1, 2 closed: what is opened later must not land there."""
    launcher = ["sh", "-c", "".join(f"exec {fd}>&-; " for fd in closed) + 'exec "$@"', "sh"]
    done = product.execute("run", "--policy", "open", "-c",
                           "import os, sys\nprint('out')\nprint('err', file=sys.stderr)\n"
                           "sys.exit(sum(1 for fd in range(3, 99) if os.path.exists("
                           "f'/proc/self/fd/{fd}')))", cwd=place, launcher=launcher)
    if 1 not in closed:
        assert done.out == "out\n" and done.returncode == 0, str(done)
    else:
        assert done.returncode in (0, 125), str(done)
        assert b"out" not in done.stderr, str(done)
    product.answers(place)


@pytest.mark.parametrize("part", ["execpy-guest", "execpy-warden"])
def test_P12_a_part_of_ours_is_missing(product, watch, place, part):
    """Setup fails: internal_error and 125, never exit code 127 and never the code's fault."""
    need("root")
    root = product.binary.parents[2] if len(product.binary.parents) > 2 else product.binary.parent
    found = glob.glob(f"{root}/**/{part}", recursive=True) + glob.glob(f"/usr/lib*/execpy/{part}")
    assert found, f"no {part} beside {product.binary}"
    binds = " && ".join(f"mount --bind /dev/null {path}" for path in found)
    done = product.execute("run", "--json", "--policy", "open", "-c", "print(1)", cwd=place,
                           launcher=["unshare", "--mount", "sh", "-c", binds + ' && exec "$@"',
                                     "sh"])
    product.parse(done)
    assert done.result["status"] == "internal_error" and done.returncode == 125, str(done)
    assert done.result["error"]["message"].strip(), str(done)


def test_P12_libpython_is_missing(product, watch, place):
    need("root")
    libraries = glob.glob("/usr/lib/*/libpython3*.so.1.0")
    if not libraries:
        pytest.skip("needs: shared-libpython: this host lacks a shared libpython")
    binds = " && ".join(f"mount --bind /dev/null {path}" for path in libraries)
    done = product.execute("run", "--json", "--policy", "open", "-c", "print(1)", cwd=place,
                           launcher=["unshare", "--mount", "sh", "-c", binds + ' && exec "$@"',
                                     "sh"])
    product.parse(done)
    assert done.result["status"] == "internal_error" and done.returncode == 125, str(done)


def test_H12_durations(run):
    """Measured with a clock that nobody sets; the parts fit in the whole."""
    began = time.monotonic()
    result = run("import time\ntime.sleep(0.5)").result
    elapsed = (time.monotonic() - began) * 1000
    assert 500 <= result["usage"]["wall_ms"] <= result["timing"]["total_ms"] + 1 <= elapsed + 50
    assert result["usage"]["cpu_ms"] < 400
    timing = result["timing"]
    assert timing["wait_ms"] + timing["verify_ms"] + timing["run_ms"] <= timing["total_ms"] + 1


def test_H12_clock_is_stepped():
    pytest.skip("needs: own-clock: this host lacks a wall clock that may be stepped by a test")


def test_H11_unknown_keys(product, watch, place):
    """A policy file with a key nobody knows, a wrong type, or no policy in it is refused."""
    for number, text in enumerate(('{"nonsense": 1}', "nonsense = 1\n", "[]", "\0\xff", "",
                                   '{"name": 1, "name": 2}')):
        path = place / f"policy{number}"
        path.write_text(text)
        product.give(path)
        done = product.execute("run", "--policy", path, "-c", "print('ran')", cwd=place)
        assert done.returncode in (2, 125), str(done)
        assert "ran" not in done.out, str(done)
        assert 1 <= len(done.err.strip().splitlines()) <= 2, str(done)
