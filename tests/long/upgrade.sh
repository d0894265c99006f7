#!/usr/bin/env bash
# See upgrade.py.
#
#     tests/long/upgrade.sh [COMMIT]
#
# The older program is built from COMMIT, which may be a tag: the last release where none is named. As long as nothing was
# released it is the newer one itself. It is kept in the target folder. The newer one is TIDEGATE_BIN (default: the release
# build). Needs PostgreSQL's server; passes where none is, but in CI.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
new=$(realpath -m "${TIDEGATE_BIN:-$target/release/tidegate}")
export PYTHONPATH=$PWD/tests/scripts
named=${1:-$(git describe --tags --abbrev=0 2>/dev/null || true)}
older=$target/older old=$new
if [ -n "$named" ]; then
    commit=$(git rev-parse --verify --quiet "$named^{commit}") || { echo "upgrade: there is no commit $named here" >&2; exit 2; }
    old=$older/tidegate-$commit
fi
source tests/scripts/postgres_stage.bash
if [ -n "$named" ] && [ ! -x "$old" ]; then
    echo "building the program of $commit"
    rm -rf "$older/source"
    mkdir -p "$older/source"
    git archive "$commit" | tar -x -C "$older/source"
    (cd "$older/source" && cargo build --release --locked --bin tidegate --target-dir "$older/target")
    cp "$older/target/release/tidegate" "$old"
    rm -rf "$older/source"
fi
python3 -B tests/long/upgrade.py --old "$old" --bin "$new" --url "$url"
