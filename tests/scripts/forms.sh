#!/usr/bin/env bash
# See forms.py.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/scripts/venv.bash
exec "$(pinned_python playwright 1.65.2)" -B tests/scripts/forms.py
