#!/usr/bin/env bash
# See readers_follow.py.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/scripts/venv.bash
exec "$(feedparser_python)" -B tests/scripts/readers_follow.py "$@"
