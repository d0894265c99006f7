#!/usr/bin/env bash
# The gateway in front of a whole site, which nginx serves: a crawl through it equals a crawl of nginx but for the feeds.
#
# Needs nginx (in CI it is installed, elsewhere the script passes without), python3 and TIDEGATE_BIN (default: the release
# build).
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TIDEGATE_BIN:-${CARGO_TARGET_DIR:-target}/release/tidegate}
nginx=$(PATH=$PATH:/usr/sbin command -v nginx || true)
if [ -z "$nginx" ]; then
    echo 'no nginx here'
    [ -z "${CI:-}" ] || exit 1
    exit 0
fi
exec python3 -B tests/scripts/origin_crawl.py --bin "$bin" --nginx "$nginx"
