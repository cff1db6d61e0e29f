# SPDX-License-Identifier: Apache-2.0
"""The picture of the comparison: p50 of three workloads, a bar for each contestant, on a log scale."""
import measure

SHOWN = ("hit", "cold", "kept", "fork server", "pyodide kept", "python3", "bubblewrap", "firejail",
         "runc", "gvisor", "pyodide")
PANELS = ("print", "pandas", "plot")
NOT_ISOLATED = ("kept", "python3")
OURS, THEIRS, OPEN, INK = "#1b6ca8", "#b0b7bf", "#dfe3e7", "#333333"


def words(ms):
    if ms < 0.1:
        return f"{1000 * ms:.0f} µs"
    if ms < 1:
        return f"{ms:.2f} ms"
    return f"{ms:.1f} ms" if ms < 10 else f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def bars(axes, latency, workload, contestants):
    for place, contestant in enumerate(contestants):
        record = latency.record(workload, contestant.name)
        if not record or record["failed"]:
            axes.text(0.02, place, "failed" if record else "", va="center", fontsize=8, color="#888888",
                      transform=axes.get_yaxis_transform())
            continue
        value = latency.p50(workload, contestant.name)
        ours = contestant.column not in ("peer", "reference")
        color = OURS if ours else OPEN if contestant.name in NOT_ISOLATED else THEIRS
        axes.barh(place, value, color=color, height=0.72)
        p99 = measure.quantile(record["ms"], .99)
        axes.plot([value, p99], [place, place], color=INK, linewidth=0.8, solid_capstyle="butt")
        axes.annotate(words(value), (max(value, p99), place), xytext=(4, 0), textcoords="offset points",
                      va="center", fontsize=8, color=INK, fontweight="bold" if ours else "normal")


def draw(latency, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from .contestants import CONTESTANTS

    by_name = {contestant.name: contestant for contestant in CONTESTANTS}
    contestants = [by_name[name] for name in SHOWN]
    panels = [name for name in PANELS if name in latency.results]
    figure, grid = plt.subplots(1, len(panels), figsize=(3.6 * len(panels) + 1.9, 4.3), sharey=True,
                                sharex=True, squeeze=False)
    for axes, name in zip(grid[0], panels):
        bars(axes, latency, name, contestants)
        axes.set_xscale("log")
        axes.set_title(latency.results[name]["workload"], fontsize=10, loc="left", color=INK)
        axes.set_xlim(0.01, 300000)
        axes.set_xticks([0.1, 1, 10, 100, 1000, 10000], ["0.1", "1", "10", "100", "1 s", "10 s"], minor=False)
        axes.minorticks_off()
        axes.set_ylim(len(contestants) - 0.4, -0.6)
        axes.set_yticks(range(len(contestants)), [c.title for c in contestants], fontsize=9)
        axes.tick_params(axis="y", length=0)
        axes.tick_params(axis="x", labelsize=8, colors="#666666")
        axes.set_xlabel("ms, logarithmic", fontsize=8, color="#666666")
        axes.grid(axis="x", color="#eeeeee", linewidth=0.8)
        axes.set_axisbelow(True)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
    for label, contestant in zip(grid[0][0].get_yticklabels(), contestants):
        if contestant.column not in ("peer", "reference"):
            label.set_fontweight("bold")
            label.set_color(OURS)
    machine = next(iter(latency.results.values()))["machine"]
    figure.suptitle("From request to checked result: median, and a line to the 99th percentile",
                    fontsize=11, x=0.01, ha="left", color=INK)
    figure.text(0.01, 0.01, f"Linux {machine['kernel']}, {machine['processors']} processors "
                f"({machine['processor']}), {machine['date']}. Light bars isolate nothing. Drawn by ./dev bench warm.", fontsize=7, color="#888888")
    figure.tight_layout(rect=(0, 0.03, 1, 0.97))
    figure.savefig(path, dpi=160)
    plt.close(figure)
