#!/usr/bin/env python3
"""Draws what `peers.py` and `scale.py` found, from the files that they write with --json.

    benches/compare/plot.py target/bench docs/performance

For each file of the first folder, by what it is of: `peers.svg`, `feeds.svg`, `feeds-time.svg`, `items.svg`,
`readers.svg` in the second. Standard library only.
"""

import json
import pathlib
import sys

import svg

PEERS = {"tidegate": "Tidegate", "feedparser": "feedparser loop", "newsboat": "newsboat", "reader": "lemon24/reader"}
FOUND = {"changed": "every feed changed", "unchanged": "no feed changed", "new": "every feed is new"}
SERVERS = {"tidegate": "Tidegate", "nginx": "nginx, same headers", "bare nginx": "nginx, its own headers"}
# The most that a poll of a feed with a long ledger is to cost, in polls of one with a short one.
AIM = 1.5
MB = 1e6


def made(figures):
    """What figures were made on, in words."""
    on = figures["made"]
    return f"{on['day']}, {on['processors']} processors ({on['machine']}), load {on['load']:g}"


def listed(points, unit):
    """Points in words, for those who do not see them."""
    return ", ".join(f"{svg.short(x)}: {svg.short(y)} {unit}".rstrip() for x, y, *_ in points)


def peers(figures):
    chart = svg.Chart(
        "CPU of a feed, by who reads it",
        f"{figures['feeds']} feeds of {figures['bytes'] / 1000:.0f} KB with 32 items, {figures['rounds']} rounds; "
        f"medians and quartiles; {made(figures)}",
        760, 410,
    )
    top = 84
    for found, title in FOUND.items():
        rows = [row for row in figures["rows"] if row["found"] == found]
        polls = next(row["cpu"] for row in rows if row["peer"] == "of it polls") / 1000
        bars = []
        for row in rows:
            if row["peer"] in PEERS:
                more = f", of it polls {polls:.2f}" if row["peer"] == "tidegate" else f", ×{row['ratio']:.1f}"
                cpu, spread = row["cpu"] / 1000, row["spread"] / 1000
                bars.append((PEERS[row["peer"]], cpu, spread, f"{cpu:.2f} ms{more}"))
        chart.bars(150, top, 460, f"{title}: ms of CPU a feed", bars)
        chart.say(f"{title}: " + ", ".join(f"{name} {label}" for name, _, _, label in bars))
        top += 108
    return {"peers": chart}


def feeds(figures):
    rows = figures["rows"]
    paces = [row["a_second"] for row in rows]
    chart = svg.Chart(
        "A gateway by the number of its feeds",
        f"{min(paces):.0f} to {max(paces):.0f} polls a second, {figures['share'] * 100:.0f} % find a change; {made(figures)}",
        760, 520,
    )
    panels = [
        ("CPU of a poll, µs", lambda row: row["cpu"], {}),
        ("memory, MB", lambda row: row["memory"] / MB, {"log": True}),
        ("on disk, MB", lambda row: row["disk"] / MB, {"log": True}),
        ("start again on what is stored, s", lambda row: row["restart"], {"log": True}),
    ]
    for place, (title, value, how) in enumerate(panels):
        points = [(row["feeds"], value(row), 0) for row in rows]
        panel = chart.panel(place % 2, place // 2, title, "feeds", [points], log_x=True, **how)
        panel.line(points, 0, numbers=True)
        chart.say(f"{title}, by feeds: {listed(points, '')}")
    return {"feeds": chart, "feeds-time": over_time(figures, rows[-1])}


def over_time(figures, row):
    chart = svg.Chart(
        f"{svg.short(row['feeds'])} feeds, each polled every {row['interval']} s, over time",
        f"{row['a_second']:.0f} polls a second, {row['changed'] / row['polls'] * 100:.1f} % find a change; {made(figures)}",
        760, 520,
    )
    panels = [
        ("memory, MB", [("", lambda it: it["memory"] / MB)]),
        ("on disk, MB", [("", lambda it: it["disk"] / MB)]),
        ("CPU of a poll, µs", [("", lambda it: it["cpu"] / max(1, it["polls"]) * 1e6)]),
        ("lag of the schedule, s", [("median", lambda it: it["lag"][0]), ("p99", lambda it: it["lag"][1]),
                                     ("largest", lambda it: it["lag"][2])]),
    ]
    for place, (title, values) in enumerate(panels):
        lines = [[(it["at"] / 60, value(it), 0) for it in row["samples"]] for _, value in values]
        panel = chart.panel(place % 2, place // 2, title, "minutes", lines)
        for number, ((name, _), points) in enumerate(zip(values, lines, strict=True)):
            panel.line(points, number, name, dots=False)
            chart.say(f"{title} {name}: from {svg.short(points[0][1])} to {svg.short(points[-1][1])}")
    return chart


def items(figures):
    rows = figures["rows"]
    chart = svg.Chart(
        "CPU of a poll by the items in the ledger",
        f"the same {figures['window']} items in the document; medians and quartiles; {made(figures)}",
        760, 360,
    )
    changed, same = ([(row["items"], *row[found]) for row in rows] for found in ("changed", "not_modified"))
    aim = [(row["items"], changed[0][1] * AIM, 0) for row in rows]
    panel = chart.panel(0, 0, "µs", "items in the ledger", [changed, same, aim], log_x=True, wide=True)
    panel.line(aim, 3, f"{AIM} times the shortest", dashed=True)
    panel.line(changed, 0, "one item new", numbers=True)
    panel.line(same, 1, "not modified", numbers=True)
    chart.say(f"one item new: {listed(changed, 'µs')}; not modified: {listed(same, 'µs')}")
    return {"items": chart}


def readers(figures):
    chart = svg.Chart(
        "CPU of a cached request by how many ask at once",
        f"the reader view, 50 KB; medians and quartiles; {made(figures)}",
        760, 360,
    )
    lines = {
        server: [(row["connections"], row["cpu"], row["spread"]) for row in figures["rows"] if row["server"] == server]
        for server in SERVERS
    }
    panel = chart.panel(0, 0, "µs", "connections", list(lines.values()), log_x=True, wide=True)
    for number, (server, points) in enumerate(lines.items()):
        panel.line(points, number, SERVERS[server], numbers=server == "tidegate")
        chart.say(f"{SERVERS[server]}: {listed(points, 'µs')}")
    return {"readers": chart}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, goal = map(pathlib.Path, sys.argv[1:])
    goal.mkdir(parents=True, exist_ok=True)
    draw = {"peers": peers, "feeds": feeds, "items": items, "readers": readers}
    for file in sorted(source.glob("*.json")):
        figures = json.loads(file.read_text())
        if figures.get("kind") in draw:
            for name, chart in draw[figures["kind"]](figures).items():
                (goal / f"{name}.svg").write_text(chart.text())
                print(goal / f"{name}.svg")


if __name__ == "__main__":
    main()
