#!/usr/bin/env bash
# Walks through the pages in headless Chromium, signs in, acts on a feed, and checks each page with axe-core, in
# light and dark, wide and narrow.
#
# What it needs stands in browser_stage.bash; axe-core is fetched from the registry of npm.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/scripts/browser_stage.bash
look tests/scripts/accessibility.py
