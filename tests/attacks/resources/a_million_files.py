# SPDX-License-Identifier: Apache-2.0
#| id = "R06"
#| title = "As many empty files as possible"
#| does = "ENOSPC when the inodes are used up; the workspace is gone within the grace."
#| options = ["--memory", "512M"]
#| [expect]
#| status = "ok"
#| verdicts = {create = "DENIED ENOSPC"}
#| [control]
#| kind = "host"
#| time = 30
#| verdicts = {create = "DID"}
def create():
    os.mkdir("/tmp/@MARK@")
    for number in range(40_000):
        os.close(os.open(f"/tmp/@MARK@/{number}", os.O_CREAT | os.O_WRONLY))


attempt("create", create)
