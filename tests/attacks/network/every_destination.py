# SPDX-License-Identifier: Apache-2.0
#| id = "T01"
#| title = "TCP and UDP to the host, to the metadata service, to a resolver, over IPv4 and IPv6"
#| does = "There is no interface to leave by: every attempt is refused or unreachable at once."
#| [expect]
#| status = "ok"
#| verdicts = {tcp = "none", udp = "none", names = "DENIED gaierror", interfaces = "lo|"}
#| wall_max = 4
#| [control]
#| kind = "host"
#| has = ["@udp: some"]
import socket


def reach(kind, family, address):
    with socket.socket(family, kind) as s:
        s.settimeout(0.3)
        s.connect(address)
        if kind == socket.SOCK_DGRAM:
            s.send(b"x")


PLACES = [(socket.AF_INET, ("127.0.0.1", 22)), (socket.AF_INET, ("169.254.169.254", 80)),
          (socket.AF_INET, ("8.8.8.8", 53)), (socket.AF_INET, ("10.0.0.1", 80)),
          (socket.AF_INET, ("255.255.255.255", 9)),
          (socket.AF_INET6, ("::1", 22)), (socket.AF_INET6, ("2001:4860:4860::8888", 53)),
          (socket.AF_INET6, ("::ffff:8.8.8.8", 53))]
for name, kind in (("tcp", socket.SOCK_STREAM), ("udp", socket.SOCK_DGRAM)):
    reached = []
    for family, address in PLACES:
        try:
            reach(kind, family, address)
            reached.append(address)
        except OSError:
            pass
    verdict(name, "some" if reached else "none")
# A name that no file answers.
try:
    socket.getaddrinfo("example.com", 80)
    verdict("names", "DID")
except socket.gaierror:
    verdict("names", "DENIED gaierror")
try:
    with open("/proc/net/dev") as file:
        verdict("interfaces", " ".join(line.split(":")[0].strip() for line in file if ":" in line))
except OSError:
    verdict("interfaces", "")
