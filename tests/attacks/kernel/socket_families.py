# SPDX-License-Identifier: Apache-2.0
#| id = "S07"
#| title = "Socket families beyond unix and internet"
#| does = "EAFNOSUPPORT for each, as where the family does not exist; raw and packet sockets EPERM."
#| [expect]
#| status = "ok"
#| verdicts = {families = "EAFNOSUPPORT", unix = "DID", inet = "DID", raw = "DENIED (EPERM|EACCES|EPROTONOSUPPORT|ESOCKTNOSUPPORT)", raw6 = "DENIED (EPERM|EACCES|EPROTONOSUPPORT|ESOCKTNOSUPPORT)", pair = "DENIED EAFNOSUPPORT"}
#| [control]
#| kind = "plain"
#| as = "root"
#| verdicts = {families = ".*DID.*", unix = "DID", inet = "DID", raw = "DID", raw6 = "DID", pair = "DENIED (EOPNOTSUPP|ENOTSUP)"}
import socket

FAMILIES = {"alg": 38, "vsock": 40, "packet": 17, "netlink": 16, "key": 15, "xdp": 44, "tipc": 30,
            "rxrpc": 33, "bluetooth": 31, "can": 29, "ax25": 3, "ipx": 4, "appletalk": 5, "x25": 9,
            "rds": 21, "llc": 26, "ib": 27, "mpls": 28, "iucv": 32, "isdn": 34, "phonet": 35,
            "ieee802154": 36, "caif": 37, "nfc": 39, "kcm": 41, "qipcrtr": 42, "smc": 43,
            "mctp": 45, "none": 0, "beyond": 46, "huge": 0x7FFFFFFF}
found = set()
for family in FAMILIES.values():
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        try:
            os.close(syscall("socket", family, kind, 0))
            found.add("DID")
        except OSError as error:
            found.add(_errno.errorcode[error.errno])
verdict("families", " and ".join(sorted(found)))
attempt("unix", lambda: socket.socket(socket.AF_UNIX).close())
attempt("inet", lambda: socket.socket(socket.AF_INET).close())
attempt("raw", syscall, "socket", socket.AF_INET, socket.SOCK_RAW, 1)
attempt("raw6", syscall, "socket", socket.AF_INET6, socket.SOCK_RAW, 58)
attempt("pair", syscall, "socketpair", 16, socket.SOCK_RAW, 0, ctypes.create_string_buffer(8))
