# SPDX-License-Identifier: Apache-2.0
#| id = "R08"
#| title = "System V and POSIX IPC objects are left behind"
#| does = "They end with the run's IPC namespace; the next run finds none of them."
#| [expect]
#| status = "ok"
#| verdicts = {shm = "DID|DENIED (EPERM|ENOSYS)", sem = "DID|DENIED (EPERM|ENOSYS)", msg = "DID|DENIED (EPERM|ENOSYS)", mq = "DID|DENIED (EPERM|ENOSYS)", found = "0"}
#| [next]
#| status = "ok"
#| verdicts = {found = "0"}
#| [control]
#| kind = "host"
#| after = "len(open('/proc/sysvipc/shm').readlines()) - 1"
#| after_is = "1"
#| has = ["@found: 0", "@found: 3"]
KEY = 0x5EC0DE


def existing():
    count = 0
    for call, size in (("shmget", 4096), ("semget", 1), ("msgget", None)):
        try:
            syscall(call, KEY, 0) if size is None else syscall(call, KEY, size, 0)
            count += 1
        except OSError:
            pass
    return count


verdict("found", str(existing()))
attempt("shm", syscall, "shmget", KEY, 4096, 0o1666)
attempt("sem", syscall, "semget", KEY, 1, 0o1666)
attempt("msg", syscall, "msgget", KEY, 0o1666)
attempt("mq", syscall, "mq_open", "@MARK@", os.O_CREAT | os.O_RDWR, 0o666, None)
#== next run
KEY = 0x5EC0DE
count = 0
for call, arguments in (("shmget", (4096, 0)), ("semget", (1, 0)), ("msgget", (0,))):
    try:
        syscall(call, KEY, *arguments)
        count += 1
    except OSError:
        pass
verdict("found", str(count))
