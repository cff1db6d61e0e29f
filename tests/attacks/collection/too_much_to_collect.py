# SPDX-License-Identifier: Apache-2.0
#| id = "X15"
#| title = "Many files of many bytes, to make collecting slow"
#| does = "The result is there within the grace, and says so if not all could be collected."
#| options = ["--memory", "256M"]
#| [expect]
#| status = "ok"
#| verdicts = {made = "DID"}
#| count = 4000
#| [control]
#| kind = "plain"
#| verdicts = {made = "DID"}
def make():
    for number in range(4000 if os.path.exists("/workspace") else 400):
        os.makedirs(f"d{number % 100}/e{number % 7}", exist_ok=True)
        with open(f"d{number % 100}/e{number % 7}/{number}", "wb") as file:
            file.write(b"x" * 8192)


attempt("made", make)
