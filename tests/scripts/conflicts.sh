#!/usr/bin/env bash
# Lets a conflict come to be and resolves it on its page in headless Chromium, as a person does: the
# token is typed, a button is clicked. Hostile markup in what is in conflict must be shown as text.
#
# What it needs stands in browser_stage.bash.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/scripts/browser_stage.bash
look tests/scripts/conflicts.py
