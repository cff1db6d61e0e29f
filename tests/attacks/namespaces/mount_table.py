# SPDX-License-Identifier: Apache-2.0
#| id = "N07b"
#| title = "The table of mounts tells of the host"
#| does = "No path of the host that holds the user's files, the repository or the home is in it."
#| [expect]
#| status = "ok"
#| verdicts = {paths = "clean|DENIED .*"}
#| [control]
#| kind = "plain"
#| verdicts = {paths = "host"}
try:
    with open("/proc/self/mountinfo") as file:
        text = file.read()
    fields = [line.split()[3:5] for line in text.splitlines()]
    words = [word for pair in fields for word in pair]
    told = [w for w in words
            if w.startswith(("/home", "/root", "/tmp/", "@REPOSITORY@/")) or
            w == "@REPOSITORY@" and w != "/tmp" or "cgroup" in w]
    verdict("paths", "host" if told or len(fields) > 60 else "clean")
except OSError as error:
    verdict("paths", "DENIED " + _errno.errorcode[error.errno])
