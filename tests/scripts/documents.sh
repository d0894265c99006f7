#!/usr/bin/env bash
# Runs the commands of README.md and docs/ as they are written there, block by block: each must
# succeed. Addresses on port 8080 are those of a demonstration or of a gateway on a free port.
#
# Needs curl, python3 and TIDEGATE_BIN (default: the release build).
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TIDEGATE_BIN:-${CARGO_TARGET_DIR:-target}/release/tidegate}
exec python3 -B tests/scripts/documents_run.py --bin "$bin"
