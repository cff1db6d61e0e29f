# SPDX-License-Identifier: Apache-2.0
#| id = "R19"
#| title = "Setting the clock"
#| does = "EPERM; the tried values change nothing (the status that is there, an empty time zone)."
#| [expect]
#| status = "ok"
#| verdicts = {adjtimex = "DENIED EPERM", adjtime = "DENIED EPERM", settimeofday = "DENIED EPERM"}
#| [control]
#| kind = "plain"
#| as = "root"
#| verdicts = {adjtimex = "DID", adjtime = "DID", settimeofday = "DID"}
import struct

ADJ_STATUS = 0x10
state = ctypes.create_string_buffer(208)
try:
    syscall("adjtimex", state)
except OSError:
    pass
now = int.from_bytes(state.raw[40:44], sys.byteorder)
order = ctypes.create_string_buffer(struct.pack("I", ADJ_STATUS) + bytes(36) + struct.pack("i", now),
                                    208)
attempt("adjtimex", syscall, "adjtimex", order)
attempt("adjtime", syscall, "clock_adjtime", 0, order)
attempt("settimeofday", syscall, "settimeofday", None, ctypes.c_char_p(bytes(8)))
