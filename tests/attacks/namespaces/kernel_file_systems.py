# SPDX-License-Identifier: Apache-2.0
#| id = "N11"
#| title = "debugfs, tracefs, securityfs, configfs, bpffs, cgroupfs, sysfs"
#| does = "None is mounted inside."
#| [expect]
#| status = "ok"
#| verdicts = {mounted = "none", sys = "none|\\d"}
#| [control]
#| kind = "plain"
#| verdicts = {mounted = "some", sys = "\\d+"}
KINDS = {"debugfs", "tracefs", "securityfs", "configfs", "bpf", "cgroup", "cgroup2", "sysfs",
         "devtmpfs", "mqueue", "hugetlbfs", "pstore", "efivarfs", "fusectl", "binfmt_misc",
         "devpts", "nfsd", "selinuxfs"}
try:
    with open("/proc/self/mounts") as file:
        kinds = {line.split()[2] for line in file}
except OSError:
    kinds = set()
found = kinds & KINDS
verdict("mounted", "some" if found else "none")
verdict("sys", str(len(os.listdir("/sys"))) if os.path.isdir("/sys") else "none")
