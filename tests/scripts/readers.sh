#!/usr/bin/env bash
# Real readers follow changing feeds for thirty rounds, directly and behind the gateway: rss2email,
# newsboat, sfeed and Python's feedparser. Behind it no reader may lose a post or have one twice.
#
# Needs python3, Debian's rss2email, newsboat, sfeed and curl (in CI they are installed, elsewhere a
# reader that is missing is left out and named) and TIDEGATE_BIN (default: the release build).
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TIDEGATE_BIN:-${CARGO_TARGET_DIR:-target}/release/tidegate}
source tests/scripts/venv.bash
missing=()
for reader in r2e newsboat sfeed_update curl; do
    command -v "$reader" >/dev/null || missing+=("$reader")
done
if [ "${#missing[@]}" -gt 0 ]; then
    echo "not here: ${missing[*]}"
    [ -z "${CI:-}" ] || exit 1
fi
exec "$(feedparser_python)" -B tests/scripts/readers_follow.py --bin "$bin" "$@"
