#!/usr/bin/env bash
# Types into, chooses in and clicks every form of every page in headless Chromium, as a person does: what is looked for,
# signing in, acting on feeds and items, adding, importing, subscribing, conflicts. Hostile markup of publishers and in what
# is in conflict must be shown as text. A button that was seen and not used is a fault. Each page, and each that the demonstration tells of,
# is looked at with axe-core, which is fetched from the registry of npm, in light and dark, wide and narrow.
#
# Needs chromium, python3, the network for playwright, and TIDEGATE_BIN (default: the release build). Screenshots go to
# TIDEGATE_SCREENSHOTS (default: a folder of the target). Passes where no browser is, but in CI.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
bin=${TIDEGATE_BIN:-$target/release/tidegate}
browser=$(command -v chromium || command -v chromium-browser || true)
if [ -z "$browser" ]; then
    echo 'no chromium here'
    [ -z "${CI:-}" ] || exit 1
    exit 0
fi
out=${TIDEGATE_SCREENSHOTS:-$target/screenshots}
mkdir -p "$out"
source tests/scripts/venv.bash
exec "$(pinned_python playwright 1.65.2)" -B tests/scripts/forms.py --bin "$bin" --browser "$browser" --out "$out"
