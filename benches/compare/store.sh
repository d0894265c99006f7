#!/bin/sh
# Measures the store on disk, each case in a process of its own.
#
#   benches/compare/store.sh [RUNS]
#
# TMPDIR says on which file system. It prints what src/store/disk/measure.rs prints.
set -eu
cargo test --release -p tidegate-store --lib --no-run 2>/dev/null
measure() { # FEEDS ITEMS TEXT
    echo "# $1 feeds of $2 items of $3 bytes"
    TIDEGATE_MEASURE_FEEDS=$1 TIDEGATE_MEASURE_ITEMS=$2 TIDEGATE_MEASURE_TEXT=$3 \
        cargo test --release -p tidegate-store --lib -- --ignored --exact --nocapture disk::measure::cost 2>/dev/null |
        grep "^sled" || true
}
for run in $(seq "${1:-3}"); do
    echo "# run $run"
    measure 500 32 1500
    measure 5000 10 160
done
