#!/usr/bin/env bash
# See origin_crawl.py.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec python3 -B tests/scripts/origin_crawl.py
