#!/usr/bin/env bash
# /metrics, the alerts and the dashboard in deploy/, by promtool and against each other: every metric that an
# alert or a panel names is one that a running gateway tells, and every alert fires where it must and not elsewhere.
#
# Needs promtool (in CI it is installed, elsewhere the script passes without), python3 and TIDEGATE_BIN
# (default: the release build).
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TIDEGATE_BIN:-${CARGO_TARGET_DIR:-target}/release/tidegate}
promtool=$(PATH=$PATH:${CARGO_TARGET_DIR:-$PWD/target}/tools command -v promtool || true)
if [ -z "$promtool" ]; then
    echo 'no promtool here'
    [ -z "${CI:-}" ] || exit 1
    exit 0
fi
"$promtool" check config deploy/prometheus/prometheus.yml
"$promtool" test rules deploy/prometheus/tidegate.test.yml
exec python3 -B tests/scripts/metrics_check.py --bin "$bin" --promtool "$promtool" "$@"
