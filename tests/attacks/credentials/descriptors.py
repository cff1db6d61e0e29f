# SPDX-License-Identifier: Apache-2.0
#| id = "C02"
#| title = "Descriptors that were forgotten"
#| does = "0, 1 and 2 are all there is; each is a pipe or /dev/null, and none leads out."
#| [expect]
#| status = "ok"
#| verdicts = {open = "0 1 2", kinds = "harmless"}
#| [control]
#| kind = "plain"
#| verdicts = {open = "0 1 2 .*", kinds = "leads out"}
import stat

found = []
for fd in range(65536):
    try:
        os.fstat(fd)
        found.append(fd)
    except OSError:
        pass
verdict("open", " ".join(map(str, found)))
kinds = set()
for fd in found:
    mode = os.fstat(fd).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) and os.fstat(fd).st_rdev == os.makedev(1, 3):
        kinds.add("harmless")
    else:
        kinds.add("leads out")
verdict("kinds", " ".join(sorted(kinds)) if kinds == {"harmless"} else "leads out")
