#!/usr/bin/env bash
# See corpus_figures.py. Needs the network for lxml, TIDEGATE_CORPUS (a folder with replay/) and the scorer
# (TIDEGATE_SCORE, default ../shared/corpus/score.py). Without a corpus or a scorer it says so and passes.
set -euo pipefail
cd "$(dirname "$0")/../.."

score=${TIDEGATE_SCORE:-../shared/corpus/score.py}
if [ ! -d "${TIDEGATE_CORPUS:-}/replay" ] || [ ! -f "$score" ]; then
    echo 'skipped: TIDEGATE_CORPUS names no corpus, or there is no scorer'
    exit 0
fi
given=(--corpus "$TIDEGATE_CORPUS/replay" --score "$score")

# Copies of the feeds in which items are really deleted.
inject=$(dirname "$score")/inject.py
if [ -f "$inject" ]; then
    source tests/scripts/venv.bash
    python=$(venv_python lxml 'import lxml' 'lxml>=5,<7')
    copies=$(mktemp -d)
    trap 'rm -rf "$copies"' EXIT
    "$python" "$inject" --corpus "$TIDEGATE_CORPUS/replay" --out "$copies" >/dev/null
    given+=(--injected "$copies")
fi
python3 tests/scripts/corpus_figures.py "${given[@]}"
