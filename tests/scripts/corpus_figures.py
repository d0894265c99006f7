"""How well `tidegate replay` tells what changed in recorded feeds, by what their truth is sure of.

Prints the scorer's own table and totals first, as they are. Two of its percentages count what no
gateway should do, so these are computed once more without it, and both stand side by side:

- An item that was re-keyed stands in the truth both under `new`, by its new name, and under
  `rekeyed`. To keep it (which `rekeyed_kept_pct` asks for) is to report no creation (which
  `new_found_pct` asks for). Here, names that the same row calls re-keyed are not new items.
- Rows that the truth itself marks `"reliable": false` (a version was broken, say) are left out of
  the edits.

With --injected, a folder that inject.py made, it also tells how many of the deletions that were put
in there are found, and how long after the fact deletions come out, in hours of the feed's time.

Exit status 1 where a bound of BOUNDS is missed.
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
    ("new_names_found_pct", "at least", 99.5),
    ("reliable_edits_found_pct", "at least", 97),
)
# The same of the copies with deletions put in.
INJECTED_BOUNDS = (
    ("failed", "at most", 0),
    ("tombstones_false", "at most", 5),
    ("inserted_found_pct", "at least", 90),
)
# How long the replay of one series may take, in seconds.
REPLAY_WAIT = 300
# An edit may be published so many documents later, as in the scorer.
EDIT_LATE = 4


def official(score_path, binary, corpus):
    """The scorer's totals; its table is printed."""
    command = [sys.executable, score_path, "--bin", binary, "--corpus", corpus]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="", flush=True)
    if done.returncode:
        sys.exit(f"the scorer ended with status {done.returncode}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def events_of(binary, folder):
    """What `replay` says of each event in a folder, with the number of its document."""
    replay = [binary, "replay", "--json", folder]
    replay = subprocess.run(replay, stdout=subprocess.PIPE, timeout=REPLAY_WAIT, check=True)
    for said in map(json.loads, replay.stdout.splitlines()):
        yield from ((said["n"], event) for event in said.get("events", ()))


def published(score, binary, folder):
    """By kind and native id, the numbers of the documents on whose lines events stand."""
    events = collections.defaultdict(list)
    for n, event in events_of(binary, folder):
        events[event["kind"], score.norm(event["native_id"])].append(n)
    return events


def count(score, binary, folder):
    """What there was to find and what was found, of new names and of reliable edits."""
    rows, _gone, _back, new, edits, rekeyed, *_ = score.truth(folder)
    events = published(score, binary, folder)
    kept_names = {(to, name) for to, _old, name in rekeyed}
    unreliable = {row["to"] for row in rows if row.get("reliable") is False}
    counts = collections.Counter()
    for to, name in new:
        if (to, name) in kept_names:
            counts["renamed"] += 1
            continue
        counts["new"] += 1
        came = events["created", name] + events["undeleted", name]
        counts["new_found"] += any(n >= to for n in came)
    for to, name, kind in edits:
        if kind != "content":
            continue
        if to in unreliable:
            counts["unreliable"] += 1
            continue
        counts["edits"] += 1
        counts["edits_found"] += any(to <= n <= to + EDIT_LATE for n in events["updated", name])
    return counts


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def inserted(score, binary, folder):
    """Of each deletion that was put in: the hours until its tombstone, or None."""
    with open(os.path.join(folder, "index.jsonl"), encoding="utf-8") as index:
        times = {line["n"]: moment(line["time"]) for line in map(json.loads, index)}
    with open(os.path.join(folder, "truth.jsonl"), encoding="utf-8") as truth:
        rows = [json.loads(line) for line in truth]
    deleted = collections.defaultdict(list)
    for n, event in events_of(binary, folder):
        if event["kind"] == "deleted":
            deleted[score.norm(event["native_id"])].append((n, event["tick"]))
    for row in rows:
        for gone in row.get("gone", ()):
            if gone.get("confidence") == "injected":
                found = [tick for n, tick in deleted[score.norm(gone["id"])] if n >= row["to"]]
                delay = moment(found[0]) - times[row["to"]] if found else None
                yield delay and delay.total_seconds() / 3600


def inserted_figures(given, score):
    """The totals of the copies, with what is found of what was put in."""
    figures = official(given.score, given.bin, given.injected)
    delays = []
    for name in sorted(os.listdir(given.injected)):
        delays += inserted(score, given.bin, os.path.join(given.injected, name))
    found = sorted(delay for delay in delays if delay is not None)
    figures["inserted_found_pct"] = percent(len(found), len(delays))
    print(f"\ninserted deletions: {len(found)} of {len(delays)} found, after hours: {[round(hours) for hours in found]}")
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


def percent(part, whole):
    return round(100 * part / whole, 2) if whole else None


def main():
    given = stage.given("corpus", "score", injected=None)

    figures = official(given.score, given.bin, given.corpus)
    sys.path.insert(0, os.path.dirname(given.score))
    score = importlib.import_module("score")
    total = collections.Counter()
    for name in sorted(os.listdir(given.corpus)):
        folder = os.path.join(given.corpus, name)
        if os.path.isfile(os.path.join(folder, "truth.jsonl")):
            try:
                total.update(count(score, given.bin, folder))
            except (subprocess.SubprocessError, ValueError) as error:
                print(f"{name}: {error}", file=sys.stderr)
                figures["failed"] = max(figures["failed"], 1)
    figures["new_names_found_pct"] = percent(total["new_found"], total["new"])
    figures["reliable_edits_found_pct"] = percent(total["edits_found"], total["edits"])

    print(f"\nnew: {total['new_found']} of {total['new']}; {total['renamed']} renamed names left out")
    print(f"edits: {total['edits_found']} of {total['edits']}; {total['unreliable']} in unreliable rows left out\n")
    missed = judged(figures, BOUNDS)
    if given.injected:
        print("\nwith deletions put in:")
        missed += judged(inserted_figures(given, score), INJECTED_BOUNDS)
    if missed:
        sys.exit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
