# SPDX-License-Identifier: Apache-2.0
"""What this host can do (features that a test may need), and the C helpers built for it."""
import ctypes
import functools
import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
REPOSITORY = TESTS.parent
PYTHON = "/usr/bin/python3"
SLOW = float(os.environ.get("EXECPY_SLOW", "1"))  # factor on every allowance of time

# System calls that the oldest supported C library does not name yet; from 424 on all
# architectures share their numbers.
NEW_NUMBERS = {
    "landlock_create_ruleset": 444, "landlock_add_rule": 445, "landlock_restrict_self": 446,
    "memfd_secret": 447, "process_mrelease": 448, "set_mempolicy_home_node": 450,
    "cachestat": 451, "fchmodat2": 452, "map_shadow_stack": 453, "statmount": 457,
    "listmount": 458, "lsm_get_self_attr": 459, "lsm_set_self_attr": 460,
    "lsm_list_modules": 461, "mseal": 462, "setxattrat": 463, "open_tree_attr": 467,
}


@functools.lru_cache(None)
def syscall_numbers():
    """Name -> number of every system call, as this host's C headers have them."""
    text = subprocess.run(["cc", "-dM", "-E", "-include", "sys/syscall.h", "-x", "c", "/dev/null"],
                          check=True, capture_output=True, text=True).stdout
    numbers = {n: int(v) for n, v in re.findall(r"#define __NR_(\w+) (\d+)\b", text)}
    return {**NEW_NUMBERS, **numbers}


def syscall_number(name):
    return syscall_numbers()[name]


@functools.lru_cache(None)
def helper(name):
    """Path of tests/helpers/NAME.c, built static (so that it runs in any root)."""
    ready = os.environ.get("EXECPY_HELPERS")
    if ready:
        return Path(ready) / name
    directory = Path(tempfile.mkdtemp(prefix="helpers-"))
    os.chmod(directory, 0o755)
    _built.append(directory)
    subprocess.run(["cc", "-std=gnu17", "-O1", "-Wall", "-Wextra", "-static", "-o",
                    directory / name, TESTS / "helpers" / (name + ".c")], check=True)
    return directory / name


_built = []


def forget_helpers():
    for directory in _built:
        shutil.rmtree(directory, ignore_errors=True)
    _built.clear()
    helper.cache_clear()


def kernel_option(name):
    """True, False, or None when the kernel does not tell its configuration."""
    try:
        import gzip
        with gzip.open("/proc/config.gz", "rt") as config:
            return f"CONFIG_{name}=y\n" in config.read()
    except OSError:
        return None


def cgroup_mounts():
    """[(mount point, version, controllers)] of every cgroup hierarchy mounted here."""
    found = []
    with open("/proc/self/mounts") as mounts:
        for line in mounts:
            _, where, kind, options = line.split()[:4]
            if kind in ("cgroup", "cgroup2"):
                found.append((Path(where), 2 if kind == "cgroup2" else 1, options.split(",")))
    return found


def cgroup_v1(controller):
    for where, version, options in cgroup_mounts():
        if version == 1 and controller in options:
            return where
    return None


def cgroup_v2_with(controller):
    for where, version, _ in cgroup_mounts():
        if version == 2:
            try:
                if controller in (where / "cgroup.controllers").read_text().split():
                    return where
            except OSError:
                pass
    return None


def _has_swap():
    return len(Path("/proc/swaps").read_text().splitlines()) > 1


def _landlock_abi():
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(444, None, 0, 1)


def _capability(number):
    text = Path("/proc/self/status").read_text()
    return bool(int(re.search(r"CapEff:\s+(\w+)", text)[1], 16) >> number & 1)


def _overlay():
    return "overlay" in Path("/proc/filesystems").read_text()


# Every name that a scenario may write after `needs`; a skip prints the name and the sentence.
FEATURES = {
    "resource-capability": ("CAP_SYS_RESOURCE, which some containers keep even from root",
                            lambda: _capability(24)),
    "root": ("the suite runs as root", lambda: os.geteuid() == 0),
    "x86-64": ("an x86-64 processor", lambda: platform.machine() == "x86_64"),
    "ia32": ("32-bit emulation in the kernel",
             lambda: platform.machine() == "x86_64" and kernel_option("IA32_EMULATION")),
    "x32": ("the x32 ABI in the kernel",
            lambda: platform.machine() == "x86_64" and kernel_option("X86_X32_ABI")),
    "swap": ("swap space", _has_swap),
    "landlock": ("Landlock", lambda: _landlock_abi() > 0),
    "cgroup-v1": ("cgroup v1 controllers", lambda: cgroup_v1("memory") is not None),
    "cgroup-v2": ("cgroup v2 controllers", lambda: cgroup_v2_with("memory") is not None),
    "overlay": ("overlayfs", _overlay),
    "keyrings": ("kernel keyrings", lambda: kernel_option("KEYS") is not False),
    "strace": ("strace", lambda: shutil.which("strace") is not None),
    "core-files": ("core files written to the working directory",
                   lambda: not Path("/proc/sys/kernel/core_pattern").read_text()
                   .startswith(("|", "/"))),
    "several-cpus": ("more than one processor", lambda: len(os.sched_getaffinity(0)) > 1),
    "own-pid-max": ("a pid_max of its own for each pid namespace (Linux 6.14)",
                    lambda: tuple(int(n) for n in re.findall(r"\d+", platform.release())[:2])
                    >= (6, 14)),
    "custom-root": ("a root file system that the user brings (execpy builds its own)",
                    lambda: False),
    "smt-timing": ("a defence against timing between processor siblings (a declared non-goal)",
                   lambda: False),
    "filter-coverage": ("a count of the filter's instructions (kept by its unit test)",
                        lambda: False),
    "egress": ("an egress allowance (not part of the product yet)", lambda: False),
}


def missing_feature(name):
    """None when the host has the feature, else why the test is skipped, in one line."""
    sentence, probe = FEATURES[name]
    return None if probe() else f"needs: {name}: this host lacks {sentence}"


def need(name):
    """Skips the test when the host lacks a feature, with exactly that reason."""
    reason = missing_feature(name)
    if reason:
        pytest.skip(reason)
