# SPDX-License-Identifier: Apache-2.0
# What a cell of the template "plot" shall not do for the first time, beside what
# its modules' own warm-ups do.
import io

import matplotlib.font_manager
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

x = np.linspace(0.1, 9, 50)
figure, axes = plt.subplots(2, 3, figsize=(9, 6))
axes[0, 0].plot(x, np.sin(x), label="sine", marker="o", linestyle="--")
axes[0, 0].set(title="Title", xlabel="x", ylabel="y", xlim=(0, 9))
axes[0, 0].legend()
axes[0, 0].grid(True)
axes[0, 1].bar(["a", "b", "c"], [3, 1, 2], color="tab:orange", yerr=0.2)
axes[0, 1].tick_params(axis="x", rotation=45)
axes[0, 1].annotate("most", (0, 3), xytext=(1, 2.5), arrowprops={"arrowstyle": "->"})
axes[0, 2].hist(np.sin(x), bins=10, alpha=0.5, edgecolor="black")
axes[0, 2].axhline(2, color="red")
axes[0, 2].text(0, 1, "text", weight="bold")
axes[1, 0].scatter(x, x ** 2, c=x, s=20, cmap="viridis")
axes[1, 0].set_yscale("log")
axes[1, 0].set_title(r"$x^2 + \alpha_1$")
image = axes[1, 1].imshow(np.outer(x, x), aspect="auto")
figure.colorbar(image, ax=axes[1, 1])
axes[1, 2].pie([1, 2, 3], labels=["a", "b", "c"], autopct="%1.0f%%")
figure.suptitle("All")
plt.tight_layout()
figure.savefig(io.BytesIO(), format="png", dpi=100, bbox_inches="tight")
plt.show()

frame = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=30), "value": range(30),
                      "group": list("abc") * 10})
frame.plot(x="day", y="value", title="By day")
frame.groupby("group")["value"].mean().plot(kind="bar")
plt.figure(figsize=(6, 4))
plt.boxplot([x, x + 1])
plt.fill_between(x, x, x + 1, alpha=0.3)
plt.xlabel("x")
plt.xticks(rotation=30)
plt.legend(["one"])
plt.savefig(io.BytesIO())
plt.show()
plt.close("all")
# Fonts that were used are open files, and each process opens its own.
matplotlib.font_manager._get_font.cache_clear()
