#!/usr/bin/env python3
"""Draws what `peers.py`, `scale.py` and `serving.py readers` wrote with --json: `plot.py FROM TO` makes `peers.svg`,
`feeds.svg`, `feeds-time.svg`, `items.svg` and `readers.svg` of the files of a folder in another one. Needs matplotlib
(Debian: python3-matplotlib)."""

import json
import pathlib
import sys

import matplotlib.pyplot as plt

PEERS = {"tidegate": "Tidegate", "feedparser": "feedparser loop", "newsboat": "newsboat", "reader": "lemon24/reader"}
FOUND = {"new": "every feed is new", "changed": "every feed changed", "unchanged": "no feed changed"}
SERVERS = {"tidegate": "Tidegate", "nginx": "nginx, same headers", "bare nginx": "nginx, its own headers"}
# The most that a poll of a feed with a long ledger is to cost, in polls of one with a short one.
AIM = 1.5
MB = 1e6
STYLE = {
    # The same figures make the same file, and texts stay texts.
    "svg.fonttype": "none", "svg.hashsalt": "tidegate", "font.family": "sans-serif", "font.size": 9,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#dddcd6",
    "axes.axisbelow": True, "axes.titleweight": "bold", "axes.titlesize": "medium",
}


def panels(figures, title, said, columns, rows):
    """Empty panels below a title, with what the figures were made on."""
    figure, axes = plt.subplots(rows, columns, figsize=(8.5, 1.2 + 2.3 * rows), layout="constrained", squeeze=False)
    made = figures["made"]
    on = f"{made['day']}, {made['processors']} processors ({made['machine']}), load {made['load']:g}"
    figure.suptitle(f"{title}\n{said}; {on}", fontsize="medium")
    return figure, axes.flatten()


def by_number(panel, title, what, rows, values, marks="o-"):
    """Lines over a number that grows tenfold from one to the next: what they are called, and figure and spread of a row."""
    for name, value in values.items():
        points = [value(row) for row in rows(name) if value(row)]
        places = [row[what] for row in rows(name) if value(row)]
        panel.errorbar(places, [figure for figure, _ in points], [off for _, off in points], fmt=marks, label=name, capsize=3)
    panel.set(title=title, xlabel=what, xscale="log")
    panel.set_ylim(bottom=0 if panel.get_yscale() == "linear" else None)


def peers(figures):
    figure, axes = panels(
        figures, "CPU of a feed, by who reads it",
        f"{figures['feeds']} feeds of {figures['bytes'] / 1000:.0f} KB, {figures['rounds']} rounds, medians and quartiles", 1, 3,
    )
    for panel, (found, title) in zip(axes, FOUND.items(), strict=True):
        rows = {row["peer"]: row for row in figures["rows"] if row["found"] == found}
        shown = [rows[peer] for peer in reversed(PEERS)]
        bars = panel.barh([PEERS[row["peer"]] for row in shown], [row["cpu"] / 1000 for row in shown],
                          xerr=[row["spread"] / 1000 for row in shown], height=0.6)
        panel.bar_label(bars, [f"{row['cpu'] / 1000:.2f} ms, ×{row['ratio']:.1f}" for row in shown], padding=6)
        panel.set_title(f"{title}: ms of CPU a feed, of the gateway {rows['of it polls']['cpu'] / 1000:.2f} for the poll")
        panel.margins(x=0.25)
    return {"peers": figure}


def feeds(figures):
    rows, last = figures["rows"], figures["rows"][-1]
    figure, axes = panels(
        figures, "A gateway by the number of its feeds",
        f"about {last['a_second']:.0f} polls a second, {figures['share'] * 100:.0f} % find a change", 2, 2,
    )
    for panel, (title, value, scale) in zip(axes, (
        ("CPU of a poll, µs", lambda row: (row["cpu"], 0), "linear"),
        ("memory, MB", lambda row: (row["memory"] / MB, 0), "log"),
        ("on disk, MB", lambda row: (row["disk"] / MB, 0), "log"),
        ("start again on what is stored, s", lambda row: (row["restart"], 0), "log"),
    ), strict=True):
        panel.set_yscale(scale)
        by_number(panel, title, "feeds", lambda _: rows, {"": value})
    time, axes = panels(
        figures, f"{last['feeds']:,} feeds, each polled every {last['interval']} s, over time",
        f"{last['a_second']:.0f} polls a second, {last['changed'] / last['polls'] * 100:.1f} % find a change", 2, 2,
    )
    samples = last["samples"]
    for panel, (title, values) in zip(axes, (
        ("memory, MB", {"": lambda it: it["memory"] / MB}),
        ("on disk, MB", {"": lambda it: it["disk"] / MB}),
        ("CPU of a poll, µs", {"": lambda it: it["cpu"] / max(1, it["polls"]) * 1e6}),
        ("lag of the schedule, s",
         {name: lambda it, place=place: it["lag"][place] for place, name in enumerate(("median", "p99", "largest"))}),
    ), strict=True):
        for name, value in values.items():
            panel.plot([it["at"] / 60 for it in samples], [value(it) for it in samples], label=name)
        panel.set(title=title, xlabel="minutes")
        panel.set_ylim(bottom=0)
    axes[-1].legend()
    return {"feeds": figure, "feeds-time": time}


def items(figures):
    figure, (panel,) = panels(figures, "CPU of a poll by the items in the ledger",
                              f"the same {figures['window']} items in the document, medians and quartiles", 1, 1)
    shortest = figures["rows"][0]["changed"][0]
    by_number(panel, "µs", "items", lambda _: figures["rows"], {
        "one item new": lambda row: row["changed"],
        "not modified": lambda row: row["not_modified"],
        f"{AIM} times the shortest": lambda row: (shortest * AIM, 0),
    })
    panel.legend()
    return {"items": figure}


def readers(figures):
    figure, (panel,) = panels(
        figures, "CPU of a cached request by how many ask at once", "the reader view, 50 KB, medians and quartiles", 1, 1
    )

    def of(server):
        return [row for row in figures["rows"] if SERVERS[row["server"]] == server]

    by_number(panel, "µs", "connections", of, {
        server: lambda row: (row["cpu"], row["spread"]) for server in SERVERS.values() if of(server)
    })
    panel.legend()
    return {"readers": figure}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, goal = map(pathlib.Path, sys.argv[1:])
    plt.rcParams.update(STYLE)
    for file in sorted(source.glob("*.json")):
        figures = json.loads(file.read_text())
        for name, figure in globals()[figures["kind"]](figures).items():
            figure.savefig(goal / f"{name}.svg", metadata={"Date": None})
            print(goal / f"{name}.svg")


if __name__ == "__main__":
    main()
