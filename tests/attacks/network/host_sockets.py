# SPDX-License-Identifier: Apache-2.0
#| id = "T02"
#| title = "Pathname sockets of the host: D-Bus, Docker, journal, agents"
#| does = "None of the paths exists inside."
#| [expect]
#| status = "ok"
#| verdicts = {sockets = "none"}
#| [control]
#| kind = "plain"
#| verdicts = {sockets = "some"}
found = []
for directory in ("/run", "/var/run", "/var/lib", "@CANARY@"):
    if os.path.isdir(directory) and os.listdir(directory):
        found.append(directory)
verdict("sockets", "some" if found else "none")
