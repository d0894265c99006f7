#!/usr/bin/env bash
# See metrics_check.py.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec python3 -B tests/scripts/metrics_check.py
