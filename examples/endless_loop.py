# SPDX-License-Identifier: Apache-2.0
"""An endless loop: ended at the time limit, and the result names the line that it was in."""
#| order = 4
#| options = ["--time", "1s"]
#| exit = 124
#| status = "timeout"
#| frames = ["<module>", "search"]
#| frame_line = [13, 14]
#| stdout_has = ["searching"]


def search(value):
    while value != 0:
        value = value * 3 + 1 if value % 2 else value // 2 or 1


print("searching …")
search(27)
