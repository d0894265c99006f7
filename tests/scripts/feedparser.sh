#!/usr/bin/env bash
# Reads the gateway's views with a foreign reader, Python's feedparser: the ids and titles of the
# current items, in the publisher's order, must be those of the upstream document.
#
# Needs TIDEGATE_CORPUS (a folder with replay/), TIDEGATE_BIN (default: the release build) and
# python3; says so and passes where they are not. feedparser goes to a folder of its own.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
bin=${TIDEGATE_BIN:-$target/release/tidegate}
if [ ! -d "${TIDEGATE_CORPUS:-}/replay" ]; then
    echo 'skipped: no corpus here'
    exit 0
fi
if ! command -v python3 >/dev/null; then
    echo 'skipped: no python3 here'
    exit 0
fi

source tests/scripts/venv.bash
exec "$(feedparser_python)" tests/scripts/feedparser_views.py --bin "$bin" --corpus "$TIDEGATE_CORPUS/replay"
