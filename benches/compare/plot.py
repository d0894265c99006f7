#!/usr/bin/env python3
"""Draws what `peers.py` and `scale.py` found, from the files that they write with --json.

    benches/compare/plot.py target/bench docs/performance

For each file of the first folder, by its kind: `peers.svg`, `feeds.svg` and `feeds-time.svg`, `items.svg`,
`readers.svg` in the second. Needs matplotlib from PyPI.
"""

import json
import pathlib
import sys

import matplotlib
from matplotlib import pyplot
from matplotlib.ticker import EngFormatter

PEERS = {"tidegate": "Tidegate", "feedparser": "feedparser loop", "newsboat": "newsboat", "reader": "lemon24/reader"}
FOUND = {"changed": "every feed changed", "unchanged": "no feed changed", "new": "every feed is new"}
SERVERS = {"tidegate": "Tidegate", "nginx": "nginx, same headers", "bare nginx": "nginx, its own headers"}
# The most that a poll of a feed with a long ledger is to cost, in polls of one with a short one.
AIM = 1.5
MB = 1e6
# Text stays text, and the same figures give the same bytes.
matplotlib.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "tidegate", "font.size": 9, "axes.titlesize": 9, "axes.titleweight": "bold",
    "figure.constrained_layout.use": True, "axes.grid": True, "axes.grid.axis": "y", "grid.color": "#dddcd6",
    "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False, "errorbar.capsize": 2,
})
NUMBERS = EngFormatter(places=None, sep="")


def sheet(title, words, figures, height, rows=1, columns=1):
    """A drawing with a title and what its figures were made on; its axes, row by row."""
    made = figures["made"]
    drawing, axes = pyplot.subplots(rows, columns, squeeze=False, figsize=(7.6, height))
    drawing.suptitle(f"{title}\n{words}\n{made['day']}, {made['processors']} processors ({made['machine']}), "
                     f"load {made['load']:g}", fontsize=10)
    return drawing, axes.flat


def lines(axis, title, unit, values, log_x=True, log_y=False, labelled=None):
    """Lines by name, each of points with x, y and how far y is spread; the values of one of them are written."""
    for name, points in values.items():
        x, y, spread = zip(*points, strict=True)
        axis.errorbar(x, y, spread if any(spread) else None, label=name, marker="o" if log_x else None, markersize=4)
        for place, value in zip(x, y, strict=True) if name == labelled else ():
            written = f"{value:.0f}" if value >= 100 else f"{value:.3g}"
            axis.annotate(written, (place, value), (0, 6), textcoords="offset points", ha="center")
    axis.set(title=title, xlabel=unit, xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
    if not log_y:
        axis.set_ylim(bottom=0)
    axis.margins(0.08, 0.12)
    axis.xaxis.set_major_formatter(NUMBERS)
    axis.yaxis.set_major_formatter(NUMBERS)
    if len(values) > 1:
        axis.legend(frameon=False)


def peers(figures):
    words = (f"{figures['feeds']} feeds of {figures['bytes'] / 1000:.0f} KB with 32 items, {figures['rounds']} rounds; "
             "medians and quartiles")
    drawing, axes = sheet("CPU of a feed, by who reads it", words, figures, 4.6, rows=3)
    for axis, (found, title) in zip(axes, FOUND.items(), strict=True):
        rows = [row for row in figures["rows"] if row["found"] == found and row["peer"] in PEERS]
        cpu, spread = ([row[key] / 1000 for row in rows] for key in ("cpu", "spread"))
        names = [PEERS[row["peer"]] for row in rows]
        bars = axis.barh(names, cpu, xerr=spread, color=["C0"] + ["#8a8984"] * (len(rows) - 1))
        polls = next(row["cpu"] / 1000 for row in figures["rows"] if (row["found"], row["peer"]) == (found, "of it polls"))
        more = [f", of it polls {polls:.2f}", *(f", ×{row['ratio']:.1f}" for row in rows[1:])]
        axis.bar_label(bars, [f"{ms:.2f} ms{words}" for ms, words in zip(cpu, more, strict=True)], padding=4)
        axis.invert_yaxis()
        axis.margins(x=0.25)
        axis.grid(False)
        axis.set_title(f"{title}: ms of CPU a feed")
    return {"peers": drawing}


def feeds(figures):
    rows = figures["rows"]
    paces = [row["a_second"] for row in rows]
    words = f"{min(paces):.0f} to {max(paces):.0f} polls a second, {figures['share'] * 100:.0f} % find a change"
    drawing, axes = sheet("A gateway by the number of its feeds", words, figures, 5.2, 2, 2)
    panels = {
        "CPU of a poll, µs": lambda row: row["cpu"], "memory, MB": lambda row: row["memory"] / MB,
        "on disk, MB": lambda row: row["disk"] / MB, "start again on what is stored, s": lambda row: row["restart"],
    }
    for number, (axis, (title, value)) in enumerate(zip(axes, panels.items(), strict=True)):
        points = [(row["feeds"], value(row), 0) for row in rows]
        lines(axis, title, "feeds", {"": points}, log_y=number > 0, labelled="")
    return {"feeds": drawing, "feeds-time": over_time(figures, rows[-1])}


def over_time(figures, row):
    title = f"{row['feeds']:,} feeds, each polled every {row['interval']} s, over time"
    words = f"{row['a_second']:.0f} polls a second, {row['changed'] / row['polls'] * 100:.1f} % find a change"
    drawing, axes = sheet(title, words, figures, 5.2, 2, 2)
    panels = {
        "memory, MB": {"": lambda it: it["memory"] / MB}, "on disk, MB": {"": lambda it: it["disk"] / MB},
        "CPU of a poll, µs": {"": lambda it: it["cpu"] / max(1, it["polls"]) * 1e6},
        "lag of the schedule, s": {
            "median": lambda it: it["lag"][0], "p99": lambda it: it["lag"][1], "largest": lambda it: it["lag"][2]
        },
    }
    for axis, (title, values) in zip(axes, panels.items(), strict=True):
        points = {name: [(it["at"] / 60, value(it), 0) for it in row["samples"]] for name, value in values.items()}
        lines(axis, title, "minutes", points, log_x=False)
    return drawing


def items(figures):
    words = f"the same {figures['window']} items in the document; medians and quartiles"
    drawing, (axis,) = sheet("CPU of a poll by the items in the ledger", words, figures, 3.6)
    changed, same = ([(row["items"], *row[found]) for row in figures["rows"]] for found in ("changed", "not_modified"))
    aim = [(size, changed[0][1] * AIM, 0) for size, *_ in changed]
    values = {"one item new": changed, "not modified": same, f"{AIM} times the shortest": aim}
    lines(axis, "µs", "items in the ledger", values, labelled="one item new")
    return {"items": drawing}


def readers(figures):
    words = "the reader view, 50 KB; medians and quartiles"
    drawing, (axis,) = sheet("CPU of a cached request by how many ask at once", words, figures, 3.6)
    values = {
        name: [(row["connections"], row["cpu"], row["spread"]) for row in figures["rows"] if row["server"] == server]
        for server, name in SERVERS.items()
    }
    lines(axis, "µs", "connections", values, labelled="Tidegate")
    return {"readers": drawing}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, goal = map(pathlib.Path, sys.argv[1:])
    goal.mkdir(parents=True, exist_ok=True)
    draw = {"peers": peers, "feeds": feeds, "items": items, "readers": readers}
    for file in sorted(source.glob("*.json")):
        figures = json.loads(file.read_text())
        if figures.get("kind") in draw:
            for name, drawing in draw[figures["kind"]](figures).items():
                drawing.savefig(goal / f"{name}.svg", metadata={"Date": None})
                print(goal / f"{name}.svg")


if __name__ == "__main__":
    main()
