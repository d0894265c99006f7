#!/usr/bin/env bash
# What PostgreSQL as the store costs, and what several gateways on it do (gateways.py, whose arguments it takes), on a
# database of its own. Needs PostgreSQL's server with pg_stat_statements (Debian: postgresql, postgresql-contrib).
set -euo pipefail
cd "$(dirname "$0")/../.."
CI=1 source tests/scripts/postgres_stage.bash
# Checkpoints and vacuums come when the script asks for them.
cat >>"$work/database/data/postgresql.conf" <<EOF2
shared_preload_libraries = 'pg_stat_statements'
max_connections = 200
shared_buffers = '512MB'
max_wal_size = '8GB'
checkpoint_timeout = '1h'
autovacuum = off
EOF2
database restart -m fast -l "$work/database/log"
python3 -B benches/compare/gateways.py --url "$url" --psql "$tools/psql" --data "$work/database/data" "$@"
