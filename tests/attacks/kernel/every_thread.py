# SPDX-License-Identifier: Apache-2.0
#| id = "S11"
#| title = "A thread, a child, a grandchild and an exec'ed program that might have been forgotten"
#| does = "Each shows Seccomp 2, NoNewPrivs 1 and no capability in any of the five sets."
#| [expect]
#| status = "ok"
#| verdicts = {main = "confined", thread = "confined", child = "confined", program = "confined"}
#| [control]
#| kind = "plain"
#| verdicts = {main = "free", thread = "free", child = "free", program = "free"}
import subprocess
import threading


def judge(text):
    found = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    confined = (found["Seccomp"].strip() == "2" and found["NoNewPrivs"].strip() == "1"
                and all(int(found[name], 16) == 0
                        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")))
    return "confined" if confined else "free"


verdict("main", judge(open("/proc/self/status").read()))


def in_thread():
    with open(f"/proc/self/task/{threading.get_native_id()}/status") as status:
        verdict("thread", judge(status.read()))


worker = threading.Thread(target=in_thread)
worker.start()
worker.join()
if os.fork() == 0:
    verdict("child", judge(open("/proc/self/status").read()))
    os._exit(0)
os.wait()
verdict("program", judge(subprocess.run(["/bin/cat", "/proc/self/status"], capture_output=True,
                                        text=True).stdout))
