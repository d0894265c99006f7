#!/usr/bin/env bash
# See openapi_fuzz.py.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! command -v python3 >/dev/null; then
    echo 'no python3 here'
    [ -z "${CI:-}" ]
    exit
fi
source tests/scripts/venv.bash
exec "$(pinned_python schemathesis 4.32.5)" -B tests/scripts/openapi_fuzz.py "$@"
