# SPDX-License-Identifier: Apache-2.0
#| id = "S02b"
#| title = "The same from a native program in the workspace"
#| does = "The program cannot be started, or its 32-bit calls are refused or end it."
#| needs = ["ia32"]
#| files = ["tool=helper:payload"]
#| [expect]
#| status = "ok"
#| verdicts = {native = "KILLED 31|refused|DENIED (EACCES|EPERM)"}
#| [control]
#| kind = "plain"
#| verdicts = {native = "worked"}
import subprocess

try:
    os.chmod("tool", 0o755)
    done = subprocess.run(["./tool", "int80"])
except OSError as error:
    verdict("native", "DENIED " + _errno.errorcode[error.errno])
else:
    verdict("native", f"KILLED {-done.returncode}" if done.returncode < 0
            else "worked" if done.returncode == 0 else "refused")
