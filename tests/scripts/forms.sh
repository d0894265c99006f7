#!/usr/bin/env bash
# See forms.py.
set -euo pipefail
cd "$(dirname "$0")/../.."
# Without a browser nothing is installed.
if ! command -v chromium chromium-browser >/dev/null; then
    echo 'no chromium here'
    [ -z "${CI:-}" ]
    exit
fi
source tests/scripts/venv.bash
exec "$(pinned_python playwright 1.65.2)" -B tests/scripts/forms.py
