# SPDX-License-Identifier: Apache-2.0
#| id = "S14b"
#| title = "The kernel watch: the path changes while the watcher reads it"
#| does = "Never opens anything outside; the first time that it is seen, the run is ended."
#| options = ["--policy", "standard", "--time", "20s", "--cpu", "20s"]
#| [expect]
#| status = "anomaly"
#| [control]
#| kind = "none"
#| reason = "there is nothing to watch without the watch; what it watches is tried by F01 and T04"
import ctypes
import threading

libc = ctypes.CDLL(None, use_errno=True)
path = ctypes.create_string_buffer(b"/workspace/x", 32)
running = True


def flip():
    while running:
        path.value = b"/usr/xxxxxxx"
        path.value = b"/workspace/x"


threading.Thread(target=flip, daemon=True).start()
for _ in range(100000):
    descriptor = libc.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    if descriptor >= 0:
        where = os.readlink(f"/proc/self/fd/{descriptor}")
        if not where.startswith("/workspace"):
            attempt("outside", lambda: None)
        os.close(descriptor)
running = False
