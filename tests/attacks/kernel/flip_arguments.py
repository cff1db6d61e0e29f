# SPDX-License-Identifier: Apache-2.0
#| id = "S14"
#| title = "Arguments are flipped by another thread while a call is checked"
#| does = "Nothing decides by what a pointer shows: a forbidden path is never opened."
#| [expect]
#| status = "ok"
#| verdicts = {opened = "never"}
#| [control]
#| kind = "plain"
#| verdicts = {opened = "often"}
import threading

good, bad = b"/dev/null\0".ljust(120, b"\0"), b"@CANARY@/canary.txt\0".ljust(120, b"\0")
path = ctypes.create_string_buffer(120)
stop, opened = False, 0


def flip():
    while not stop:
        ctypes.memmove(path, bad, 120)
        ctypes.memmove(path, good, 120)


sys.setswitchinterval(1e-6)
worker = threading.Thread(target=flip)
worker.start()
for _ in range(20000):
    try:
        fd = syscall("openat", -100, path, os.O_RDONLY, 0)
    except OSError:
        continue
    if os.fstat(fd).st_size > 0:
        opened += 1
    os.close(fd)
stop = True
worker.join()
verdict("opened", "often" if opened else "never")
