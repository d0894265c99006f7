#!/usr/bin/env bash
# Runs the commands of README.md and docs/ as they are written there, block by block: each must
# succeed. Addresses on port 8080 are those of a demonstration or of a gateway on a free port. What is told an installed
# gateway is run as its own user, in namespaces of their own.
#
# Needs curl, python3, the right to make namespaces, and TIDEGATE_BIN (default: the release build).
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TIDEGATE_BIN:-${CARGO_TARGET_DIR:-target}/release/tidegate}
python3 -B tests/scripts/documents_run.py --bin "$bin"
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
if "${as_root[@]}" unshare --mount --net true 2>/dev/null; then
    "${as_root[@]}" unshare --mount --propagation private --net \
        python3 -B tests/scripts/installed_run.py --bin "$(realpath "$bin")"
else
    echo 'not checked: an installed gateway, since there is no right to make namespaces'
    [ -z "${CI:-}" ]
fi
