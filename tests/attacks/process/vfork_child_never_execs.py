# SPDX-License-Identifier: Apache-2.0
#| id = "P05"
#| title = "The child of a vfork never execs"
#| does = "posix_spawn blocks in opening a FIFO, its parent with it (state D); both are killed."
#| options = ["--time", "1s"]
#| time = 1
#| [expect]
#| status = "timeout"
#| verdicts = {fifo = "DID"}
#| absent = ["spawned"]
#| [control]
#| kind = "plain"
#| verdicts = {fifo = "DID"}
#| status = "timeout"
#| time = 1
#| leaves = ["fifo"]
attempt("fifo", os.mkfifo, "fifo")
os.posix_spawn("/bin/true", ["true"], {},
               file_actions=[(os.POSIX_SPAWN_OPEN, 0, "fifo", os.O_RDONLY, 0)])
open("spawned", "w").close()
