"""What each rule of judgement gains and costs: recorded feeds are replayed with and without it.

    rule_worth.py --bin PATH/TO/tidegate --corpus DIR --scorers DIR
                  [--work DIR] [--jobs N] [--rules NAME,NAME] [--page FILE]

The corpus has the folders `replay`, `more` and `cases`; the scorers are `score.py` and `alone.py`. Figures are left in the
work folder, where the next call finds them. With `--page` those in the table of that page are written anew, but for the
last column, the reason. Exit status 1 where a case fails with all rules.
"""

import concurrent.futures
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta

import stage

SETS = ("replay", "more")
ALL = "all-rules"

# What a case must give after its first document: events created, rekeyed and deleted; None where any number
# is right. The last says that the last document is repeated until it is believed.
CASES = {
    "front-page-oldest-stays": (None, 0, 0, False),
    "front-page-oldest-stays-2": (None, 0, 0, False),
    "front-page-oldest-stays-3": (None, 0, 0, False),
    "listed-once-new-version": (0, 1, 0, False),
    "listed-twice-new-version": (0, 2, 0, False),
    "moved-host-title-only": (0, None, 0, True),
    "moved-permalinks-title-only": (0, None, 0, True),
    "one-of-a-series-of-pre-releases": (None, 0, 1, False),
    "only-item-of-its-host": (None, 0, 1, False),
    "rotating-parameter": (2, None, 0, False),
    "rotating-parameter-long-titles": (2, None, 0, False),
    "same-with-long-latin-titles": (0, 4, 0, True),
    "same-with-one-host": (None, 0, 1, False),
    "series-without-the-word": (None, 0, 1, False),
    "shared-picture": (1, 0, 0, False),
    "short-cjk-titles": (0, 4, 0, True),
    "sid-new-post-title-only": (2, None, 0, False),
    "sid-new-post-with-date": (2, None, 0, False),
    "sid-new-post-with-description": (2, None, 0, False),
    "sid-unchanged-window-title-only": (0, None, 0, False),
    "sid-unchanged-window-with-date": (0, None, 0, False),
    "sid-unchanged-window-with-description": (0, None, 0, False),
    "sid-with-long-description": (0, None, 0, False),
    "sid-with-long-description-new": (1, None, 0, False),
    "top-item-removed-undated": (None, 0, 1, False),
    "top-item-removed-undated-nothing-came": (0, 0, 0, False),
    "weekly-column": (36, 0, 0, False),
}

# The figures of score.py and alone.py that the table has, with what they are called there.
SCORES = {
    "tombstones_false": "false",
    "tombstones_true": "true",
    "tombstones_undone": "undone",
    "renames_false": "renames false",
    "new_found_pct": "new",
    "created_again": "made twice",
    "rekeyed_kept_capped_pct": "kept",
    "edits_found_pct": "edits",
    "noise_published_pct": "noise",
}
ALONE = {"found": "found", "tombstones_beside": "beside", "hours_median": "median h", "hours_p90": "p90 h"}
# How many cases a row names.
CASES_NAMED = 2


def wrapper(binary, rule, folder):
    """A program that replays without a rule."""
    path = folder / f"tidegate-{rule}"
    without = "" if rule == ALL else f" --without {rule}"
    path.write_text(f'#!/bin/sh\nexec "{binary}" "$@"{without}\n')
    path.chmod(0o755)
    return path


def rule_names(binary):
    """The names of the rules, in their order."""
    run = subprocess.run([binary, "replay", "--without", "?", "."], capture_output=True, text=True)
    return re.search(r"the rules are ([^\n]+)", run.stderr).group(1).split(", ")


def score(scorer, program, corpus, names):
    """The figures of a scorer that are named."""
    run = [sys.executable, "-B", scorer, "--bin", program, "--corpus", corpus]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    summary = json.loads(said.strip().splitlines()[-1])
    return {key: summary[key] for key in names}


def repeated(source, folder):
    """A copy of a case whose last document is seen on for a day."""
    copy = pathlib.Path(shutil.copytree(source, folder / source.name))
    lines = [json.loads(line) for line in (copy / "index.jsonl").read_text().splitlines()]
    last = lines[-1]
    time = datetime.fromisoformat(last["time"].replace("Z", "+00:00"))
    for hour in (1, 2, 7, 13, 25, 26):
        at = (time + timedelta(hours=hour)).strftime("%Y-%m-%dT%H:%M:%SZ")
        lines.append({**last, "n": last["n"] + hour, "time": at})
    (copy / "index.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return copy


def failing_cases(program, corpus):
    """The cases that give another thing than they must."""
    failing = []
    for name, (*wanted, is_held) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            source = corpus / name
            source = repeated(source, pathlib.Path(folder)) if is_held else source
            run = [program, "replay", "--json", source]
            output = subprocess.run(run, capture_output=True, text=True, check=True).stdout
        later = [json.loads(line).get("events", []) for line in output.splitlines()][1:]
        kinds = [event["kind"] for events in later for event in events]
        found = [kinds.count(kind) for kind in ("created", "rekeyed", "deleted")]
        if any(want is not None and want != have for want, have in zip(wanted, found)):
            failing.append(name)
    return failing


def measured(work, name, measure):
    """The figures of a run, from the work folder where they are there."""
    path = work / f"{name}.json"
    if not path.exists():
        figures = measure()
        path.write_text(json.dumps(figures))
    return json.loads(path.read_text())


def figures(rule, o):
    """All that is measured without a rule."""
    program = wrapper(o.bin, rule, o.work)
    found = {}
    for name in SETS:
        for key, scorer, names in (
            (name, "score.py", ("failed", *SCORES)), (f"alone-{name}", "alone.py", ("injected", *ALONE)),
        ):
            run = lambda: score(o.scorers / scorer, program, o.corpus / name, names)
            found[key] = measured(o.work, f"{rule}.{key}", run)
    found["cases"] = measured(o.work, f"{rule}.cases", lambda: failing_cases(program, o.corpus / "cases"))
    print(f"{rule}: {json.dumps(found)}", file=sys.stderr, flush=True)
    return found


def moved(base, found, names):
    """What differs from all rules, in words."""
    parts = []
    for key, name in names.items():
        difference = round((found.get(key) or 0) - (base.get(key) or 0), 2)
        if difference:
            parts.append(f"{name} {difference:+g}".replace("-", "−"))
    return ", ".join(parts) or "·"


def row(rule, base, found, before):
    """The cells of a rule's row; the last is as it was."""
    scores = [moved(base[name], found[name], SCORES) for name in SETS]
    alone = [moved(base[f"alone-{name}"], found[f"alone-{name}"], ALONE) for name in SETS]
    cases = [name for name in found["cases"] if name not in base["cases"]]
    if len(cases) > CASES_NAMED:
        cases = [*cases[:CASES_NAMED], f"{len(cases) - CASES_NAMED} more"]
    return [f"`{rule}`", *scores, *alone, ", ".join(cases) or "·", *(before[6:7] or [""])]


def rows_of(page):
    """The cells of each rule's row in a page."""
    rows = re.findall(r"^\| (`([a-z-]+)` \|.*) \|$", page, re.MULTILINE)
    return {rule: [cell.strip() for cell in row.split(" |")] for row, rule in rows}


def main():
    o = stage.given("corpus", "scorers", work=None, jobs=2, rules=None, page=None)
    o.work = o.work or pathlib.Path(tempfile.mkdtemp(prefix="rule-worth-"))
    o.work = o.work / hashlib.sha256(o.bin.read_bytes()).hexdigest()[:16]
    o.work.mkdir(parents=True, exist_ok=True)
    rules = o.rules.split(",") if o.rules else rule_names(o.bin)
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        found = dict(zip([ALL, *rules], pool.map(lambda rule: figures(rule, o), [ALL, *rules])))
    base = found[ALL]
    print(json.dumps(base, indent=2))
    page = o.page.read_text() if o.page else ""
    before = rows_of(page)
    rows = {}
    for rule in rules:
        rows[rule] = f"| {' | '.join(row(rule, base, found[rule], before.get(rule, [])))} |"
    print("\n".join(rows.values()))
    if o.page:
        replace = lambda line: rows.get(line.group(1), line.group(0))
        o.page.write_text(re.sub(r"^\| `([a-z-]+)` \|.*\|$", replace, page, flags=re.MULTILINE))
    if base["cases"]:
        raise SystemExit(f"these cases fail with all rules: {', '.join(base['cases'])}")


if __name__ == "__main__":
    main()
