# SPDX-License-Identifier: Apache-2.0
#| id = "F09"
#| title = "Truncating what can only be read"
#| does = "O_RDONLY with O_TRUNC, truncate and ftruncate are refused; the data stays."
#| needs = ["overlay"]
#| [expect]
#| status = "ok"
#| verdicts = {open = "DENIED (EACCES|EROFS)", truncate = "DENIED (EACCES|EROFS)", ftruncate = "DENIED (EINVAL|EBADF)", etc = "DENIED (EACCES|EROFS)", size = "kept"}
#| [control]
#| kind = "host"
#| has = ["@open: DID", "@truncate: DID", "@etc: DID", "@size: lost"]
target = "/usr/bin/env"
fd = os.open(target, os.O_RDONLY)
attempt("ftruncate", os.ftruncate, fd, 1)
attempt("truncate", os.truncate, target, 1)
attempt("open", os.open, target, os.O_RDONLY | os.O_TRUNC)
attempt("etc", os.open, "/etc/passwd", os.O_RDONLY | os.O_TRUNC)
verdict("size", "kept" if os.stat(target).st_size > 1 else "lost")
