# SPDX-License-Identifier: Apache-2.0
#| id = "P11"
#| title = "exit(137) looks like a kill, and is none"
#| does = "An exit code of the code's own, not a signal, not a memory limit."
#| [expect]
#| status = "error"
#| exit_code = 137
#| [control]
#| kind = "plain"
#| status = 137
sys.exit(137)
