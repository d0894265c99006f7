#!/usr/bin/env bash
# See power_loss_run.py; without arguments it takes about a minute.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cc -shared -fPIC -O1 -Wall -Wextra -Werror -o "$work/shim.so" tests/scripts/power_loss_shim.c -ldl
run=(python3 -B tests/scripts/power_loss_run.py --shim "$work/shim.so" --work "$work")
"${run[@]}" "$@"
"${run[@]}" --swallowed
