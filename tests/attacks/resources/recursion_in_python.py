# SPDX-License-Identifier: Apache-2.0
#| id = "R11b"
#| title = "Endless recursion in Python"
#| does = "RecursionError for the code, which ends with its traceback."
#| [expect]
#| status = "error"
#| exit_code = 1
#| has = ["RecursionError"]
#| [control]
#| kind = "plain"
#| status = 1
#| has = ["RecursionError"]
def deeper():
    return deeper()


deeper()
