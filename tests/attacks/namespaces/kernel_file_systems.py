# SPDX-License-Identifier: Apache-2.0
#| id = "N11"
#| title = "debugfs, tracefs, securityfs, configfs, bpffs, cgroupfs, sysfs"
#| does = "None is mounted inside."
#| [expect]
#| status = "ok"
#| verdicts = {mounted = "none", sys = "1"}
#| [control]
#| kind = "plain"
#| verdicts = {mounted = "some", sys = "\\d+"}
KINDS = {"debugfs", "tracefs", "securityfs", "configfs", "bpf", "cgroup", "cgroup2", "sysfs",
         "devtmpfs", "mqueue", "hugetlbfs", "pstore", "efivarfs", "fusectl", "binfmt_misc",
         "devpts", "nfsd", "selinuxfs"}
ALLOWED = {"/dev/" + n for n in ("null", "zero", "full", "random", "urandom")}
try:
    with open("/proc/self/mounts") as file:
        # Devices are single nodes; /sys is a directory with copies of a few files.
        kinds = {line.split()[2] for line in file
                 if not (line.split()[3].startswith("ro,") and line.split()[1] in ALLOWED)}
except OSError:
    kinds = set()
found = kinds & KINDS
verdict("mounted", "some" if found else "none")
verdict("sys", str(len(os.listdir("/sys"))) if os.path.isdir("/sys") else "none")
