# SPDX-License-Identifier: Apache-2.0
"""A fork bomb: never more than 64 processes, and none of them is left at the end."""
#| order = 6
#| options = ["--policy", "open", "--time", "1s"]
#| exit = 124
#| status = "timeout"
#| processes_max = 64
import os

while True:
    try:
        os.fork()
    except OSError:
        pass
