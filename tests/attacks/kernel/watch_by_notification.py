# SPDX-License-Identifier: Apache-2.0
#| id = "S14b"
#| title = "The kernel watch: signal before receive, watcher killed"
#| does = "Never allows and never leaks."
#| needs = ["notification"]
#| [expect]
#| status = "anomaly"
#| [control]
#| kind = "none"
#| reason = "there is nothing to watch without the watch"
raise SystemExit(0)
