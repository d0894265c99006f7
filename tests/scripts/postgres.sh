#!/usr/bin/env bash
# The store in PostgreSQL: the conformance suite; a gateway whose process and whose database are killed, whose state
# moves from sled to PostgreSQL and back, and that reaches the database by TLS; and several gateways that share the polls
# while one after the other is killed, stopped, ended or cut off from the network, or do what one of them does for all.
# `--only PART` leaves out the rest and the suite.
#
# Needs PostgreSQL's server (in CI it is installed, elsewhere the script passes without), cargo, python3 and TIDEGATE_BIN
# (default: the release build). It has a database of its own (postgres_stage.bash).
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TIDEGATE_BIN:-${CARGO_TARGET_DIR:-target}/release/tidegate}
source tests/scripts/postgres_stage.bash

# `cargo test` alone leaves these out, and says so.
case " $*" in
    *' --only'*) ;;
    *)
        TIDEGATE_POSTGRES=$url cargo test --locked --lib -- on_postgres postgres:: | tee "$work/tests"
        # A filter that matches nothing passes as well; there are some 150.
        grep -Eq '^test result: ok\. [1-9][0-9]{2,} passed' "$work/tests" || {
            echo 'postgres: hardly any test ran' >&2
            exit 1
        }
        ;;
esac
printf -v restart '%q ' "${as_user[@]}" "$tools/pg_ctl" -D "$work/database/data" -w -l "$work/database/log" restart -m immediate
python3 -B tests/scripts/postgres_run.py --bin "$bin" --url "$url" --work "$work" --restart "$restart" --psql "$tools/psql" "$@"
