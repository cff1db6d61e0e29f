# SPDX-License-Identifier: Apache-2.0
#| id = "S15"
#| title = "Every instruction of the filter is reached by some call of the corpus"
#| does = "Counted where the filter's program is at hand: in the generated test of the policy table."
#| needs = ["filter-coverage"]
#| [expect]
#| status = "ok"
#| [control]
#| kind = "none"
#| reason = "a measure of the tests, not an attack"
raise SystemExit(0)
