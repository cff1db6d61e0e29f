# SPDX-License-Identifier: Apache-2.0
#| id = "N09"
#| title = "Changing the name of the host and of its domain"
#| does = "EPERM; and the name that is seen inside is not the host's."
#| [expect]
#| status = "ok"
#| verdicts = {hostname = "DENIED EPERM", domain = "DENIED EPERM"}
#| [control]
#| kind = "host"
#| verdicts = {hostname = "DID", domain = "DID"}
attempt("hostname", syscall, "sethostname", "@MARK@", 6)
attempt("domain", syscall, "setdomainname", "@MARK@", 6)
