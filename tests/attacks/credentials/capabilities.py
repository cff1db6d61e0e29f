# SPDX-License-Identifier: Apache-2.0
#| id = "C05"
#| title = "Capabilities, securebits, groups"
#| does = "All five sets are empty, securebits are locked, there are no supplementary groups, nothing comes back by an exec."
#| [expect]
#| status = "ok"
#| verdicts = {sets = "0 0 0 0 0", securebits = "locked|cannot be asked", groups = "none", raise = "DENIED EPERM", ambient = "DENIED (EPERM|EINVAL)"}
#| [control]
#| kind = "plain"
#| as = "root"
#| has = ["@securebits: open", "@raise: DID", "@ambient: DID"]
import struct

status = status_of()
verdict("sets", " ".join(str(int(status[name], 16))
                         for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")))
try:
    bits = syscall("prctl", 27, 0, 0, 0, 0)
    # noroot and no_setuid_fixup with their locks, keep_caps locked.
    verdict("securebits", "locked" if bits & 0x2F == 0x2F else "open")
except OSError:
    verdict("securebits", "cannot be asked")
foreign = [g for g in os.getgroups() if g not in (os.getgid(), 65534)]
verdict("groups", "some" if foreign else "none")
header = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
everything = ctypes.create_string_buffer(struct.pack("6I", 1, 1, 1, 0, 0, 0))
attempt("raise", syscall, "capset", header, everything)
attempt("ambient", syscall, "prctl", 47, 2, 0, 0, 0)
