#!/usr/bin/env bash
# The gateway behind nginx: a shared cache must hide no change that SUP told of, and what is passed on to a site arrives
# as it came.
#
# Needs nginx (in CI it is installed, elsewhere the script passes without), python3 and TIDEGATE_BIN
# (default: the release build).
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TIDEGATE_BIN:-${CARGO_TARGET_DIR:-target}/release/tidegate}
nginx=$(PATH=$PATH:/usr/sbin command -v nginx || true)
if [ -z "$nginx" ]; then
    echo 'no nginx here'
    [ -z "${CI:-}" ] || exit 1
    exit 0
fi
exec python3 -B tests/scripts/nginx_follow.py --bin "$bin" --nginx "$nginx" "$@"
