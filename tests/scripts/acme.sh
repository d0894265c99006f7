#!/usr/bin/env bash
# The gateway gets its certificate from Pebble, the test server of ACME: the first one, none after a restart, another
# one in time, one from an authority that forgot the account, and a name that is not its own.
#
# Needs pebble and openssl (in CI they are installed, elsewhere the script passes without), python3 and TIDEGATE_BIN
# (default: the release build).
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TIDEGATE_BIN:-${CARGO_TARGET_DIR:-target}/release/tidegate}
if ! command -v pebble >/dev/null || ! command -v pebble-challtestsrv >/dev/null; then
    echo 'no pebble here'
    [ -z "${CI:-}" ] || exit 1
    exit 0
fi
exec python3 -B tests/scripts/acme_order.py --bin "$bin" "$@"
