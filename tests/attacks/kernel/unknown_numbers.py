# SPDX-License-Identifier: Apache-2.0
#| id = "S09"
#| title = "System call numbers that do not exist"
#| does = "ENOSYS, and the program goes on."
#| [expect]
#| status = "ok"
#| verdicts = {n500 = "DENIED ENOSYS", n999 = "DENIED ENOSYS", minus = "DENIED ENOSYS", large = "DENIED ENOSYS", after = "DID"}
#| [control]
#| kind = "plain"
#| verdicts = {n500 = "DENIED ENOSYS", n999 = "DENIED ENOSYS", minus = "DENIED ENOSYS", large = "DENIED ENOSYS", after = "DID"}
for name, number in (("n500", 500), ("n999", 999), ("minus", -1), ("large", 0x3FFFFFFF)):
    in_child(name, syscall, number, 0, 0, 0)
verdict("after", "DID")
