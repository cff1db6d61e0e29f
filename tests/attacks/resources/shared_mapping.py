# SPDX-License-Identifier: Apache-2.0
#| id = "R04b"
#| title = "Memory hidden in an anonymous shared mapping"
#| does = "Shared pages count as well: memory_limit."
#| [expect]
#| status = "memory_limit"
#| verdicts = {map = "DID"}
#| [control]
#| kind = "plain"
#| verdicts = {map = "DID", write = "DID"}
import mmap

area = attempt("map", mmap.mmap, -1, 300 << 20)


def write_all():
    for at in range(0, 300 << 20, 4096):
        area[at] = 1


attempt("write", write_all)
