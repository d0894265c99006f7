#!/usr/bin/env bash
# A loss of power at any moment: what was acknowledged is there, and whole. A gateway's writes and syncs are recorded
# under a load; images of what its disk may then have are made of the record, and the program opens each. The model is
# said in power_loss_images.py. At the end the control: the syncs that make sled's log stable are swallowed, and images
# must show it.
#
# Needs python3, a C compiler and TIDEGATE_BIN (default: the release build). Without
# arguments it takes about a minute.
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TIDEGATE_BIN:-${CARGO_TARGET_DIR:-target}/release/tidegate}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cc -shared -fPIC -O1 -Wall -Wextra -Werror -o "$work/shim.so" tests/scripts/power_loss_shim.c -ldl
run() {
    python3 -B tests/scripts/power_loss_run.py --bin "$bin" --shim "$work/shim.so" --work "$work" "$@"
}
run "$@"
run --swallowed
