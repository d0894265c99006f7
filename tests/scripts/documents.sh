#!/usr/bin/env bash
# See documents_run.py; and installed_run.py, which needs the right to make namespaces.
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TIDEGATE_BIN:-${CARGO_TARGET_DIR:-target}/release/tidegate}
python3 -B tests/scripts/documents_run.py
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
if "${as_root[@]}" unshare --mount --net true 2>/dev/null; then
    "${as_root[@]}" unshare --mount --propagation private --net \
        python3 -B tests/scripts/installed_run.py --bin "$(realpath "$bin")"
else
    echo 'not checked: an installed gateway, since there is no right to make namespaces'
    [ -z "${CI:-}" ]
fi
