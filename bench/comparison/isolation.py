# SPDX-License-Identifier: Apache-2.0
"""What each contestant of the comparison isolates and limits, as it is started by contestants.py."""

COLUMNS = ("files", "network", "processes", "privileges", "system calls", "memory",
           "one run from the next", "tells how a run ended")

NOTHING = ("the host's", "the host's", "the host's", "the caller's", "all")

ROWS = {
    "execpy (all columns)": (
        "own root: interpreter read-only, `/workspace`", "none", "own pid namespace",
        "no capability, unprivileged id, Landlock", "allow list, watched",
        "cgroup, 100 MiB of the run's own", "new cell", "status, frames, usage, files"),
    "bubblewrap": (
        "own root: `/usr` read-only, `/workspace` shared with the caller", "none", "own pid namespace",
        "no capability", "all", "address space", "new process", "exit status"),
    "firejail": (
        "the host's; home, `/tmp`, `/dev` own, system folders read-only", "none",
        "own pid namespace", "no capability, root", "deny list", "address space", "new process",
        "exit status"),
    "runc": (
        "own root: `/usr` read-only, `/workspace` shared with the caller", "none", "own pid namespace",
        "no capability, root", "all", "cgroup, 100 MiB", "new container", "exit status"),
    "gVisor": (
        "own root: `/usr` read-only, `/workspace` shared with the caller", "none", "own kernel",
        "no capability", "answered by its own kernel", "cgroup, 100 MiB", "new container",
        "exit status"),
    "fork server in bubblewrap": (
        "as bubblewrap, one place for all runs", "none",
        "shared by all runs, which may kill the server", "no capability", "all", "address space",
        "new process, siblings in reach", "exit status"),
    "Pyodide in Node": (
        "in memory, until the code imports `js`: then the host's", "through `js`, the host's",
        "one", "through `js`, the caller's", "through `js`, all", "none below 2 GiB",
        "new interpreter", "text of the exception"),
    "Pyodide, kept": (
        "as above, shared by all runs", "as above", "one", "as above", "as above", "as above",
        "globals only", "text of the exception"),
    "python3": (*NOTHING, "address space", "new process", "exit status"),
    "warm interpreter": (*NOTHING, "none", "globals only", "nothing when it ends the interpreter"),
}


def table():
    lines = ["| | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(cells) + " |" for name, cells in ROWS.items()]
    return lines
