#!/usr/bin/env bash
# Scores `tidegate replay` against recorded feeds whose changes are known, and holds the line.
#
# Needs TIDEGATE_CORPUS (a folder with replay/), TIDEGATE_BIN (default: the release build) and the
# scorer (TIDEGATE_SCORE, default ../shared/corpus/score.py); says so and passes where they are not.
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TIDEGATE_BIN:-${CARGO_TARGET_DIR:-target}/release/tidegate}
score=${TIDEGATE_SCORE:-../shared/corpus/score.py}
if [ ! -d "${TIDEGATE_CORPUS:-}/replay" ] || [ ! -f "$score" ]; then
    echo 'skipped: no corpus here'
    exit 0
fi

out=$(mktemp)
trap 'rm -f "$out"' EXIT
python3 "$score" --bin "$bin" --corpus "$TIDEGATE_CORPUS/replay" | tee "$out"

# The summary is the last line: a percentage is null where there was nothing to count.
tail -n 1 "$out" | python3 -c '
import json, sys

summary = json.loads(sys.stdin.read())
lines = [
    ("series", "at least", 1),
    ("failed", "at most", 0),
    ("new_found_pct", "at least", 99),
    ("edits_found_pct", "at least", 97),
    ("noise_published_pct", "at most", 5),
    ("tombstones_false", "at most", 100),
]
missed = 0
for key, sense, bound in lines:
    value = summary.get(key)
    good = value is not None and (value >= bound if sense == "at least" else value <= bound)
    missed += not good
    verdict = "good" if good else "MISSED"
    print(f"{key:22} {value!s:>8}   {sense} {bound:<4} {verdict}")
sys.exit(f"{missed} of {len(lines)} missed" if missed else 0)
'
