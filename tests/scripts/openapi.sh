#!/usr/bin/env bash
# See openapi_fuzz.py.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/scripts/venv.bash
exec "$(pinned_python schemathesis 4.32.5)" -B tests/scripts/openapi_fuzz.py "$@"
