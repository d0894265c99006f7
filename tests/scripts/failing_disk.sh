#!/usr/bin/env bash
# See failing_disk_run.py. The disk that fills is a small tmpfs, which only root may mount; elsewhere that part is left out,
# and the script says so.
set -euo pipefail
cd "$(dirname "$0")/../.."

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
python3 -B tests/scripts/failing_disk_run.py --shim "$work/shim.so" --work "$work" "${small[@]}"
