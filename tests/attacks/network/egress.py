# SPDX-License-Identifier: Apache-2.0
#| id = "T05"
#| title = "Redirects, rebinding and the like around an allowance"
#| does = "Denied."
#| needs = ["egress"]
#| [expect]
#| status = "ok"
#| [control]
#| kind = "none"
#| reason = "there is no allowance yet"
raise SystemExit(0)
