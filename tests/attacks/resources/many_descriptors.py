# SPDX-License-Identifier: Apache-2.0
#| id = "R23b"
#| title = "As many descriptors as possible"
#| does = "EMFILE at a limit of the run's own, so that the host's table is not used up."
#| [expect]
#| status = "ok"
#| verdicts = {open = "DENIED EMFILE"}
#| [control]
#| kind = "plain"
#| as = "root"
#| verdicts = {open = "DID"}
import resource

try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
except (OSError, ValueError):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def open_all():
    for _ in range(10000):
        os.dup(0)


attempt("open", open_all)
