#!/usr/bin/env bash
# A disk that fills, and one that fails: what is durable is served, nothing unacknowledged is shown,
# nothing acknowledged is lost, and the gateway goes on by itself once the disk works again.
#
# Needs python3, a C compiler and TIDEGATE_BIN (default: the release build). The disk that fills is a small
# tmpfs, which only root may mount; elsewhere that part is left out, and the script says so.
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TIDEGATE_BIN:-${CARGO_TARGET_DIR:-target}/release/tidegate}
work=$(mktemp -d)
disk=$work/disk
cleanup() {
    if mountpoint -q "$disk" 2>/dev/null; then umount -l "$disk"; fi
    rm -rf "$work"
}
trap cleanup EXIT

cc -shared -fPIC -O1 -Wall -Werror -o "$work/shim.so" tests/scripts/failing_disk_shim.c -ldl
small=()
mkdir "$disk"
if mount -t tmpfs -o size=48m,mode=0700 tidegate-test "$disk" 2>"$work/mount.log"; then
    small=(--disk "$disk")
else
    echo "no tmpfs can be mounted here ($(tr '\n' ' ' <"$work/mount.log")): the disk that fills is left out"
fi
python3 -B tests/scripts/failing_disk_run.py --bin "$bin" --shim "$work/shim.so" --work "$work" \
    "${small[@]}" "$@"
