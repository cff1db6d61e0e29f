# SPDX-License-Identifier: Apache-2.0
"""Code that looks around: other users, processes, files and the network are not there."""
#| order = 8
#| options = ["--policy", "open"]
#| exit = 0
#| status = "ok"
#| stdout_has = ["user 1000 on sandbox", "/etc/shadow: FileNotFoundError", "network: refused"]
import os
import socket

print("user", os.getuid(), "on", socket.gethostname())
print("processes:", sorted(int(name) for name in os.listdir("/proc") if name.isdigit()))
print("users:", [line.split(":")[0] for line in open("/etc/passwd")])
print("environment:", sorted(name for name in os.environ if "SECRET" in name or "TOKEN" in name))
for path in ("/etc/shadow", "/root", "/home", "/var/run/docker.sock"):
    try:
        os.stat(path)
        print(f"{path}: is there")
    except OSError as error:
        print(f"{path}: {type(error).__name__}")
try:
    open("/usr/lib/python3/planted.py", "w")
except OSError as error:
    print("writing to /usr:", error.strerror)
try:
    socket.create_connection(("1.1.1.1", 53), timeout=2)
    print("network: reached")
except OSError:
    print("network: refused")
