# SPDX-License-Identifier: Apache-2.0
#| id = "R20"
#| title = "A core dump"
#| does = "RLIMIT_CORE stays 0: no core in the workspace, no handler of the host run; crashed by signal 6."
#| needs = ["core-files"]
#| [expect]
#| status = "crashed"
#| signal = 6
#| has = ["@hard: 0"]
#| absent = ["core"]
#| [control]
#| kind = "plain"
#| as = "root"
#| status = -6
#| leaves = ["core*"]
#| has = ["@limit: DID"]
import resource

attempt("limit", resource.setrlimit, resource.RLIMIT_CORE,
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
verdict("hard", str(resource.getrlimit(resource.RLIMIT_CORE)[1]))
os.abort()
