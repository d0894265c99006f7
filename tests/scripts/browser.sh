#!/usr/bin/env bash
# Opens the versions page of an item, a difference and the bytes of a version in headless Chromium,
# with hostile markup in titles and texts: it must be shown as text, and nothing of it may run.
#
# What it needs stands in browser_stage.bash.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/scripts/browser_stage.bash
look tests/scripts/browser_pages.py
