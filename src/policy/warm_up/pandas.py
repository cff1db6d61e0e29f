# SPDX-License-Identifier: Apache-2.0
# What a cell of the template "pandas" shall not do for the first time.
import io

import numpy as np
import pandas as pd

TEXT = "day,group,city,value,count\n" + "".join(
    f"2024-01-{1 + i % 28:02d},{'abc'[i % 3]},\"town {i % 5}\",{i * 1.5},{i}\n" for i in range(200))
frame = pd.read_csv(io.StringIO(TEXT))
dated = pd.read_csv(io.StringIO(TEXT), parse_dates=["day"], index_col="day", na_values=["-"])
frame.describe(), frame.info(buf=io.StringIO()), frame.head().to_string(), repr(frame)
frame.head()._repr_html_(), repr(frame["value"]), repr(dated.index), frame.dtypes
groups = frame.groupby("group")
groups["value"].mean().to_string(), groups.sum(numeric_only=True), groups.size()
groups.agg({"value": ["mean", "max"], "count": "sum"}).reset_index()
groups.agg(total=("count", "sum")), groups["value"].transform("mean"), groups["value"].apply(len)
frame.groupby(["group", "city"])["value"].sum().unstack(fill_value=0)
frame.pivot_table(index="group", columns="city", values="value", aggfunc="mean")
frame.merge(groups["count"].sum().reset_index(), on="group", how="left")
frame.sort_values(["group", "value"], ascending=[True, False]), frame["group"].value_counts()
frame[(frame["value"] > 10) & frame["group"].isin(["a"])], frame.query("count > 5")
frame.loc[3:7, ["group", "value"]], frame.iloc[:3, 1:], frame.nlargest(3, "value")
frame.assign(ratio=frame["value"] / (frame["count"] + 1)).rename(columns={"ratio": "r"})
frame["city"].str.upper().str.contains("TOWN"), frame["value"].apply(lambda x: x + 1)
frame.apply(lambda row: row["value"], axis=1), frame["value"].rolling(3).mean(), frame["value"].cumsum()
dated["value"].resample("W").mean(), dated.index.month, pd.date_range("2024-01-01", periods=5)
pd.to_datetime(frame["day"]).dt.day_name(), pd.to_datetime("1 May 2024"), pd.Timestamp("2024-05-01 10:00")
pd.concat([frame, frame]).drop_duplicates(), frame.isna().sum(), frame.fillna(0), frame.dropna()
pd.DataFrame({"a": [1, None, 3], "b": list("xyz")}).fillna({"a": 0}), pd.Series([1, 2], index=["a", "b"])
frame.corr(numeric_only=True), frame["value"].quantile([.1, .9]), pd.cut(frame["value"], 4)
frame.to_csv(index=False), frame.head().to_dict("records"), frame.head().to_json()
frame.T, frame.to_numpy(), frame["count"].astype(float), frame["group"].astype("category").cat.codes
frame.melt(id_vars=["group"], value_vars=["count"], value_name="v"), frame.set_index("day").stack()
