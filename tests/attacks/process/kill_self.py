# SPDX-License-Identifier: Apache-2.0
#| id = "P11b"
#| title = "os.kill(self, 9) looks like an OOM kill, and is none"
#| does = "crashed with signal 9, not memory_limit, not timeout."
#| [expect]
#| status = "crashed"
#| signal = 9
#| [control]
#| kind = "plain"
#| status = -9
os.kill(os.getpid(), 9)
