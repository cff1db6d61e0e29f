# SPDX-License-Identifier: Apache-2.0
#| id = "T04"
#| title = "A listening TCP socket"
#| does = "Refused, or private: the port does not exist on the host (the harness has bound it there already)."
#| [expect]
#| status = "ok"
#| verdicts = {listen = "DENIED .*|DID", raw = "DENIED .*", icmp = "DENIED .*"}
#| [control]
#| kind = "plain"
#| as = "root"
#| verdicts = {listen = "DID", raw = "DID", icmp = "DID|DENIED .*"}
import socket


def listen():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()


attempt("listen", listen)
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close())
attempt("icmp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1).close())
