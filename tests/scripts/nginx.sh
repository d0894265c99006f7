#!/usr/bin/env bash
# See nginx_follow.py.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec python3 -B tests/scripts/nginx_follow.py
