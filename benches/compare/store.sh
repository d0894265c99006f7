#!/bin/sh
# Measures the store on disk, each case in a process of its own.
#
#   benches/compare/store.sh [RUNS]
#
# TMPDIR says on which file system. It prints what src/store/disk/measure.rs prints.
set -eu
runs=${1:-3}
cargo test --release -p tidegate-store --lib --no-run 2>/dev/null
measure() { # NAME=VALUE
    env "$@" \
        cargo test --release -p tidegate-store --lib -- --ignored --exact --nocapture "$case" 2>/dev/null |
        grep -E "^(sled|kept)" || true
}
run=0
while [ "$run" -lt "$runs" ]; do
    run=$((run + 1))
    case=disk::measure::cost
    echo "# run $run, feeds of 50 KB: 500 feeds, 32 items"
    measure TIDEGATE_MEASURE_FEEDS=500 TIDEGATE_MEASURE_ITEMS=32 TIDEGATE_MEASURE_TEXT=1500
    echo "# run $run, small feeds: 5,000 feeds, 10 items"
    measure TIDEGATE_MEASURE_FEEDS=5000 TIDEGATE_MEASURE_ITEMS=10 TIDEGATE_MEASURE_TEXT=160
done
case=disk::measure::cost
echo "# opening: ${FEEDS:-20000} feeds, 10 items"
kept=$(measure TIDEGATE_MEASURE_FEEDS="${FEEDS:-20000}" TIDEGATE_MEASURE_ITEMS=10 \
    TIDEGATE_MEASURE_TEXT=160 TIDEGATE_MEASURE_POLLS=0 TIDEGATE_MEASURE_TOGETHER=0 \
    TIDEGATE_MEASURE_KEEP=1)
echo "$kept"
folder=$(echo "$kept" | sed -n 's/^kept //p')
case=disk::measure::opening
measure TIDEGATE_MEASURE_FOLDER="$folder"
rm -rf "$folder"
