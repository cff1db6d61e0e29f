# SPDX-License-Identifier: Apache-2.0
#| id = "P23"
#| title = "A program that is setuid root"
#| does = "Started from inside it keeps the user of the run, and NoNewPrivs stays set."
#| [expect]
#| status = "ok"
#| verdicts = {euid = "unchanged", nonewprivs = "1"}
#| [control]
#| kind = "plain"
#| as = "user"
#| verdicts = {euid = "0", nonewprivs = "0"}
import subprocess
import time

# su waits for a password on a pipe that never has one.
child = subprocess.Popen(["/usr/bin/su"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
for _ in range(100):
    status = status_of(child.pid)
    if status["Name"] == "su" or child.poll() is not None:
        break
    time.sleep(0.02)
euid = status["Uid"].split()[1]
verdict("euid", "unchanged" if euid == str(os.geteuid()) != "0" else euid)
verdict("nonewprivs", status["NoNewPrivs"])
os._exit(0)
