#!/usr/bin/env bash
# The gateway in front of a whole site, which pelican makes and nginx serves: a crawl through it equals a crawl of
# nginx but for the feeds, and newsboat follows the site's feeds.
#
#     origin.sh [crawl|readers]…
#
# Needs nginx and newsboat (in CI they are installed, elsewhere the script passes without), python3 and TIDEGATE_BIN
# (default: the release build). pelican goes to a folder of its own.
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TIDEGATE_BIN:-${CARGO_TARGET_DIR:-target}/release/tidegate}
nginx=$(PATH=$PATH:/usr/sbin command -v nginx || true)
if [ -z "$nginx" ] || ! command -v newsboat >/dev/null; then
    echo 'no nginx or no newsboat here'
    [ -z "${CI:-}" ] || exit 1
    exit 0
fi
source tests/scripts/venv.bash
if ! python=$(pinned_python pelican 4.12.0); then
    echo 'pelican cannot be installed here'
    [ -z "${CI:-}" ] || exit 1
    exit 0
fi
exec "$python" -B tests/scripts/origin_run.py --bin "$bin" --nginx "$nginx" "$@"
