# SPDX-License-Identifier: Apache-2.0
#| id = "L04"
#| title = "What the kernel tells of other tenants' load"
#| does = "Load, memory, process counts and network counters of the machine are absent."
#| [expect]
#| status = "ok"
#| verdicts = {loadavg = "DENIED .*", stat = "DENIED .*", meminfo = "DENIED .*", vmstat = "DENIED .*", diskstats = "DENIED .*", pressure = "DENIED .*", net = "no neighbours", cgroups = "clean|DENIED .*"}
#| [control]
#| kind = "plain"
#| verdicts = {loadavg = "DID", stat = "DID", meminfo = "DID", vmstat = "DID", diskstats = "DID", pressure = "DID|DENIED (ENOENT|EOPNOTSUPP)", net = "neighbours|no neighbours", cgroups = "told|clean"}
def read(path):
    with open(path) as file:
        return file.read()


for name in ("loadavg", "stat", "meminfo", "vmstat", "diskstats"):
    attempt(name, read, "/proc/" + name)
attempt("pressure", read, "/proc/pressure/cpu")
try:
    names = [line.split(":")[0].strip() for line in read("/proc/net/dev").splitlines()[2:]]
except OSError:
    names = []
verdict("net", "neighbours" if set(names) - {"lo"} else "no neighbours")
try:
    told = [line for line in read("/proc/self/cgroup").splitlines() if not line.endswith(":/")]
    verdict("cgroups", "told" if told else "clean")
except OSError as error:
    verdict("cgroups", "DENIED " + _errno.errorcode[error.errno])
