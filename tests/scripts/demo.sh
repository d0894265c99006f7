#!/usr/bin/env bash
# Runs `tidegate demo` and looks, for two minutes at most, at what it tells and at the addresses that it
# prints: each kind of line must come, histories must grow, and a withdrawn post must become a tombstone in the
# sync view and leave the reader view.
#
# Needs python3 and TIDEGATE_BIN (default: the release build).
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TIDEGATE_BIN:-${CARGO_TARGET_DIR:-target}/release/tidegate}
exec python3 tests/scripts/demo_watch.py --bin "$bin"
