#!/usr/bin/env bash
# Films what people do with the gateway in headless Chromium: the demonstration with each of its stories, a feed that is
# added by its site's address and read in newsboat, an edit, a deletion, a hold, a conflict, a backup and a restore.
#
# What it needs stands in browser_stage.bash; axe-core is fetched from the registry of npm. Without newsboat its scenes
# are left out, but in CI.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/scripts/browser_stage.bash
if [ -n "${CI:-}" ]; then command -v newsboat >/dev/null || { echo 'no newsboat here'; exit 1; }; fi
look tests/scripts/film.py
