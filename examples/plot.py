# SPDX-License-Identifier: Apache-2.0
"""A plot: an open figure is shown as PNG without any call, and a saved one is a file."""
#| order = 2
#| options = ["--file", "examples/sales.csv"]
#| exit = 0
#| status = "ok"
#| displays = ["image/png"]
#| files = ["sales.png"]
#| stdout_has = ["best month: 2024-06"]
import matplotlib.pyplot as plt
import pandas as pd

sales = pd.read_csv("sales.csv")
sales["revenue"] = sales["units"] * sales["price"]
by_month = sales.groupby("month")["revenue"].sum()

figure, axes = plt.subplots(figsize=(6, 3.5))
axes.bar(by_month.index, by_month.values, color="#3465a4")
axes.set_title("Revenue by month")
axes.set_ylabel("revenue")
figure.tight_layout()
figure.savefig("sales.png", dpi=120)
print("best month:", by_month.idxmax())
