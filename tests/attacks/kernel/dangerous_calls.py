# SPDX-License-Identifier: Apache-2.0
#| id = "S06"
#| title = "Every system call that a script never needs and that has a history"
#| does = "Each is refused with EPERM (or ENOSYS) by its number; in the control the kernel looks at the arguments instead."
#| [expect]
#| status = "ok"
#| verdicts = {all = "refused"}
#| [control]
#| kind = "plain"
#| as = "root"
#| has = ["@all: reached: "]
import platform

# Arguments that do nothing: without a filter the kernel answers EINVAL, EFAULT, EBADF or the like.
CALLS = {
    "bpf": (99, None, 0), "perf_event_open": (None, 0, 0, -1, 0), "userfaultfd": (0xFFFF,),
    "kexec_load": (0, 0, None, 0xFFFF), "kexec_file_load": (-1, -1, 0, None, 0xFFFF),
    "init_module": (None, 0, None), "finit_module": (-1, None, 0), "delete_module": (None, 0),
    "keyctl": (99999, 0, 0, 0, 0), "add_key": (None, None, None, 0, 0),
    "request_key": (None, None, None, 0), "open_by_handle_at": (-1, None, 0),
    "name_to_handle_at": (-1, None, None, None, 0xFFFF), "fanotify_init": (0xFFFF0000, 0),
    "fanotify_mark": (-1, 0, 0, -1, None), "quotactl": (-1, None, 0, None),
    "quotactl_fd": (-1, 0, 0, None), "acct": (1,), "swapon": (None, 0), "swapoff": (None,),
    "reboot": (0, 0, 0, None), "syslog": (99, None, 0), "process_vm_readv": (-1, None, 1, None, 1, 0),
    "process_vm_writev": (-1, None, 1, None, 1, 0), "kcmp": (-1, -1, 99, 0, 0),
    "pidfd_getfd": (-1, -1, 0), "ptrace": (99, -1, None, None), "vhangup": None,
    "lookup_dcookie": (0, None, 0), "move_pages": (-1, 1, None, None, None, 0xFF),
    "migrate_pages": (-1, 0, None, None), "setdomainname": (None, 99999),
    "sethostname": (None, 99999), "mount_setattr": (-1, None, 0, None, 0),
    "open_tree": (-1, None, 0xFFFFFF), "move_mount": (-1, None, -1, None, 0xFFFFFF),
    "fsopen": (None, 0xFF), "fsconfig": (-1, 99, None, None, 0), "fsmount": (-1, 0xFF, 0),
    "fspick": (-1, None, 0xFFFF), "process_madvise": (-1, None, 1, 0, 0xFF),
    "process_mrelease": (-1, 0), "memfd_secret": (0xFFFF,), "statmount": (None, None, 0, 0),
    "listmount": (None, None, 0, 0),
}
if platform.machine() == "x86_64":
    CALLS |= {"modify_ldt": (99, None, 0), "iopl": (9,), "ioperm": (0, 99999999, 1),
              "uselib": (None,), "ustat": None, "sysfs": None, "create_module": None}
reached = []
for name, arguments in CALLS.items():
    if arguments is None or name not in _NR:
        continue
    try:
        syscall(name, *arguments)
        reached.append(name + "=0")
    except OSError as error:
        if error.errno not in (_errno.EPERM, _errno.ENOSYS):
            reached.append(f"{name}={_errno.errorcode[error.errno]}")
verdict("all", "reached: " + " ".join(reached) if reached else "refused")
