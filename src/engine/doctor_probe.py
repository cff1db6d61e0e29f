# SPDX-License-Identifier: Apache-2.0
"""doctor_probe: tries, from inside a cell, to break each layer of the jail.

The doctor (doctor.c) runs this file as any other code, with the policy `open`:

    main.py attempts CANARY_FILE CALLER_PID TCP_PORT UDP_PORT ABSTRACT_NAME PATHNAME_SOCKET
    main.py memory | cpu | wall | output | disk | processes | modules

Each attempt prints one line of JSON: what was tried, what it got, and how. An errno's name
means refused so, "allowed" that nothing refused it. What must be is not known here.
"""
import ctypes
import errno
import json
import os
import platform
import resource
import signal
import socket
import struct
import sys
import time

NOT_HERE = "not on this processor"
NUMBERS = {  # what libc has no function for, or a function that does more
    "x86_64": {"personality": 135, "ptrace": 101, "process_vm_readv": 310, "unshare": 272,
               "mount": 165, "clone3": 435},
    "aarch64": {"personality": 92, "ptrace": 117, "process_vm_readv": 270, "unshare": 97,
                "mount": 40, "clone3": 435},
}.get(platform.machine(), {})
CLONE_NEWUSER = 0x10000000
ADDR_NO_RANDOMIZE = 0x0040000

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
attempts = {}


def attempt(function):
    """Registers what returns (got, how); its name is the attempt's, an OSError an answer."""
    attempts[function.__name__] = function
    return function


def name_of(number):
    return errno.errorcode.get(number, f"errno {number}")


def say(name, got, how):
    print(json.dumps({"try": name, "got": str(got), "how": how}), flush=True)


def refusal(call, *arguments):
    """The errno's name, or "allowed"."""
    try:
        call(*arguments)
    except OSError as error:
        return name_of(error.errno)
    return "allowed"


def raw(number, *arguments):
    """A system call past libc: the errno's name, or "allowed"."""
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) for a in arguments))
    return name_of(ctypes.get_errno()) if r == -1 else "allowed"


def in_child(call):
    """What became of a call in a child: its answer, or the name of the signal that ended it."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writing, str(call()).encode())
        os._exit(0)
    os.close(writing)
    answer = os.read(reading, 100).decode()
    os.close(reading)
    status = os.waitpid(pid, 0)[1]
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else answer


def together(answers):
    """One answer when all are the same, else each with its name."""
    different = set(answers.values())
    if len(different) == 1:
        return different.pop()
    return ", ".join(f"{name} {answer}" for name, answer in answers.items())


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def status(*names):
    fields = dict(line.split(":\t", 1) for line in read("/proc/self/status").splitlines()
                  if ":\t" in line)
    return [fields.get(name, "?").strip() for name in names]


# User namespace.

@attempt
def id_map():
    maps = {name: " ".join(read(f"/proc/self/{name}").split()) for name in ("uid_map", "gid_map")}
    got = "one" if all(len(m.split()) == 3 and m.split()[2] == "1" for m in maps.values()) else maps
    if 0 in (os.getuid(), os.geteuid(), os.getgid(), os.getegid()):
        got = "root inside"
    denied = read("/proc/self/setgroups").strip()
    return got, f"uid_map {maps['uid_map']}, gid_map {maps['gid_map']}, setgroups {denied}"


@attempt
def host_root():
    path = "/tmp/own"
    with open(path, "w"):
        pass
    return (refusal(os.chown, path, 0, 0),
            f"chown of an own file to 0; root's /usr looks like id {os.stat('/usr').st_uid}'s")


@attempt
def nested():
    return in_child(lambda: raw(NUMBERS["unshare"], CLONE_NEWUSER)), "unshare(CLONE_NEWUSER)"


# Mount namespace.

@attempt
def host_files():
    paths = [canary_file, "/root", "/home", "/boot", "/etc/shadow", "/proc/sys", "/proc/kcore",
             "/sys/fs", "/sys/kernel/debug"]
    return (together({path: refusal(os.stat, path) for path in paths}),
            f"stat of {len(paths)} paths, one made by the caller a moment ago")


@attempt
def read_only():
    paths = ["/x", "/usr/x", "/usr/bin/x", "/etc/x", "/dev/x", "/var/x"]
    made = {path: refusal(os.open, path, os.O_CREAT | os.O_WRONLY) for path in paths}
    made["/usr"] = refusal(os.chmod, "/usr", 0o777)
    return together(made), "create in " + " ".join(p[:-1] for p in paths) + ", chmod /usr"


@attempt
def mount_flags():
    mounts = [line.split() for line in read("/proc/self/mountinfo").splitlines()]
    flags = {m[4]: m[5].split(",") for m in mounts}
    wrong = [f"{path} without {flag}" for path, f in flags.items() for flag in ("nosuid",)
             if flag not in f]
    wrong += [f"{path} with devices" for path, f in flags.items()
              if "nodev" not in f and not path.startswith("/dev/")]
    # Writable is one file system, the cell's own.
    device = {m[4]: m[2] for m in mounts}
    wrong += [f"{path} writable" for path, f in flags.items()
              if "ro" not in f and path != "/proc" and device[path] != device["/workspace"]]
    own = [path for path in flags if device[path] == device["/workspace"]]
    return "; ".join(wrong) or "all", \
        f"{len(flags)} mount points in /proc/self/mountinfo; writable: {' '.join(own)}"


@attempt
def mount():
    answer = raw(NUMBERS["mount"], *(ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p).value
                                     for text in (b"none", b"/tmp", b"tmpfs")), 0, 0)
    return answer, "mount(tmpfs on /tmp)"


# Process namespace.

@attempt
def not_first():
    return os.getpid(), "getpid()"


def listed():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


@attempt
def own_processes():
    others = [pid for pid in listed() if pid not in (1, os.getpid())]
    return " ".join(map(str, others)) or "none", f"/proc lists {' '.join(map(str, listed()))}"


@attempt
def signal_outside():
    pid = caller_pid if caller_pid != os.getpid() else caller_pid + 1
    return (together({f"process {pid}": refusal(os.kill, pid, 0), "all": refusal(os.kill, -1, 0)}),
            f"kill({pid}, 0), which is the caller, and kill(-1, 0)")


@attempt
def kill_init():
    answer = refusal(os.kill, 1, signal.SIGKILL)
    time.sleep(0.01)
    return "no effect", f"kill(1, SIGKILL): {answer}; alive after it"


@attempt
def others_memory():
    answers = {path: refusal(os.open, path, os.O_RDONLY)
               for path in ("/proc/1/mem", "/proc/1/environ")}
    return together(answers), "open /proc/1/mem and /proc/1/environ"


# Network.

@attempt
def interfaces():
    found = [line.split(":")[0].strip() for line in read("/proc/self/net/dev").splitlines()[2:]]
    up = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for name in found:
            request = struct.pack("16sH14x", name.encode(), 0)
            buffer = ctypes.create_string_buffer(request, 32)
            if libc.ioctl(sock.fileno(), 0x8913, buffer) == 0 and \
                    struct.unpack_from("H", buffer, 16)[0] & 1:
                up.append(name)
    others = [name for name in found if name != "lo"]
    return ", ".join(others + [f"{n} is up" for n in up]) or "none", \
        f"/proc/self/net/dev: {', '.join(found) or 'empty'}; SIOCGIFFLAGS: {len(up)} up"


def reach(family, kind, address):
    with socket.socket(family, kind) as sock:
        sock.settimeout(2)
        if kind == socket.SOCK_DGRAM:
            return refusal(sock.sendto, b"execpy doctor", address)
        return refusal(sock.connect, address)


@attempt
def loopback():
    address = ("127.0.0.1", tcp_port)
    answers = {"TCP": reach(socket.AF_INET, socket.SOCK_STREAM, address)}
    return together(answers), f"TCP to 127.0.0.1:{tcp_port}, where the caller listens"


@attempt
def loopback_udp():
    answers = {"IPv4": reach(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", udp_port)),
               "IPv6": reach(socket.AF_INET6, socket.SOCK_DGRAM, ("::1", udp_port))}
    if answers["IPv6"] in ("EADDRNOTAVAIL", "EAFNOSUPPORT"):  # no route, or no IPv6 at all
        answers["IPv6"] = "ENETUNREACH"
    return together(answers), f"UDP to 127.0.0.1 (where the caller listens) and ::1, port {udp_port}"


@attempt
def outside():
    hosts = ["192.0.2.1", "169.254.169.254", "8.8.8.8"]
    return (together({host: reach(socket.AF_INET, socket.SOCK_DGRAM, (host, 53))
                      for host in hosts}), "UDP to " + ", ".join(hosts))


@attempt
def families():
    numbers = {"netlink": 16, "packet": 17, "alg": 38, "vsock": 40, "xdp": 44, "key": 15,
               "tipc": 30, "rxrpc": 33, "can": 29, "bluetooth": 31}
    return (together({name: refusal(lambda n=n: socket.socket(n, socket.SOCK_RAW if n == 17
                                                              else socket.SOCK_DGRAM).close())
                      for name, n in numbers.items()}), "socket: " + " ".join(numbers))


@attempt
def raw_socket():
    return (refusal(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close()),
            "socket(AF_INET, SOCK_RAW, ICMP)")


@attempt
def local_sockets():
    answers = {}
    for name, address in (("abstract", b"\0" + abstract_name.encode()), ("path", path_socket)):
        with socket.socket(socket.AF_UNIX) as sock:
            answers[name] = refusal(sock.connect, address)
    good = answers["abstract"] in ("ECONNREFUSED", "EPERM") and answers["path"] == "ENOENT"
    return "unreachable" if good else together(answers), \
        f"abstract: {answers['abstract']}, path: {answers['path']}; the caller listens on both"


# The other namespaces: their numbers; the caller compares with its own.

for kind in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup"):
    attempts[f"ns_{kind}"] = lambda k=kind: (os.readlink(f"/proc/self/ns/{k}"),
                                             f"/proc/self/ns/{k}")


@attempt
def hostname():
    return os.uname().nodename, "uname()"


# Capabilities.

@attempt
def capability_sets():
    names = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
    left = [f"{n} {value}" for n, value in zip(names, status(*names)) if int(value, 16) != 0]
    return ", ".join(left) or "empty", "/proc/self/status: " + " ".join(names)


@attempt
def securebits():
    bits = libc.prctl(27, 0, 0, 0, 0)
    return (hex(bits) if bits >= 0 else name_of(ctypes.get_errno())), "prctl(PR_GET_SECUREBITS)"


@attempt
def no_new_privileges():
    off = libc.prctl(38, 0, 0, 0, 0)
    return status("NoNewPrivs")[0], f"/proc/self/status NoNewPrivs; to switch it off: {off}"


@attempt
def identity():
    return (together({"setuid": refusal(os.setuid, 0), "setgid": refusal(os.setgid, 0)}),
            "setuid(0), setgid(0)")


# seccomp.

@attempt
def seccomp_mode():
    mode, count = status("Seccomp", "Seccomp_filters")
    return mode, f"/proc/self/status Seccomp; {count} filters"


@attempt
def denied_calls():
    buffer = ctypes.create_string_buffer(8)
    vector = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    where = ctypes.addressof(vector)
    me = os.getpid()
    answers = {
        "personality": in_child(lambda: raw(NUMBERS["personality"], ADDR_NO_RANDOMIZE)),
        "ptrace": in_child(lambda: raw(NUMBERS["ptrace"], 0, 0, 0, 0)),
        "process_vm_readv": raw(NUMBERS["process_vm_readv"], me, where, 1, where, 1, 0),
    }
    return together(answers), " ".join(answers) + ": all of them work without the filter"


@attempt
def unknown_calls():
    numbers = (999, 100000, -1)
    return (together({str(n): raw(n) for n in numbers}),
            "system calls " + ", ".join(map(str, numbers)))


@attempt
def clone3():
    return raw(NUMBERS["clone3"], 0, 0), "clone3(): its flags are out of a filter's sight"


@attempt
def foreign_calls():
    if platform.machine() != "x86_64":
        return NOT_HERE, "int 0x80"
    code = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"  # mov eax, 20 (getpid of i386); int 0x80; ret

    def call():
        import mmap
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(code)
        address = ctypes.addressof(ctypes.c_char.from_buffer(page))
        return f"pid {ctypes.CFUNCTYPE(ctypes.c_int)(address)()}"
    return in_child(call), "int 0x80 in a child"


# Landlock.

@attempt
def landlock_scope():
    return refusal(os.kill, 1, 0), "kill(1, 0): init has the same id, nothing else refuses it"


@attempt
def port():
    with socket.socket() as sock:
        return refusal(sock.bind, ("0.0.0.0", 0)), "bind(TCP, any port)"


# What was handed over.

@attempt
def descriptors():
    found = [fd for fd in range(4096) if refusal(os.fstat, fd) != "EBADF"]
    return " ".join(map(str, found)), "fstat of 0 to 4095"


@attempt
def environment():
    try:
        first = read("/proc/1/environ")
    except OSError as error:
        first = name_of(error.errno)
    seen = json.dumps([dict(os.environ), read("/proc/self/environ"), first])
    print(json.dumps({"seen": seen}), flush=True)
    return len(os.environ), f"os.environ, /proc/self/environ, /proc/1/environ ({first[:20]})"


@attempt
def canary_read():
    return refusal(os.open, canary_file, os.O_RDONLY), "open of a file that the caller just wrote"


@attempt
def resource_limits():
    hard = {"core": (resource.RLIMIT_CORE, 0), "msgqueue": (resource.RLIMIT_MSGQUEUE, 0),
            "rtprio": (resource.RLIMIT_RTPRIO, 0), "nofile": (resource.RLIMIT_NOFILE, 1024),
            "memlock": (resource.RLIMIT_MEMLOCK, 65536)}
    values = {name: resource.getrlimit(number)[1] for name, (number, _) in hard.items()}
    wrong = [f"{name} {values[name]}" for name, (_, most) in hard.items()
             if not 0 <= values[name] <= most]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 1 << 20))
        wrong.append("can be raised")
    except (ValueError, OSError):
        pass
    return ", ".join(wrong) or "set", \
        "getrlimit: " + " ".join(f"{name} {value}" for name, value in values.items()) + \
        "; raising is refused"


@attempt
def interpreter():
    return platform.python_version(), f"{platform.python_implementation()} with " \
        f"{platform.libc_ver()[0]} {platform.libc_ver()[1]}, {sys.prefix}"


# Limits, each really reached; a run for each.

def memory():
    """Prints how many MiB were written, until somebody ends it."""
    held, piece = [], b"x" * (1 << 20)
    try:
        for count in range(1, 257):
            held.append(bytearray(piece))
            print(count, flush=True)
    except MemoryError:
        print("MemoryError", flush=True)


def cpu():
    while True:
        pass


def wall():
    time.sleep(60)


def output():
    while True:
        print("x" * 1023)


def disk():
    written = 0
    try:
        with open("/workspace/filler", "wb", buffering=0) as file:
            while written < 64 << 20:
                written += file.write(b"x" * 65536)
    except OSError as error:
        say("disk", name_of(error.errno), f"{written} bytes fitted")
    else:
        say("disk", "allowed", f"{written} bytes fitted")
    os.unlink("/workspace/filler")


def processes():
    children = []
    try:
        while len(children) < 200:
            pid = os.fork()
            if pid == 0:
                time.sleep(60)
                os._exit(0)
            children.append(pid)
    except OSError as error:
        got = name_of(error.errno)
    else:
        got = "allowed"
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    say("processes", got, f"{len(children) + 1} at once")


def modules():
    import importlib
    for name in ("numpy", "pandas", "matplotlib"):
        start = time.monotonic()
        try:
            version = importlib.import_module(name).__version__
            say(name, version, f"imported in {time.monotonic() - start:.1f} s")
        except Exception as error:  # whatever it is, it is the answer
            say(name, "not importable", f"{type(error).__name__}: {error}"[:150])


def run_attempts():
    for name, function in attempts.items():
        try:
            got, how = function()
        except OSError as error:
            got, how = name_of(error.errno), f"{function.__name__}: {error}"
        except Exception as error:  # an attempt that broke shows as what it got
            got, how = type(error).__name__, str(error)
        say(name, got, how[:200])


part = sys.argv[1]
if part == "attempts":
    canary_file, abstract_name, path_socket = sys.argv[2], sys.argv[6], sys.argv[7]
    caller_pid, tcp_port, udp_port = map(int, sys.argv[3:6])
    run_attempts()
else:
    {"memory": memory, "cpu": cpu, "wall": wall, "output": output, "disk": disk,
     "processes": processes, "modules": modules}[part]()
