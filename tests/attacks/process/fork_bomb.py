# SPDX-License-Identifier: Apache-2.0
#| id = "P02b"
#| title = "A fork bomb"
#| does = "Every process forks for ever; the number stays bounded, and the wall time ends it."
#| options = ["--time", "1s"]
#| time = 1
#| [expect]
#| status = "timeout"
#| verdicts = {start = "DID"}
#| processes_max = 64
#| [control]
#| kind = "plain"
#| verdicts = {start = "DID"}
#| status = "timeout"
#| time = 1
#| processes = 250
#| peak_over = 100
verdict("start", "DID")
while True:
    try:
        os.fork()
    except OSError:
        pass
