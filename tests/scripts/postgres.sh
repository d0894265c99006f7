#!/usr/bin/env bash
# The store in PostgreSQL: the conformance suite; a gateway whose process and whose database are killed, whose state
# moves from sled to PostgreSQL and back, and that reaches the database by TLS; and several gateways that share the polls
# while one after the other is killed, stopped, ended or cut off from the network, or do what one of them does for all.
# `--only PART` leaves out the rest and the suite.
#
# Needs PostgreSQL's server (in CI it is installed, elsewhere the script passes without), cargo, python3 and TIDEGATE_BIN
# (default: the release build). It starts a database of its own, as a user without rights, on a free port, and stops it.
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=${TIDEGATE_BIN:-${CARGO_TARGET_DIR:-target}/release/tidegate}
newest() { printf '%s\n' /usr/lib/postgresql/*/bin/initdb | sort -V | tail -n 1; }
initdb=$(command -v initdb || newest)
if [ ! -x "$initdb" ]; then
    echo 'no PostgreSQL here'
    [ -z "${CI:-}" ] || exit 1
    exit 0
fi
work=$(mktemp -d)
as_user=()
# PostgreSQL does not run as root.
if [ "$(id -u)" -eq 0 ]; then
    as_user=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
    chmod 711 "$work"
fi
mkdir "$work/database"
[ "${#as_user[@]}" -eq 0 ] || chown nobody:nogroup "$work/database"
tools=$(dirname "$(readlink -f "$initdb")")
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
database() { (cd / && HOME=$work/database "${as_user[@]}" "$tools/pg_ctl" -D "$work/database/data" -w "$@" >/dev/null); }
cleanup() {
    database stop -m immediate || true
    rm -rf "$work"
}
trap cleanup EXIT

password=$(python3 -c 'import secrets; print(secrets.token_hex(16))')
echo "$password" >"$work/database/password"
chmod 644 "$work/database/password"
(cd / && "${as_user[@]}" "$tools/initdb" -D "$work/database/data" -U tidegate -A scram-sha-256 \
    --pwfile="$work/database/password" --no-instructions >/dev/null)
cat >>"$work/database/data/postgresql.conf" <<EOF2
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = ''
fsync = on
EOF2
database start -l "$work/database/log"
"$tools/postgres" --version
url=postgresql://tidegate:$password@127.0.0.1:$port/postgres

# `cargo test` alone leaves these out, and says so.
case " $*" in
    *' --only'*) ;;
    *) TIDEGATE_POSTGRES=$url cargo test --locked --lib -- on_postgres postgres:: ;;
esac
printf -v restart '%q ' "${as_user[@]}" "$tools/pg_ctl" -D "$work/database/data" -w -l "$work/database/log" restart -m immediate
python3 -B tests/scripts/postgres_run.py --bin "$bin" --url "$url" --work "$work" --restart "$restart" --psql "$tools/psql" "$@"
