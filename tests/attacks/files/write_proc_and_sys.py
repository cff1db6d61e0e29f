# SPDX-License-Identifier: Apache-2.0
#| id = "F03"
#| title = "Opening kernel settings for writing"
#| does = "They are absent or not writable; nothing is written in the control either."
#| needs = ["overlay"]
#| [expect]
#| status = "ok"
#| verdicts = {hostname = "DENIED (ENOENT|EACCES|EROFS)", core_pattern = "DENIED (ENOENT|EACCES|EROFS)", overcommit = "DENIED (ENOENT|EACCES|EROFS)", sysrq = "DENIED (ENOENT|EACCES|EROFS)", forward = "DENIED (ENOENT|EACCES|EROFS)", thp = "DENIED (ENOENT|EACCES|EROFS)", cgroup = "DENIED (ENOENT|EACCES|EROFS)", pid_max = "DENIED (ENOENT|EACCES|EROFS)", last_pid = "DENIED (ENOENT|EACCES|EROFS)"}
#| [control]
#| kind = "host"
#| verdicts = {hostname = "DID", core_pattern = "DID", overcommit = "DID", sysrq = "DID|DENIED ENOENT", forward = "DID", thp = "DID", cgroup = "DID", pid_max = "DID", last_pid = "DID"}
import glob

places = {
    "hostname": "/proc/sys/kernel/hostname", "core_pattern": "/proc/sys/kernel/core_pattern",
    "overcommit": "/proc/sys/vm/overcommit_memory", "sysrq": "/proc/sysrq-trigger",
    "forward": "/proc/sys/net/ipv4/ip_forward", "pid_max": "/proc/sys/kernel/pid_max",
    "thp": "/sys/kernel/mm/transparent_hugepage/enabled",
    "last_pid": "/proc/sys/kernel/ns_last_pid",
}
places["cgroup"] = (glob.glob("/sys/fs/cgroup/cgroup.procs")
                    + glob.glob("/sys/fs/cgroup/*/cgroup.procs") + ["/sys/fs/cgroup/x"])[0]
for name, path in places.items():
    attempt(name, os.open, path, os.O_WRONLY)
