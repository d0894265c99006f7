#!/usr/bin/env bash
# Asks a running gateway what its description (/api/v1/openapi.json) allows and does not allow, as schemathesis
# makes it up: no answer is a failure of the gateway's own, and each is as it is described.
#
# Needs python3 and TIDEGATE_BIN (default: the release build). schemathesis goes to a folder of its own.
# TIDEGATE_OPENAPI_EXAMPLES: how many requests for each call at most.
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TIDEGATE_BIN:-${CARGO_TARGET_DIR:-target}/release/tidegate}
if ! command -v python3 >/dev/null; then
    echo 'no python3 here'
    [ -z "${CI:-}" ] || exit 1
    exit 0
fi

source tests/scripts/venv.bash
exec "$(pinned_python schemathesis 4.32.5)" -B tests/scripts/openapi_fuzz.py --bin "$bin" "$@"
