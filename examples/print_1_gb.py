# SPDX-License-Identifier: Apache-2.0
"""One gigabyte of output: ended at 1 MiB. With --truncate all of it passes, and little is kept."""
#| order = 7
#| exit = 137
#| status = "output_limit"
#| truncated = { options = ["--truncate", "--time", "60s", "--cpu", "60s"], bytes = 1073741824, warden_mib = 16 }
line = "x" * (1024 * 1024 - 1)
for _ in range(1024):
    print(line)
