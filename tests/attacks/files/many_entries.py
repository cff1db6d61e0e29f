# SPDX-License-Identifier: Apache-2.0
#| id = "F13b"
#| title = "As many files in the workspace as can be made (up to 40,000)"
#| does = "The result is bounded, says that something was left out, and comes within the grace."
#| options = ["--memory", "512M"]
#| [expect]
#| status = "ok|disk_limit"
#| has = ["@made"]
#| [control]
#| kind = "plain"
#| has = ["@made: 4000"]
count = 0
try:
    for count in range(1, (40000 if os.path.exists("/workspace") else 4000) + 1):
        os.close(os.open(f"f{count}", os.O_CREAT | os.O_WRONLY))
except OSError:
    pass
verdict("made", str(count))
