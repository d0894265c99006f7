#!/usr/bin/env bash
# Types into, chooses in and clicks every form of every page in headless Chromium, as a person does: what is looked for,
# signing in, acting on feeds and items, adding, importing, subscribing, conflicts. Hostile markup of publishers and in what
# is in conflict must be shown as text. A button that was seen and not used is a fault. Each page, and each that the demonstration tells of,
# is looked at with axe-core, which is fetched from the registry of npm, in light and dark, wide and narrow.
#
# What it needs stands in browser_stage.bash.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/scripts/browser_stage.bash
look tests/scripts/forms.py
