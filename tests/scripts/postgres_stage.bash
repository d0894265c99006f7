# A PostgreSQL of its own for a script, as a user without rights, on a free port. It is sourced from the root of the
# repository, and stops the database when the script ends:
#
#     source tests/scripts/postgres_stage.bash
#     psql "$url"
#
# Sets `url`, `tools` (the folder of PostgreSQL's programs), `as_user` (what runs a program as that user) and `work` (a
# folder that is removed at the end; the database is in its folder `database`). Needs PostgreSQL's server and python3.
# Passes where no PostgreSQL is, but in CI.

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
