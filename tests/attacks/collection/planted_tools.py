# SPDX-License-Identifier: Apache-2.0
#| id = "X16"
#| title = "Files that tools of the host would run: git hooks, shell start-up, editor settings"
#| does = "Fetched without an executable bit at most, never run; directories of tools are plain data."
#| out = true
#| [expect]
#| status = "ok"
#| verdicts = {made = "DID"}
#| [control]
#| kind = "plain"
#| verdicts = {made = "DID"}
#| leaves = [".git", ".bashrc", "conftest.py"]
def make():
    for name in (".git/hooks/pre-commit", ".bashrc", ".vscode/tasks.json", "conftest.py",
                 "sitecustomize.py", ".envrc"):
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        with open(name, "w") as file:
            file.write("#!/bin/sh\ntouch /tmp/@MARK@\n")
        os.chmod(name, 0o755)


attempt("made", make)
