#!/usr/bin/env bash
# Scores `tidegate replay` against recorded feeds whose changes are known, and holds the line that
# corpus_figures.py names.
#
# Needs python3, the network for lxml, TIDEGATE_CORPUS (a folder with replay/), TIDEGATE_BIN (default: the release build)
# and the scorer (TIDEGATE_SCORE, default ../shared/corpus/score.py). Without a corpus or a scorer it
# says so and passes.
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TIDEGATE_BIN:-${CARGO_TARGET_DIR:-target}/release/tidegate}
score=${TIDEGATE_SCORE:-../shared/corpus/score.py}
if [ ! -d "${TIDEGATE_CORPUS:-}/replay" ] || [ ! -f "$score" ]; then
    echo 'skipped: TIDEGATE_CORPUS names no corpus, or there is no scorer'
    exit 0
fi
given=(--bin "$bin" --corpus "$TIDEGATE_CORPUS/replay" --score "$score")

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
