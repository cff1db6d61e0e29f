#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that limits hold on cgroup v2; runs as root inside the QEMU guest (see run.sh).

Three hosts are played, each with the cases that tell it from the others:

  root         a root shell in the root cgroup, and one in a session's leaf with company
  delegated    an ordinary user in a leaf of a subtree that was given to it, alone and with company,
               and in a cgroup that was given to it while nothing above was (a service)
  undelegated  an ordinary user in a cgroup of root's: limits by other means, or a refusal

Every case goes through the real program, and after every case the same is looked at from outside:
no cgroup, no process and no mount is left. What the kernel itself counted (oom_kill in
/proc/vmstat) decides what an out-of-memory kill is, not what the result says of itself.

Computing is about 20 times slower here, so times have slack and amounts do not.

  EXECPY_BIN   the program to test
"""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

CGROUPS = pathlib.Path("/sys/fs/cgroup")
DELEGATED = CGROUPS / "user-delegated"
PLAIN = CGROUPS / "user-plain"
SERVICE = CGROUPS / "user-service"
SESSION = CGROUPS / "root-session.scope"
LEAVES = [DELEGATED / "alone", DELEGATED / "shared", PLAIN, SERVICE, SESSION]
USER = 1000
MEMORY = 48 << 20
PROCESSES = 32
HANG_S = 150
SETTLE_S = 3.0
EXECPY = os.environ.get("EXECPY_BIN", "")
SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "docs/result.schema.json"

LIMITS = ["--memory", "48M", "--processes", str(PROCESSES), "--time", "60s", "--cpu", "60s"]

PRINT = "print(55)"
BOMB = """
print("started", flush=True)
kept = []
for _ in range(100):
    kept.append(bytearray(b"x") * (4 << 20))
print("survived")
"""
# Each child alone stays well below the limit; the gate keeps all of them alive until the last.
CHILDREN = """
import os
print("started", flush=True)
filled, gate = os.pipe(), os.pipe()
for _ in range(COUNT):
    if os.fork() == 0:
        os.close(gate[1])
        kept = bytearray(b"x") * (20 << 20)
        os.write(filled[1], b"x")
        os.read(gate[0], 1)
        os._exit(0)
for _ in range(COUNT):
    os.read(filled[0], 1)
os.close(gate[1])
for _ in range(COUNT):
    os.wait()
print("survived")
"""
SHARED_MEMORY = """
print("started", flush=True)
with open("/tmp/large", "wb") as large:
    for _ in range(128):
        large.write(b"x" * (1 << 20))
print("survived")
"""
FORKS = """
import os, time
made = 0
try:
    for _ in range(300):
        if os.fork() == 0:
            time.sleep(120)
            os._exit(0)
        made += 1
    print("survived")
except BlockingIOError:
    print("made", made)
"""
FORK_BOMB = """
import os
while True:
    try:
        os.fork()
    except BlockingIOError:
        pass
"""
BURN = "number = 0\nwhile True:\n    number += 1\n"
BURN_IN_CHILDREN = """
import os
while True:
    if os.fork() == 0:
        for _ in range(200000):
            pass
        os._exit(0)
    os.wait()
"""
SLEEP = "import time\nprint('started', flush=True)\ntime.sleep(100)\n"
ORPHANS = """
import os, signal, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if os.fork() == 0:
            time.sleep(300)
        os._exit(0)
for _ in range(3):
    os.wait()
print("main ends")
"""
SUICIDE = "import os\nos.kill(os.getpid(), 9)\n"
EXIT_137 = "raise SystemExit(137)\n"


class Failure(Exception):
    """A case's expectation that does not hold."""


def expect(holds, text):
    if not holds:
        raise Failure(text)


# --- the machine, seen from outside ---


def cgroups():
    """All cgroups but the root; one that vanishes meanwhile is no error."""
    return {path for path, _, _ in os.walk(CGROUPS)} - {str(CGROUPS)}


def processes():
    """Ids of the processes of user space, without zombies: those are not our execpy's."""
    found = set()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError):
            text = pathlib.Path("/proc", entry, "stat").read_text()
            state, parent, *rest = text[text.rindex(")") + 2 :].split()
            flags = int(rest[4])
            if not flags & 0x00200000 and state != "Z":  # PF_KTHREAD
                found.add(int(entry))
    return found


def describe(pid):
    with contextlib.suppress(OSError):
        command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
        group = pathlib.Path(f"/proc/{pid}/cgroup").read_text().strip()
        return f"{pid} {command.decode(errors='replace').strip()!r} in {group}"
    return str(pid)


def mounts():
    return pathlib.Path("/proc/self/mountinfo").read_text()


def oom_kills():
    return int(re.search(r"^oom_kill (\d+)$", pathlib.Path("/proc/vmstat").read_text(), re.M)[1])


def controllers_of_children(group):
    """With any of them a cgroup, other than the root, takes no process."""
    return (group / "cgroup.subtree_control").read_text().split()


class Before:
    """What there was before a case, to be compared with what there is after it."""

    def __init__(self):
        self.cgroups, self.processes, self.mounts = cgroups(), processes(), mounts()
        self.leaves = [leaf for leaf in LEAVES if not controllers_of_children(leaf)]

    def check(self):
        deadline = time.monotonic() + SETTLE_S
        while True:
            groups = cgroups() - self.cgroups
            alive = processes() - self.processes
            if not groups and not alive or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        expect(not alive, "still alive: " + "; ".join(map(describe, sorted(alive))))
        if groups:
            left = []
            for name in sorted(groups):
                with contextlib.suppress(OSError):
                    pids = pathlib.Path(name, "cgroup.procs").read_text().split()
                    left.append(f"{name} with {[describe(int(pid)) for pid in pids]}")
            raise Failure("cgroups are left: " + "; ".join(left))
        for leaf in self.leaves:
            expect(not controllers_of_children(leaf), f"nothing can enter {leaf} any more")
        expect(mounts() == self.mounts, "the host's mounts have changed")


def make_clean(before):
    """After a failure: the next case is not to fail for what this one left."""
    for pid in processes() - before.processes:
        with contextlib.suppress(OSError):
            os.kill(pid, 9)
    time.sleep(0.5)
    for _ in range(2):
        for path in sorted(cgroups() - before.cgroups, reverse=True):
            with contextlib.suppress(OSError):
                pathlib.Path(path, "cgroup.subtree_control").write_text("-memory -pids")
            with contextlib.suppress(OSError):
                os.rmdir(path)
    for path in before.leaves:
        with contextlib.suppress(OSError):
            (path / "cgroup.subtree_control").write_text("-cpu -memory -pids")


class Watch(threading.Thread):
    """Looks for cgroups of execpy while a case runs; keeps the limits of those with processes."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seen, self.stop = {}, threading.Event()

    def run(self):
        while not self.stop.wait(0.2):
            for path in map(pathlib.Path, cgroups()):
                if not path.parent.name.startswith("execpy"):
                    continue
                with contextlib.suppress(OSError):
                    if (path / "cgroup.procs").read_text().strip():
                        self.seen[path] = {
                            name: (path / name).read_text().strip()
                            for name in ("memory.max", "memory.swap.max", "pids.max")
                            if (path / name).exists()
                        }

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.join()


# --- the program ---


class Host:
    """Who runs execpy, and from which cgroup."""

    def __init__(self, name, group, user=0, company=False, delegated=True):
        self.name, self.group, self.user, self.company = name, group, user, company
        self.delegated = delegated
        self.companion = None

    def enter(self):
        """In the child, before exec."""
        (self.group / "cgroup.procs").write_text("0")
        if self.user:
            os.setgroups([])
            os.setresgid(self.user, self.user, self.user)
            os.setresuid(self.user, self.user, self.user)

    def popen(self, arguments, **options):
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": "/tmp/home-%d" % self.user,
            "LANG": "C.UTF-8",
            **{key: value for key, value in os.environ.items() if key.startswith("EXECPY_")},
        }
        return subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, env=environment, cwd="/tmp",
            preexec_fn=self.enter, **options,
        )

    def __enter__(self):
        if self.company:
            self.companion = self.popen(["sleep", "3600"])
        return self

    def __exit__(self, *_):
        if self.companion:
            self.companion.kill()
            self.companion.wait()

    def start(self, code, *options):
        return self.popen(
            [EXECPY, "run", "--json", "--no-daemon", "--policy", "open", *LIMITS, *options,
             "-c", code],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )

    def finish(self, process):
        """The one result of a run; never waits forever."""
        try:
            output, errors = process.communicate(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            # What it started may hold the pipes: these are not read to their end.
            process.kill()
            process.wait()
            raise Failure(f"no result after {HANG_S} s") from None
        try:
            result = json.loads(output)
        except ValueError:
            raise Failure(
                f"no JSON: status {process.returncode}, {output[:500]!r}, {errors[:500]!r}"
            ) from None
        result["_status"] = process.returncode
        validate(result)
        return result

    def run(self, code, *options):
        return self.finish(self.start(code, *options))

    def may_refuse(self, result):
        """True when the run was refused for want of delegation, with that reason."""
        if self.delegated or result["status"] != "internal_error":
            return False
        reason = json.dumps(result["error"])
        expect("cgroup" in reason or "limit" in reason, f"refused without a reason: {reason}")
        expect(result["stdout"] == "", "the code ran in a refused run")
        return True


def validate(result):
    if validate.validator is None:
        return
    plain = {key: value for key, value in result.items() if key != "_status"}
    for error in validate.validator.iter_errors(plain):
        place = "/".join(map(str, error.absolute_path))
        raise Failure(f"the result breaks the schema at {place!r}: {error.message[:200]}")


validate.validator = None


def status_is(result, status, exit_status, **fields):
    expect(
        result["status"] == status,
        f"status {result['status']}, wanted {status}: "
        + json.dumps({k: result[k] for k in ("exit_code", "signal", "stdout", "stderr", "error",
                                             "usage")})[:1500],
    )
    for key, value in fields.items():
        expect(result[key] == value, f"{key} is {result[key]!r}, wanted {value!r}")
    expect(result["_status"] == exit_status,
           f"exit status {result['_status']}, wanted {exit_status}")


# --- cases: each takes the host ---


def case_print(host):
    result = host.run(PRINT)
    status_is(result, "ok", 0, stdout="55\n", exit_code=0)
    usage = result["usage"]
    expect(0 < usage["memory_peak_bytes"] <= MEMORY, f"usage {usage}")
    expect(usage["cpu_ms"] > 0, f"usage {usage}")


def over_memory(host, code, *options):
    before = oom_kills()
    result = host.run(code, *options)
    status_is(result, "memory_limit", 137)
    expect(result["stdout"] == "started\n", f"stdout {result['stdout']!r}")
    expect(oom_kills() > before, "the kernel counted no out-of-memory kill")
    peak = result["usage"]["memory_peak_bytes"]
    expect(MEMORY * 0.8 <= peak <= MEMORY * 1.05, f"memory_peak_bytes {peak}")


def case_memory_bomb(host):
    over_memory(host, BOMB)


def case_memory_of_children_together(host):
    status_is(host.run(CHILDREN.replace("COUNT", "1")), "ok", 0, stdout="started\nsurvived\n")
    over_memory(host, CHILDREN.replace("COUNT", "4"))


def case_memory_in_files(host):
    over_memory(host, SHARED_MEMORY, "--disk", "256M")


def case_forks_are_bounded(host):
    result = host.run(FORKS)
    status_is(result, "ok", 0)
    made = re.fullmatch(r"made (\d+)\n", result["stdout"])
    expect(made, f"stdout {result['stdout']!r}")
    made, peak = int(made[1]), result["usage"]["processes_peak"]
    expect(PROCESSES // 2 <= made <= PROCESSES, f"{made} children with a limit of {PROCESSES}")
    expect(made <= peak <= PROCESSES + 1, f"processes_peak {peak} with {made} children")


def case_fork_bomb(host):
    result = host.run(FORK_BOMB, "--time", "5s")
    status_is(result, "timeout", 124)
    peak = result["usage"]["processes_peak"]
    expect(PROCESSES // 2 <= peak <= PROCESSES + 1, f"processes_peak {peak}")


def over_cpu(host, code):
    # Getting ready costs the cell up to 1.5 s here, which counts.
    result = host.run(code, "--cpu", "4s")
    status_is(result, "cpu_limit", 124)
    cpu = result["usage"]["cpu_ms"]
    expect(3600 <= cpu <= 12000, f"cpu_ms {cpu} with a limit of 4000")
    return result


def case_cpu_burn(host):
    frames = over_cpu(host, BURN)["error"]["frames"]
    expect(frames and frames[-1]["line"] in (2, 3), f"frames {frames}")


def case_cpu_of_children_together(host):
    over_cpu(host, BURN_IN_CHILDREN)


def case_sleep_with_limits_in_the_kernel(host):
    with Watch() as watch:
        result = host.run(SLEEP, "--time", "4s")
    status_is(result, "timeout", 124, stdout="started\n")
    expect(result["usage"]["cpu_ms"] < 4000, f"usage {result['usage']}")
    cells = [limits for limits in watch.seen.values() if limits.get("pids.max", "max") != "max"]
    expect(cells, f"no process was seen in a limited cgroup: {watch.seen}")
    for limits in cells:
        expect(int(limits["memory.max"]) <= MEMORY, f"limits {limits}")
        expect(int(limits["pids.max"]) <= PROCESSES + 1, f"limits {limits}")
        expect(limits.get("memory.swap.max", "0") == "0", f"limits {limits}")


def case_orphans_die(host):
    result = host.run(ORPHANS)
    if not host.may_refuse(result):
        status_is(result, "ok", 0, stdout="main ends\n")


def case_kill_of_itself_is_a_crash(host):
    before = oom_kills()
    result = host.run(SUICIDE)
    if not host.may_refuse(result):
        status_is(result, "crashed", 137, signal=9)
    expect(oom_kills() == before, "the kernel counted an out-of-memory kill")


def case_exit_137_is_an_error(host):
    result = host.run(EXIT_137)
    if not host.may_refuse(result):
        status_is(result, "error", 137, exit_code=137, signal=None)


def case_two_at_a_time(host):
    """One run over its limit is no concern of its neighbour."""
    quiet = host.start("import time\ntime.sleep(6)\nprint(55)\n")
    over_memory(host, BOMB)
    status_is(host.finish(quiet), "ok", 0, stdout="55\n")


def case_killed_program_leaves_nothing(host):
    """SIGKILL for the program in the middle of a run; the next run sweeps what it left."""
    process = host.start(SLEEP)
    watch = Watch()
    with watch:
        deadline = time.monotonic() + 60
        while not watch.seen and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)
        process.kill()
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            raise Failure("the run holds its output open after the program's death") from None
    expect(watch.seen, "the run was never seen in a cgroup")
    time.sleep(1)
    status_is(host.run(PRINT), "ok", 0, stdout="55\n")


# Without delegation a run may be refused; what runs is limited by something else.


def case_print_or_refusal(host):
    result = host.run(PRINT)
    if not host.may_refuse(result):
        status_is(result, "ok", 0, stdout="55\n")


def never_survives(host, code, *options):
    result = host.run(code, *options)
    expect("survived" not in result["stdout"], f"silently unlimited: {json.dumps(result)[:800]}")
    if host.may_refuse(result):
        return
    kind = (result["error"] or {}).get("type")
    expect(result["status"] == "memory_limit" or kind == "MemoryError",
           f"status {result['status']}, error {kind}")


def case_memory_bomb_never_unlimited(host):
    never_survives(host, BOMB)


def case_children_never_unlimited(host):
    never_survives(host, CHILDREN.replace("COUNT", "4"))


def case_forks_never_unlimited(host):
    result = host.run(FORKS)
    if host.may_refuse(result):
        return
    made = re.fullmatch(r"made (\d+)\n", result["stdout"])
    expect(made and int(made[1]) <= PROCESSES, f"stdout {result['stdout']!r}")


def case_cpu_burn_never_unlimited(host):
    result = host.run(BURN, "--cpu", "4s")
    if not host.may_refuse(result):
        status_is(result, "cpu_limit", 124)


FULL = [
    case_print,
    case_memory_bomb,
    case_memory_of_children_together,
    case_memory_in_files,
    case_forks_are_bounded,
    case_fork_bomb,
    case_cpu_burn,
    case_cpu_of_children_together,
    case_sleep_with_limits_in_the_kernel,
    case_orphans_die,
    case_kill_of_itself_is_a_crash,
    case_exit_137_is_an_error,
    case_two_at_a_time,
    case_killed_program_leaves_nothing,
]
SHORT = [case_print, case_memory_bomb, case_forks_are_bounded, case_sleep_with_limits_in_the_kernel]
UNDELEGATED = [
    case_print_or_refusal,
    case_memory_bomb_never_unlimited,
    case_children_never_unlimited,
    case_forks_never_unlimited,
    case_cpu_burn_never_unlimited,
    case_orphans_die,
    case_kill_of_itself_is_a_crash,
    case_exit_137_is_an_error,
]


def make_group(path, owner=0):
    """A cgroup, given to a user the way the kernel's documentation describes delegation."""
    path.mkdir()
    if owner:
        for name in (".", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
            os.chown(path / name, owner, owner)
    return path


def make_hosts():
    make_group(SESSION)
    make_group(SERVICE, USER)
    make_group(DELEGATED, USER)
    make_group(DELEGATED / "alone", USER)
    make_group(DELEGATED / "shared", USER)
    make_group(PLAIN)
    os.mkdir("/tmp/home-0", 0o700)
    os.mkdir(f"/tmp/home-{USER}", 0o700)
    os.chown(f"/tmp/home-{USER}", USER, USER)
    # The user must reach the program also beneath a closed home; only the guest's copy changes.
    for parent in pathlib.Path(EXECPY).resolve().parents:
        mode = parent.stat().st_mode & 0o7777
        if mode & 0o005 != 0o005:
            parent.chmod(mode | 0o005)
    return [
        (Host("root", CGROUPS), FULL),
        (Host("root in a session", SESSION, company=True), SHORT),
        (Host("delegated", DELEGATED / "alone", USER), FULL),
        (Host("delegated, shared leaf", DELEGATED / "shared", USER, company=True), SHORT),
        (Host("delegated service", SERVICE, USER), SHORT),
        (Host("undelegated", PLAIN, USER, delegated=False), UNDELEGATED),
    ]


def run_case(host, case):
    """True when the case passed; prints its line."""
    name = f"{host.name}: {case.__name__.removeprefix('case_').replace('_', ' ')}"
    before, started, reason = Before(), time.monotonic(), ""
    try:
        case(host)
    except Failure as failure:
        reason = str(failure)
    except Exception as exception:  # a result that lacks a field, say
        reason = f"{type(exception).__name__}: {exception}"
    try:
        before.check()
    except Failure as failure:
        reason = f"{reason}; then {failure}" if reason else str(failure)
    took = time.monotonic() - started
    print(f"{'FAILED' if reason else 'passed'}  {name}  ({took:.1f} s)", flush=True)
    if reason:
        print(f"        {reason}", flush=True)
        make_clean(before)
    return not reason


def load_schema():
    if not SCHEMA.exists():
        print(f"note: no {SCHEMA.name}: results are not validated")
        return
    try:
        import jsonschema
    except ImportError:
        print("note: no python3-jsonschema: results are not validated")
        return
    validate.validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    if os.environ.get("EXECPY_IN_QEMU") != "1":
        sys.exit("cgroup2.py: it makes cgroups as root: only for the guest of run.sh")
    if not os.access(EXECPY, os.X_OK):
        print(f"FAILED  EXECPY_BIN is no program: {EXECPY!r}\n0 passed, 1 failed, 0 skipped")
        return 1
    load_schema()
    passed = failed = 0
    for host, cases in make_hosts():
        chosen = [case for case in cases if wanted in f"{host.name}: {case.__name__}"]
        if not chosen:
            continue
        with host:
            for case in chosen:
                if run_case(host, case):
                    passed += 1
                else:
                    failed += 1
    print(f"{passed} passed, {failed} failed, 0 skipped", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
