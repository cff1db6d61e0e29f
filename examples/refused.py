# SPDX-License-Identifier: Apache-2.0
"""Code that the policy `strict` (the default) refuses: nothing of it runs, and the hint helps."""
#| order = 9
#| exit = 126
#| status = "blocked"
#| error = "SecurityError"
#| stderr_has = ["module 'subprocess' is not allowed", "hint: "]
import subprocess

print("not reached")
subprocess.run(["id"], check=True)
