# SPDX-License-Identifier: Apache-2.0
#| id = "N01"
#| title = "Listing all processes, reading their command lines and environments"
#| does = "Only the run's own are there; nothing of warden or caller can be read."
#| [expect]
#| status = "ok"
#| verdicts = {foreign = "none", environ = "clean", cmdline = "clean"}
#| [control]
#| kind = "plain"
#| as = "root"
#| verdicts = {foreign = "some", environ = "secret", cmdline = "foreign"}
secret = ("CAN" + "ARY").lower()
pids = [int(pid) for pid in os.listdir("/proc") if pid.isdigit()]
foreign = [pid for pid in pids if pid not in (1, os.getpid())]
names = []
for pid in pids:
    try:
        with open(f"/proc/{pid}/comm") as file:
            names.append(file.read().strip())
    except OSError:
        pass
verdict("foreign", "some" if foreign or len(pids) > 2 or "python3" in names and 1 in pids
        and names[0] not in ("execpy", "execpy-guest", "init", "execpy-init") else "none")
found = {"environ": "clean", "cmdline": "clean"}
for pid in pids:
    for name in ("environ", "cmdline"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                text = file.read()
        except OSError:
            continue
        if name == "environ" and b"EXECPY_TEST_SECRET" in text:
            found[name] = "secret"
        if name == "cmdline" and pid != os.getpid() and text and b"sandbox" not in text:
            if b"control" in text or b"warden" in text or b"policy" in text:
                found[name] = "foreign"
for name, value in found.items():
    verdict(name, value)
