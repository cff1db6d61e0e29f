# SPDX-License-Identifier: Apache-2.0
#| id = "L05"
#| title = "Timing between processor siblings and through the page cache"
#| does = "A declared non-goal (docs/security.md): cores are not parted among tenants."
#| needs = ["smt-timing"]
#| [expect]
#| status = "ok"
#| [control]
#| kind = "none"
#| reason = "a declared non-goal"
raise SystemExit(0)
