# SPDX-License-Identifier: Apache-2.0
"""A memory bomb: the kernel ends it at 100 MiB; what it printed before is there."""
#| order = 5
#| exit = 137
#| status = "memory_limit"
#| stdout_has = ["50 MiB held"]
held = []
while True:
    held.append(bytearray(10 * 1024 * 1024))
    print(f"{len(held) * 10} MiB held")
