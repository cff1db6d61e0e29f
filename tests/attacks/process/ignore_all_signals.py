# SPDX-License-Identifier: Apache-2.0
#| id = "P06"
#| title = "Every signal is blocked and ignored"
#| does = "Also by the raw system call, which can block the ones that the C library keeps; SIGKILL stays."
#| options = ["--time", "1s"]
#| time = 1
#| [expect]
#| status = "timeout"
#| verdicts = {term = "DID", raw = "DID"}
#| [control]
#| kind = "plain"
#| status = "timeout"
#| time = 1
#| verdicts = {term = "DID", raw = "DID"}
import signal
import time

for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
everything = ctypes.c_uint64(2**64 - 1)
attempt("raw", syscall, "rt_sigprocmask", 0, ctypes.byref(everything), None, 8)
attempt("term", os.kill, os.getpid(), signal.SIGTERM)
while True:
    time.sleep(60)
