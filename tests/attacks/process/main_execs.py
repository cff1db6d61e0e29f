# SPDX-License-Identifier: Apache-2.0
#| id = "P12b"
#| title = "The main process replaces itself by another program"
#| does = "What the new program does is the end of the run: its exit code, its output, nothing of ours."
#| [expect]
#| status = "error"
#| exit_code = 5
#| has = ["from the shell"]
#| [control]
#| kind = "plain"
#| status = 5
#| has = ["from the shell"]
os.execv("/bin/sh", ["sh", "-c", "echo from the shell; exit 5"])
