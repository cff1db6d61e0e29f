# SPDX-License-Identifier: Apache-2.0
"""A CSV file analysed with pandas: the last expression is the value, as text and as HTML."""
#| order = 1
#| options = ["--file", "examples/sales.csv"]
#| exit = 0
#| status = "ok"
#| value = ["text/plain", "text/html"]
#| value_has = ["north", "south", "west", "total"]
import pandas as pd

sales = pd.read_csv("sales.csv")
sales["revenue"] = sales["units"] * sales["price"]
table = sales.pivot_table(index="month", columns="region", values="revenue", aggfunc="sum")
table["total"] = table.sum(axis=1)
table.round(2)
