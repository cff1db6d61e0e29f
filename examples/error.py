# SPDX-License-Identifier: Apache-2.0
"""An exception: CPython's own traceback on stderr, and the same as frames with columns."""
#| order = 3
#| exit = 1
#| status = "error"
#| error = "ZeroDivisionError"
#| frames = ["<module>", "report", "mean"]
#| stderr_has = ["ZeroDivisionError: division by zero"]


def mean(values):
    return sum(values) / len(values)


def report(groups):
    for name, values in groups.items():
        print(f"{name}: {mean(values):.1f}")


report({"north": [120, 132, 118], "east": []})
