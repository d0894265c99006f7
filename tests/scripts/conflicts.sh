#!/usr/bin/env bash
# Lets a conflict come to be and resolves it on its page in headless Chromium, as a person does: the
# token is typed, a button is clicked. Hostile markup in what is in conflict must be shown as text.
#
# Needs chromium, python3 and TIDEGATE_BIN (default: the release build). Screenshots go to
# TIDEGATE_SCREENSHOTS (default: a folder of the target). Passes where no browser is, but in CI.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
bin=${TIDEGATE_BIN:-$target/release/tidegate}
browser=$(command -v chromium || command -v chromium-browser || true)
if [ -z "$browser" ]; then
    echo 'no chromium here'
    [ -z "${CI:-}" ] || exit 1
    echo 'skipped'
    exit 0
fi
out=${TIDEGATE_SCREENSHOTS:-$target/screenshots}
mkdir -p "$out"
exec python3 tests/scripts/conflicts.py --bin "$bin" --browser "$browser" --out "$out"
