# SPDX-License-Identifier: Apache-2.0
#| id = "X05"
#| title = "Sockets and directories that are named like files"
#| does = "The socket is refused with a reason; an empty directory is no file."
#| out = true
#| [expect]
#| status = "ok"
#| verdicts = {socket = "DID", directory = "DID"}
#| refused = ["socket\\.txt"]
#| absent = ["report.csv"]
#| [control]
#| kind = "plain"
#| verdicts = {socket = "DID", directory = "DID"}
#| leaves = ["socket.txt", "report.csv"]
import socket

attempt("socket", lambda: socket.socket(socket.AF_UNIX).bind("socket.txt"))
attempt("directory", os.mkdir, "report.csv")
