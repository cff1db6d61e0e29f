# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks run, and what has to come out of it."""
import dataclasses

MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    title: str
    code: str
    template: str = "bare"
    output: str | None = None     # all of stdout
    ending: str = "ok"            # ok, error, memory_limit, timeout
    texts: tuple = ()             # in stderr, or in the result
    result_texts: tuple = ()      # in the result object only
    fetches: bool = False         # plot.png
    time_ms: int = 0              # 0: the default limit


TEMPLATES = {
    "bare": (),
    "numpy": ("numpy",),
    "pandas": ("numpy", "pandas"),
    "plot": ("numpy", "pandas", "matplotlib.pyplot"),
}

# Of src/policy/warm_up/, what our templates run before their first cell.
WARM_UPS = {"bare": (), "numpy": ("numpy.py",), "pandas": ("numpy.py", "pandas.py"),
            "plot": ("numpy.py", "pandas.py", "plot.py")}

NUMPY = """\
import numpy as np
a = np.arange(10000, dtype=float).reshape(100, 100)
print(int((a @ a).trace()))
"""

PANDAS = """\
import io
import pandas as pd
rows = "\\n".join(f"{i % 7},{i % 13},{i}" for i in range(1000))
table = pd.read_csv(io.StringIO("region,product,units\\n" + rows))
print(table.groupby("region")["units"].agg(["sum", "mean"]).to_csv(), end="")
"""

PLOT = """\
import matplotlib.pyplot as plt
figure, axes = plt.subplots()
axes.plot(range(50), [x * x for x in range(50)])
axes.set_title("squares")
figure.savefig("plot.png")
plt.close(figure)
"""

EXCEPTION = """\
def mean(values):
    return sum(values) / len(values)

def report(table):
    for name, values in table.items():
        print(name, mean(values))

report({"north": [1, 2], "east": []})
"""

BOMB = """\
held = []
while True:
    held.append(b"x" * (1 << 20))
"""


def groups():
    """What PANDAS prints, computed without pandas."""
    lines = ["region,sum,mean"]
    for region in range(7):
        units = range(region, 1000, 7)
        lines.append(f"{region},{sum(units)},{sum(units) / len(units)}")
    return "\n".join(lines) + "\n"


def trace():
    """What NUMPY prints, computed without numpy."""
    return sum((100 * i + k) * (100 * k + i) for i in range(100) for k in range(100))


WORKLOADS = [
    Workload("print", "print(55)", "print(55)\n", output="55\n"),
    Workload("numpy", "numpy, 100×100 matrix product", NUMPY, "numpy", output=f"{trace()}\n"),
    Workload("pandas", "pandas, group-by over a CSV", PANDAS, "pandas", output=groups()),
    Workload("plot", "matplotlib, PNG fetched", PLOT, "plot", output="", fetches=True),
    Workload("exception", "exception with frames", EXCEPTION, output="north 1.5\n", ending="error",
             texts=("ZeroDivisionError: division by zero", "mean"),
             result_texts=('"frames":[{', '"function":"mean"', '"function":"report"')),
    Workload("output", "100,000 lines of output", "for i in range(100000):\n    print(i)\n",
             output="".join(f"{i}\n" for i in range(100000))),
    Workload("bomb", "memory bomb, 100 MiB, until reported", BOMB, output="", ending="memory_limit"),
    Workload("endless", "endless loop, 200 ms, until reported", "while True:\n    pass\n", output="",
             ending="timeout", time_ms=200),
]
