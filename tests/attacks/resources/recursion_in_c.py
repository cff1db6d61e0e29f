# SPDX-License-Identifier: Apache-2.0
#| id = "R11"
#| title = "Endless recursion through C, until the stack ends"
#| does = "crashed by signal 11, no hang."
#| [expect]
#| status = "crashed"
#| signal = 11
#| [control]
#| kind = "plain"
#| status = -11
sys.setrecursionlimit(10**9)


def deeper():
    return list(map(lambda _: deeper(), [0]))


deeper()
