# SPDX-License-Identifier: Apache-2.0
#| id = "P07b"
#| title = "kill(0, SIGKILL): the process group may reach beyond a pid namespace"
#| does = "The run is in a session and group of its own, so that only it dies: crashed by signal 9."
#| [expect]
#| status = "crashed"
#| signal = 9
#| verdicts = {group = "own", session = "own"}
#| lacks = ["@after"]
#| [control]
#| kind = "plain"
#| supervisor = true
#| status = -9
#| verdicts = {group = "foreign", session = "foreign"}
for name, value in (("group", os.getpgid(0)), ("session", os.getsid(0))):
    # 0 would mean that the leader is outside the pid namespace.
    verdict(name, "own" if value in (1, os.getpid()) else "foreign")
os.kill(0, 9)
verdict("after", "DID")
