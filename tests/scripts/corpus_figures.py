"""How well `tidegate replay` tells what changed in recorded feeds: the scorer's own table and totals, and whether they
hold the bounds. With --injected, a folder that inject.py made, also how many of the deletions that were put in there are
found, and how many hours of the feed's time after the fact.

Exit status 1 where a bound is missed.
"""

import collections
import datetime
import importlib
import json
import os
import subprocess
import sys

import stage

# The lines to hold: figure, whether it must be at least or at most the bound, the bound.
BOUNDS = (
    ("series", "at least", 35),
    ("failed", "at most", 0),
    ("tombstones_false", "at most", 5),
    ("rekeyed_kept_pct", "at least", 97),
    ("noise_published_pct", "at most", 1),
    ("new_found_pct", "at least", 99.5),
    ("edits_found_pct", "at least", 97),
)
# The same of the copies with deletions put in.
INJECTED_BOUNDS = (
    ("failed", "at most", 0),
    ("tombstones_false", "at most", 5),
    ("inserted_found_pct", "at least", 90),
)
# How long the replay of one series may take, in seconds.
REPLAY_WAIT = 300


def official(given, corpus):
    """The scorer's totals; its table is printed."""
    command = [sys.executable, given.score, "--bin", given.bin, "--corpus", corpus]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    print(done.stdout, flush=True)
    if done.returncode:
        sys.exit(f"the scorer ended with status {done.returncode}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def lines(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def inserted(norm, binary, folder):
    """Of each deletion that was put in: the hours until its tombstone, or None."""
    times = {line["n"]: moment(line["time"]) for line in lines(folder, "index.jsonl")}
    command = [binary, "replay", "--json", folder]
    replay = subprocess.run(command, stdout=subprocess.PIPE, timeout=REPLAY_WAIT, check=True)
    deleted = collections.defaultdict(list)
    for said in map(json.loads, replay.stdout.splitlines()):
        for event in said.get("events", ()):
            if event["kind"] == "deleted":
                deleted[norm(event["native_id"])].append((said["n"], event["tick"]))
    for row in lines(folder, "truth.jsonl"):
        for gone in row.get("gone", ()):
            if gone.get("confidence") == "injected":
                found = [tick for n, tick in deleted[norm(gone["id"])] if n >= row["to"]]
                delay = moment(found[0]) - times[row["to"]] if found else None
                yield delay and delay.total_seconds() / 3600


def inserted_figures(given):
    """The totals of the copies, with what is found of what was put in."""
    sys.path.insert(0, os.path.dirname(given.score))
    norm, figures, delays = importlib.import_module("score").norm, official(given, given.injected), []
    for name in sorted(os.listdir(given.injected)):
        delays += inserted(norm, given.bin, os.path.join(given.injected, name))
    found = sorted(delay for delay in delays if delay is not None)
    figures["inserted_found_pct"] = round(100 * len(found) / len(delays), 2) if delays else None
    print(f"inserted deletions: {len(found)} of {len(delays)} found, after hours: {[round(hours) for hours in found]}")
    return figures


def judged(figures, bounds):
    """Prints figures beside their bounds and returns the names of those that miss them."""
    missed = []
    for key, sense, bound in bounds:
        value = figures.get(key)
        good = value is not None and (value >= bound if sense == "at least" else value <= bound)
        if not good:
            missed.append(key)
        print(f"{key:26} {value!s:>8}   {sense} {bound:<4} {'good' if good else 'MISSED'}")
    return missed


def main():
    given = stage.given("corpus", "score", injected=None)
    missed = judged(official(given, given.corpus), BOUNDS)
    if given.injected:
        print("\nwith deletions put in:")
        missed += judged(inserted_figures(given), INJECTED_BOUNDS)
    if missed:
        sys.exit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
