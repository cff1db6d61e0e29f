# SPDX-License-Identifier: Apache-2.0
#| id = "N10"
#| title = "A root file system whose /proc, /sys and /dev are symlinks"
#| does = "Refused at set-up."
#| needs = ["custom-root"]
#| [expect]
#| status = "internal_error"
#| [control]
#| kind = "none"
#| reason = "execpy builds the root itself and takes none from the user"
raise SystemExit(0)
