# SPDX-License-Identifier: Apache-2.0
#| id = "P12"
#| title = "An exec that fails in the code is the code's own error"
#| does = "FileNotFoundError for the code; never exit code 127, never internal_error."
#| [expect]
#| status = "ok"
#| verdicts = {exec = "DENIED ENOENT", spawn = "DENIED ENOENT"}
#| [control]
#| kind = "plain"
#| verdicts = {exec = "DENIED ENOENT", spawn = "DENIED ENOENT"}
import subprocess

attempt("exec", os.execv, "/nonexistent", ["x"])
attempt("spawn", subprocess.run, ["/nonexistent"])
