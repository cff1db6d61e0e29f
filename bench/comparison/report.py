# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/performance.md, written between two marks in it, and the plot of the README,
both made from the raw samples alone."""
import json
import re
import statistics

import measure
from . import isolation, load, plot
from .contestants import CONTESTANTS
from .workloads import WORKLOADS

BEGIN = "<!-- comparison: made by `./dev bench warm --only report`; do not edit -->"
END = "<!-- comparison: end -->"
DOCUMENT = measure.ROOT / "docs" / "performance.md"
PICTURE = measure.ROOT / "docs" / "comparison.png"


def read(place, name):
    path = place / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def number(value):
    """Three digits that matter."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def p50(record):
    return statistics.median(record["ms"]) if record and record.get("ms") else None


class Latency:
    """The results of all workloads that were measured."""

    def __init__(self, place):
        found = {workload.name: read(place, workload.name) for workload in WORKLOADS}
        self.results = {name: result for name, result in found.items() if result}

    def record(self, workload, contestant):
        return self.results.get(workload, {"contestants": {}})["contestants"].get(contestant)

    def p50(self, workload, contestant):
        """Of an endless loop only the time past its limit."""
        value = p50(self.record(workload, contestant))
        return value - self.results[workload]["limit_ms"] if value is not None else None

    def ratio(self, workload, contestant, base):
        value, other = self.p50(workload, contestant), self.p50(workload, base)
        return other / value if value and other else None


def overview(latency):
    names = [name for name in latency.results]
    titles = {workload.name: workload.title for workload in WORKLOADS}
    lines = ["| p50, ms | " + " | ".join(titles[name] for name in names) + " |",
             "|---" + "|--:" * len(names) + "|"]
    reasons = []

    def mark(reason):
        """A number in brackets that leads to the reason below the table."""
        if not reason:
            return ""
        if reason not in reasons:
            reasons.append(reason)
        return f" ({reasons.index(reason) + 1})"

    for contestant in CONTESTANTS:
        cells = []
        for name in names:
            record = latency.record(name, contestant.name)
            if not record:
                cells.append("")
            elif record["failed"]:
                cells.append("failed" + mark(record["failed"]))
            else:
                note = f"{len(record['faults'])} runs failed: {record['faults'][-1]}" if record["faults"] else ""
                cells.append(number(latency.p50(name, contestant.name)) + mark(note))
        lines.append(f"| {contestant.title} | " + " | ".join(cells) + " |")
    lines.append("")
    lines += [f"({place}) {reason}\n" for place, reason in enumerate(reasons, 1)]
    return lines


def spread(latency):
    """p50, p90, p99 of ours, and of what we are measured by."""
    shown = [c for c in CONTESTANTS if c.column != "peer" or c.name in ("bubblewrap", "fork server")]
    lines = ["| p50 / p90 / p99, ms (samples) | " + " | ".join(
        workload.title for workload in WORKLOADS if workload.name in latency.results) + " |",
        "|---" + "|--:" * len(latency.results) + "|"]
    for contestant in shown:
        cells = []
        for name in latency.results:
            record = latency.record(name, contestant.name)
            if not record or record["failed"]:
                cells.append("")
                continue
            limit = latency.results[name]["limit_ms"]
            shares = [p50(record), *(measure.quantile(record["ms"], share) for share in (.9, .99))]
            cells.append(" / ".join(number(share - limit) for share in shares) + f" ({len(record['ms'])})")
        lines.append(f"| {contestant.title} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def load_tables(told):
    lines = []
    for template, ways in told["templates"].items():
        counts = list(next(iter(ways.values())))
        lines += [f"| template {template}, print(55): runs a second | " +
                  " | ".join(f"{count} client{'s' if count != '1' else ''}" for count in counts) + " |",
                  "|---" + "|--:" * len(counts) + "|"]
        for way, found in ways.items():
            lines.append(f"| {way} | " + " | ".join(number(load.middle(found[count])) for count in counts) + " |")
        lines.append("| share of the faster loop, sustained | " + " | ".join(
            f"{100 * load.share(ways, count):.0f} %" for count in counts) + " |")
        lines.append("| processor time a run with its refill, ms | " + " | ".join(
            number(load.middle(ways["execpy, sustained"][count], "cpu_ms")) for count in counts) + " |")
        lines.append("")
    return lines


def memory_tables(told):
    lines = ["| a parked cell more | " + " | ".join(told["templates"]) + " |",
             "|---" + "|--:" * len(told["templates"]) + "|"]
    for key, title in (("pss_bytes", "proportional set size of all processes, MB"),
                       ("available_bytes", "taken from the machine, kernel's part included, MB")):
        lines.append(f"| {title} | " + " | ".join(
            f"{one[key] / 1e6:.2f}" for one in told["templates"].values()) + " |")
    thousand = told["thousand"]
    few, many = statistics.median(thousand["few_ms"]), statistics.median(thousand["many_ms"])
    return [*lines, "", f"{thousand['cells']:,} parked cells of bare: {thousand['processes']:,} processes, "
            f"{thousand['pss'] / thousand['cells'] / 1e6:.2f} MB each by proportional set size, "
            f"{thousand['memory'] / thousand['cells'] / 1e6:.2f} MB each of the machine's memory. print(55) "
            f"then takes {number(many)} ms, beside {number(few)} ms with 16 cells: {many / few:.2f} times.", ""]


def aftermath_tables(told):
    reclaim, leaks = told["reclaim_ms"], told["leaks"]
    lines = ["| from the result until processes and cgroups are gone, ms | " + " | ".join(reclaim) + " |",
             "|---" + "|--:" * len(reclaim) + "|",
             "| p50 / p90 / most | " + " | ".join(
                 " / ".join(number(measure.quantile(samples, share)) for share in (.5, .9, 1))
                 for samples in reclaim.values()) + " |", "",
             f"| the daemon, idle | before | after {leaks['runs']:,} runs | after all workloads |",
             "|---|--:|--:|--:|"]
    for key, before in leaks["before"].items():
        lines.append(f"| {key.replace('_', ' ')} | {before:,} | {leaks['after'][key]:,} | "
                     f"{leaks['after_all_workloads'][key]:,} |")
    return [*lines, ""]


def targets(latency, loaded, memory, aftermath):
    """(what, wanted, measured, whether it holds), as far as it was measured."""
    def at_most(what, value, most, unit=""):
        if value is not None:
            yield what, f"at most {most:g}{unit}", f"{number(value)}{unit}", value <= most

    def at_least(what, value, least, unit=""):
        if value is not None:
            yield what, f"at least {least:g}{unit}", f"{number(value)}{unit}", value >= least

    hit = latency.record("print", "hit")
    yield from at_most("print(55), pool hit, p50", latency.p50("print", "hit"), 0.3, " ms")
    yield from at_least("… times faster than bubblewrap + python3",
                        latency.ratio("print", "hit", "bubblewrap"), 60)
    if hit and hit["ms"]:
        yield from at_most("… p99 by p50", measure.quantile(hit["ms"], .99) / p50(hit), 10)
    yield from at_most("… after 200 ms of idleness, p50", latency.p50("print", "idle"), 0.6, " ms")
    for name, title, least in (("pandas", "pandas group-by", 20), ("plot", "PNG", 8)):
        yield from at_least(f"{title}, pool hit, times faster than bubblewrap + python3",
                            latency.ratio(name, "hit", "bubblewrap"), least)
        slower = latency.ratio(name, "hit", "kept")
        yield from at_most("… times the time in a warm interpreter", slower and 1 / slower, 1.3)
    for template, least in (("bare", 40), ("plot", 60)):
        if loaded and template in loaded["templates"]:
            yield from at_least(f"sustained, {template}, two clients, of a loop of fork, exit, wait",
                                100 * load.share(loaded["templates"][template], "2"), least, " %")
    if memory:
        for template, most in (("bare", 0.8), ("plot", 1.8)):
            yield from at_most(f"one more parked cell of {template}",
                               memory["templates"][template]["pss_bytes"] / 1e6, most, " MB")
        thousand = memory["thousand"]
        yield from at_most(f"print(55) beside {thousand['cells']} parked cells, times that beside 16",
                           statistics.median(thousand["many_ms"]) / statistics.median(thousand["few_ms"]), 1.2)
    if aftermath:
        before, after = aftermath["leaks"]["before"], aftermath["leaks"]["after"]
        for key in ("processes", "cgroups", "mounts", "descriptors"):
            yield from at_most(f"{key} more after {aftermath['leaks']['runs']:,} runs",
                               max(0, after[key] - before[key]), 0)
        yield from at_most("… the warden's memory", after["warden_rss"] / before["warden_rss"], 1.05, " times")


def machine_line(result):
    machine = result["machine"]
    return (f"Linux {machine['kernel']}, {machine['processor']}, {machine['processors']} processors, "
            f"load {machine['load_before']:.1f} before, {machine['date']}; samples in `bench/results/warm/`, seed {result.get('seed', '')}.")


def write(place, to_documents):
    latency = Latency(place)
    told = [read(place, name) for name in ("load", "memory", "aftermath")]
    if not latency.results:
        raise RuntimeError(f"no results in {place}")
    lines = [BEGIN, "", machine_line(next(iter(latency.results.values()))), ""]
    checks = list(targets(latency, *told))
    lines += ["| what it must show | wanted | measured | |", "|---|--:|--:|---|"]
    lines += [f"| {what} | {wanted} | {measured} | {'yes' if holds else '**no**'} |"
              for what, wanted, measured, holds in checks]
    lines += ["", "### From request to checked result", ""] + overview(latency)
    lines += ["An endless loop counts from its limit on.", ""] + spread(latency)
    for title, told_part, make in (("Many clients at once", told[0], load_tables),
                                   ("Memory", told[1], memory_tables),
                                   ("What is left", told[2], aftermath_tables)):
        if told_part:
            lines += [f"### {title}", ""] + make(told_part)
    lines += ["### What each isolates", ""] + isolation.table() + ["", END]
    text = "\n".join(lines)
    for what, wanted, measured, holds in checks:
        print(f"{'ok ' if holds else 'NO '} {what}: {measured} ({wanted})")
    if to_documents:
        document = DOCUMENT.read_text() if DOCUMENT.exists() else ""
        if BEGIN not in document or END not in document:
            raise RuntimeError(f"{DOCUMENT.name} lacks the marks of the comparison")
        DOCUMENT.write_text(re.sub(re.escape(BEGIN) + ".*" + re.escape(END), lambda _: text, document,
                                   flags=re.DOTALL))
        plot.draw(latency, PICTURE)
    else:
        (place / "comparison.md").write_text(text + "\n")
        plot.draw(latency, place / "comparison.png")
        print(f"{place}/comparison.md, {place}/comparison.png")
