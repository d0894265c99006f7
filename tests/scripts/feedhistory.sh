#!/usr/bin/env bash
# Runs the gateway in front of a publisher that adds, edits, renames and removes posts, and holds its
# Atom documents against what the W3C feed validator demands of Feed History (its package is on no
# registry, so its conditions are written down in the script).
#
# Needs python3 and TIDEGATE_BIN (default: the release build).
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TIDEGATE_BIN:-${CARGO_TARGET_DIR:-target}/release/tidegate}
exec python3 tests/scripts/feedhistory_rules.py --bin "$bin"
