#!/usr/bin/env bash
# See postgres_run.py; `suite` is the conformance suite of the store.
#
#     postgres.sh [suite|killed|several|secured]… [--feeds N] [--every SECONDS] [--minutes N] [--steps STEP,…]
#
# Needs PostgreSQL's server (in CI it is installed, elsewhere the script passes without). It has a database of its own
# (postgres_stage.bash).
set -euo pipefail
cd "$(dirname "$0")/../.."

source tests/scripts/postgres_stage.bash

# `cargo test` alone leaves these out, and says so.
case " $* " in
    *' suite '* | '  ')
        TIDEGATE_POSTGRES=$url cargo test --locked --lib -- on_postgres postgres:: | tee "$work/tests"
        # A filter that matches nothing passes as well; there are some fifty.
        passed=$(sed -n 's/^test result: ok\. \([0-9]*\) passed.*/\1/p' "$work/tests" | awk '{ sum += $1 } END { print sum }')
        [ "${passed:-0}" -ge 50 ] || { echo "postgres: hardly any test ran: ${passed:-0}" >&2; exit 1; }
        ;;
esac
given=()
for word in "$@"; do [ "$word" = suite ] || given+=("$word"); done
[ $# -eq 0 ] || [ "${#given[@]}" -gt 0 ] || exit 0
printf -v restart '%q ' "${as_user[@]}" "$tools/pg_ctl" -D "$work/database/data" -w -l "$work/database/log" restart
python3 -B tests/scripts/postgres_run.py --url "$url" --work "$work" --restart "$restart" --psql "$tools/psql" "${given[@]}"
