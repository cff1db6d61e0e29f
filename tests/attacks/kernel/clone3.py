# SPDX-License-Identifier: Apache-2.0
#| id = "S03"
#| title = "clone3, whose flags a filter cannot see"
#| does = "ENOSYS, so that the C library falls back to clone: threads still work."
#| [expect]
#| status = "ok"
#| verdicts = {clone3 = "DENIED ENOSYS", threads = "DID"}
#| [control]
#| kind = "plain"
#| verdicts = {clone3 = "DENIED EINVAL", threads = "DID"}
import threading

attempt("clone3", syscall, "clone3", ctypes.c_char_p(bytes(64)), 1)


def thread():
    found = []
    worker = threading.Thread(target=found.append, args=(1,))
    worker.start()
    worker.join()
    assert found == [1]


attempt("threads", thread)
