# SPDX-License-Identifier: Apache-2.0
"""What a matplotlib figure shows, as data: chart(figure) gives a dictionary, or None.

Read from the artists of a figure that was drawn, since the calls that made them are gone. Nothing
is imported but what a figure has brought along."""
import datetime as _datetime
import math as _math
import re as _re

POINTS_MAX = 20000  # of one figure: beyond, its picture says more
UNIT = _re.compile(r"\(([^()]+)\)\s*$|\[([^\[\]]+)\]\s*$")


class TooMuch(Exception):
    pass


def value(given):
    """A number, a text or None, as JSON has them."""
    if given is None or isinstance(given, (bool, int, str)):
        return given
    if isinstance(given, (_datetime.date, _datetime.time)):
        return given.isoformat()
    kind = type(given).__name__
    if kind in ("datetime64", "Timestamp", "Period"):
        return str(given).replace(" ", "T")
    if kind == "MaskedConstant":
        return None
    try:
        number = float(given)
    except (TypeError, ValueError):
        return str(given)
    return number if _math.isfinite(number) else None


def text(given):
    return given if given and not given.startswith("_") else None


def unit(label):
    found = UNIT.search(label or "")
    return found and (found[1] or found[2])


def scale(axis):
    formatter = type(axis.get_major_formatter()).__name__
    if "Category" in formatter:
        return "categorical"
    return "datetime" if "Date" in formatter else axis.get_scale()


def ticks(axis, kind):
    places = [float(place) for place in axis.get_majorticklocs()]
    if kind == "datetime":
        from matplotlib import dates
        return [dates.num2date(place).isoformat() for place in places]
    return places


def planar(axes, kind, elements):
    return {"type": kind, "title": axes.get_title() or None,
            "x_label": axes.get_xlabel() or None, "y_label": axes.get_ylabel() or None,
            "x_unit": unit(axes.get_xlabel()), "y_unit": unit(axes.get_ylabel()),
            "elements": elements}


def points_chart(axes, kind, elements):
    """`elements`: pairs of a label and an iterable of points."""
    if sum(len(points) for _, points in elements) > POINTS_MAX:
        raise TooMuch
    chart = planar(axes, kind, [{"label": label or f"series {number}",
                                 "points": [[value(x), value(y)] for x, y in points]}
                                for number, (label, points) in enumerate(elements, 1)])
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        kind = scale(axis)
        chart[f"{name}_scale"] = kind
        chart[f"{name}_ticks"] = ticks(axis, kind)
        chart[f"{name}_tick_labels"] = [label.get_text() for label in axis.get_majorticklabels()]
    return chart


def tick_names(axis):
    """{place: label} of ticks that somebody named."""
    if not any(word in type(axis.get_major_formatter()).__name__
               for word in ("Category", "Fixed", "Func")):
        return {}
    return {float(place): label.get_text()
            for place, label in zip(axis.get_majorticklocs(), axis.get_majorticklabels())}


def name_at(names, place):
    """That of the nearest tick: bars of several groups stand beside it."""
    nearest = min(names, key=lambda tick: abs(tick - place), default=None)
    if nearest is not None and abs(nearest - place) < 0.5 and names[nearest]:
        return names[nearest]
    return f"{float(place):g}"


def bars(axes):
    elements = []
    for container in axes.containers:
        if type(container).__name__ != "BarContainer":
            continue
        lying = container.orientation == "horizontal"
        names = tick_names(axes.yaxis if lying else axes.xaxis)
        for bar in container.patches:
            middle = bar.get_y() + bar.get_height() / 2 if lying else \
                bar.get_x() + bar.get_width() / 2
            elements.append({"label": name_at(names, middle),
                             "value": value(bar.get_width() if lying else bar.get_height()),
                             "group": text(container.get_label())})
    if len(elements) > POINTS_MAX:
        raise TooMuch
    return planar(axes, "bar", elements) if elements else None


def pie(axes):
    wedges = [patch for patch in axes.patches if type(patch).__name__ == "Wedge"]
    return wedges and {"type": "pie", "title": axes.get_title() or None,
                       "elements": [{"label": text(wedge.get_label()) or "",
                                     "angle": round(wedge.theta2 - wedge.theta1, 3),
                                     "radius": float(wedge.r)} for wedge in wedges]}


def data_lines(axes):
    """Lines at their data's place: not those that go across, such as axhline's."""
    return [line for line in axes.lines if line.get_transform() == axes.transData]


def outlines(axes, along):
    """(first, last, low, high) of each box of a box plot; `along`: 0 when boxes stand. Its outline
    begins at the low corners; one with a notch has six points more."""
    shapes = [line.get_xydata() for line in data_lines(axes)]
    shapes += [patch.get_path().vertices for patch in axes.patches
               if type(patch).__name__ == "PathPatch"]
    for shape in shapes:
        if len(shape) not in (5, 6, 11, 12):
            continue
        places = [float(point[along]) for point in shape]
        heights = [float(point[1 - along]) for point in shape]
        top = 2 if len(shape) < 11 else 5
        if heights[0] == heights[1] and heights[top] == heights[top + 1] and \
                places[0] == places[top + 1] and places[1] == places[top] and \
                heights[0] < heights[top] and places[0] != places[1]:
            yield min(places), max(places), heights[0], heights[top]


def box(axes, along, first, last, low, high):
    """The numbers of one box, or None when no median goes through it."""
    middle, medians, ends, loose = (first + last) / 2, [], [low, high], []
    for line in data_lines(axes):
        spots = [(float(p[along]), float(p[1 - along])) for p in line.get_xydata()]
        if not spots or any(not first - 1e-9 <= place <= last + 1e-9 for place, _ in spots):
            continue
        if line.get_linestyle() == "None":
            loose += [height for place, height in spots if abs(place - middle) < 1e-9]
        elif len(spots) == 2 and spots[0][1] == spots[1][1] and spots[0][0] != spots[1][0]:
            if low <= spots[0][1] <= high:
                medians.append((abs(spots[0][0] - spots[1][0]), len(medians), spots[0][1]))
            ends.append(spots[0][1])
    return medians and {
        "min": min(ends), "first_quartile": low,
        "median": max(medians)[2],  # wider, or later, than the whiskers' ends
        "third_quartile": high, "max": max(ends),
        "outliers": sorted({spot for spot in loose if not min(ends) <= spot <= max(ends)})}


def boxes(axes, along=0):
    names = tick_names(axes.yaxis if along else axes.xaxis)
    elements = {}
    for outline in outlines(axes, along):
        numbers = box(axes, along, *outline)
        if numbers:
            middle = (outline[0] + outline[1]) / 2
            elements[middle] = {"label": name_at(names, middle), **numbers}
    if elements:
        return planar(axes, "box_and_whisker", list(elements.values()))
    return None if along else boxes(axes, 1)


def scatter(axes):
    elements = [(text(group.get_label()), group.get_offsets())
                for group in axes.collections if type(group).__name__ == "PathCollection"]
    elements += [(text(line.get_label()), list(zip(line.get_xdata(), line.get_ydata())))
                 for line in data_lines(axes) if line.get_linestyle() == "None"]
    return elements and points_chart(axes, "scatter", elements)


def lines(axes):
    elements = [(text(line.get_label()), list(zip(line.get_xdata(), line.get_ydata())))
                for line in data_lines(axes) if line.get_linestyle() != "None"]
    return elements and points_chart(axes, "line", elements)


def axes_chart(axes):
    if axes.name == "rectilinear":
        for kind in (pie, boxes, bars, lines, scatter):
            found = kind(axes)
            if found:
                return found
    return {"type": "unknown", "title": axes.get_title() or None, "elements": []}


def chart(figure):
    # A colour bar explains a chart, and is none.
    parts = [axes for axes in figure.axes if not hasattr(axes, "_colorbar")]
    try:
        charts = [axes_chart(axes) for axes in parts]
    except TooMuch:
        return None
    if len(charts) < 2:
        return charts[0] if charts else None
    title = getattr(figure, "_suptitle", None)
    return {"type": "superchart", "title": title.get_text() if title else None,
            "elements": charts}
