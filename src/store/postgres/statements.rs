//! All statements, in portable SQL of any PostgreSQL.

/// A portion of a range in an order: limited in entries, and in bytes of their values.
macro_rules! portion {
    ($order:literal) => {
        concat!(
            "SELECT key, value FROM (SELECT key, value, sum(octet_length(value)) OVER (ORDER BY key ",
            $order,
            ") - octet_length(value) AS before FROM (SELECT key, value FROM tidegate_entry ",
            "WHERE class = $1 AND key >= $2 AND key < $3 ORDER BY key ",
            $order,
            " LIMIT $4) AS few) AS summed WHERE before < $5 ORDER BY key ",
            $order
        )
    };
}

/// Sent first on each connection. Time-outs, so that a connection that hangs does not hold others up.
pub(super) const SETTINGS: &str = "SET default_transaction_isolation TO 'read committed'; \
    SET statement_timeout TO '30s'; SET lock_timeout TO '10s'; \
    SET idle_in_transaction_session_timeout TO '8s'; SET tcp_user_timeout TO '8s'";
/// Whether commits are synchronous, whether the server calls fsync, and its encoding.
pub(super) const DURABILITY: &str = "SELECT current_setting('synchronous_commit'), current_setting('fsync'), current_setting('server_encoding')";
/// Whether commits wait for a standby.
pub(super) const WAITS_FOR_STANDBY: &str = "SELECT current_setting('synchronous_standby_names') <> '' \
     AND current_setting('synchronous_commit') <> 'local'";
/// For a database without synchronous commits: makes those of this connection synchronous.
pub(super) const WAIT_FOR_DISK: &str = "SET synchronous_commit TO 'on'";
/// Whether there are tables.
pub(super) const HAS_TABLES: &str = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relname = 'tidegate_schema' AND n.nspname = ANY (current_schemas(false)))";
/// The version of the tables.
pub(super) const VERSION: &str = "SELECT coalesce(max(version), 0) FROM tidegate_schema";

/// Renews the row of a gateway: whether it polls, and hashes of its settings.
pub(super) const BEAT: &str = "INSERT INTO tidegate_gateway (id, name, beat_at, polls, settings) \
    VALUES ($1, $2, clock_timestamp(), $3, $4) ON CONFLICT (id) DO UPDATE \
    SET beat_at = EXCLUDED.beat_at, polls = EXCLUDED.polls, settings = EXCLUDED.settings";
/// The gateways and the ages of their rows; the time, in milliseconds; and whether the entries take four times the
/// pages that the statistics know of.
pub(super) const GATEWAYS: &str = "SELECT id, name, polls, settings, \
    (extract(epoch FROM clock_timestamp() - beat_at) * 1000)::bigint, \
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint, \
    (SELECT pg_relation_size(oid) > 4 * greatest(relpages, 16) * current_setting('block_size')::bigint \
        FROM pg_class WHERE oid = 'tidegate_entry'::regclass) FROM tidegate_gateway";
/// Gathers the statistics of the query planner, unless another gateway does. A plan that was cached while there were
/// few entries reads all of them until then. With many entries this takes longer than any other statement.
pub(super) const ANALYZE: &str = "BEGIN; SET LOCAL statement_timeout TO '300s'; \
    ANALYZE (SKIP_LOCKED) tidegate_entry (class, key); COMMIT";
/// Removes rows of gateways that have long been dead.
pub(super) const FORGET_GATEWAYS: &str =
    "DELETE FROM tidegate_gateway WHERE beat_at < clock_timestamp() - interval '1 hour'";
/// Removes the row of a gateway.
pub(super) const LEAVE: &str = "DELETE FROM tidegate_gateway WHERE id = $1";

/// Begins a write.
pub(super) const BEGIN: &str = "BEGIN";
/// Begins a snapshot. Its reader may be slow.
pub(super) const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
    SET LOCAL idle_in_transaction_session_timeout TO '600s'";
pub(super) const COMMIT: &str = "COMMIT";
pub(super) const ROLLBACK: &str = "ROLLBACK";
/// Locks a scope for this transaction, then as [`GET_MANY`].
pub(super) const LOCK_AND_GET: &str = "SELECT tidegate_lock_and_get($1, $2, $3, $4)";
/// Removes entries, sets others, and adds the notes of a transaction and its entries for the change log.
pub(super) const WRITE: &str = "WITH removed AS (DELETE FROM tidegate_entry e \
    USING unnest($1::smallint[], $2::bytea[]) AS gone (class, key) \
    WHERE e.class = gone.class AND e.key = gone.key), \
    noted AS (INSERT INTO tidegate_change (at, key, logged, shown) \
    SELECT $3, key, logged, shown::jsonb \
    FROM unnest($4::bytea[], $5::bytea[], $6::text[]) AS new (key, logged, shown)) \
    INSERT INTO tidegate_entry (class, key, value, shown) \
    SELECT class, key, value, shown::jsonb \
    FROM unnest($7::smallint[], $8::bytea[], $9::bytea[], $10::text[]) AS new (class, key, value, shown) \
    ON CONFLICT (class, key) DO UPDATE SET value = EXCLUDED.value, shown = EXCLUDED.shown";
/// Removes a range.
pub(super) const REMOVE_RANGE: &str =
    "DELETE FROM tidegate_entry WHERE class = $1 AND key >= $2 AND key < $3";
/// Sets the last epoch to that of an imported store.
pub(super) const REACH: &str = "UPDATE tidegate_counter SET epoch = greatest(epoch, $1), \
    closed_at = greatest(closed_at, $2)";

/// Numbers the committed notes, and logs the changes among them as the next epoch. The row of the counter is the
/// lock: the next one to get it sees what was committed meanwhile, so a number or epoch that was given out never gets
/// another change. It is one statement, so that a suspended gateway cannot hold the row.
pub(super) const NUMBER: &str = "SELECT tidegate_number()";
/// How many positions a note is kept for, as in `tidegate_number`.
pub(super) const KEPT_POSITIONS: i64 = 16_384;
/// The last numbered position, whether there are notes without a number, and the entries of the notes after a
/// position: all from one snapshot.
pub(super) const READ_NOTES: &str = "SELECT c.position, c.epoch, \
    EXISTS (SELECT 1 FROM tidegate_change w WHERE w.position IS NULL), n.key, s.value, f.value, i.value \
    FROM tidegate_counter c \
    LEFT JOIN (SELECT DISTINCT key FROM tidegate_change WHERE position > $1) AS n ON true \
    LEFT JOIN tidegate_entry s ON s.class = 7 AND s.key = n.key \
    LEFT JOIN tidegate_entry f ON f.class = 2 AND f.key = n.key \
    LEFT JOIN tidegate_entry i ON i.class = 1 AND i.key = n.key";
/// The last numbered position.
pub(super) const POSITION: &str = "SELECT position FROM tidegate_counter";
/// A value.
pub(super) const GET: &str = "SELECT value FROM tidegate_entry WHERE class = $1 AND key = $2";
/// The first of many values, up to a number of bytes, in the order of the keys.
pub(super) const GET_MANY: &str = "SELECT * FROM tidegate_get($1, $2, $3)";
/// The first entries of a range.
pub(super) const FIRST: &str = portion!("ASC");
/// The last entries of a range.
pub(super) const LAST: &str = portion!("DESC");
/// The first keys of each of many ranges, with the index of the range, and the sizes of their values.
pub(super) const SIZES: &str = "SELECT wanted.place - 1, e.key, octet_length(e.value) \
    FROM unnest($1::smallint[], $2::bytea[], $3::bytea[]) WITH ORDINALITY \
    AS wanted (class, first, behind, place), \
    LATERAL (SELECT key, value FROM tidegate_entry WHERE class = wanted.class \
    AND key >= wanted.first AND key < wanted.behind ORDER BY key LIMIT $4) AS e \
    ORDER BY wanted.place, e.key";

/// The format of the tables.
pub(super) const FORMAT: i32 = 1;

/// Makes the tables, under a lock, and the functions for what takes more than one statement: each statement of a
/// function sees all that was committed before it. Each class with readable forms has a view.
pub(super) const TABLES: &str = "BEGIN; \
    SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' tables', 0)); \
    CREATE TABLE IF NOT EXISTS tidegate_schema (version integer PRIMARY KEY); \
    INSERT INTO tidegate_schema VALUES (1) ON CONFLICT DO NOTHING; \
    CREATE TABLE IF NOT EXISTS tidegate_entry (class smallint NOT NULL, key bytea NOT NULL, value bytea NOT NULL, \
        shown jsonb, PRIMARY KEY (class, key)); \
    ALTER TABLE tidegate_entry ALTER COLUMN value SET STORAGE EXTERNAL; \
    CREATE TABLE IF NOT EXISTS tidegate_counter (position bigint NOT NULL, epoch bigint NOT NULL, \
        closed_at bigint NOT NULL) WITH (fillfactor = 50); \
    INSERT INTO tidegate_counter SELECT 0, 0, 0 WHERE NOT EXISTS (SELECT 1 FROM tidegate_counter); \
    CREATE TABLE IF NOT EXISTS tidegate_change (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
        position bigint, at bigint NOT NULL, key bytea NOT NULL, logged bytea, shown jsonb); \
    CREATE INDEX IF NOT EXISTS tidegate_change_position ON tidegate_change (position); \
    CREATE TABLE IF NOT EXISTS tidegate_gateway (id bigint PRIMARY KEY, name text NOT NULL, \
        beat_at timestamptz NOT NULL, polls boolean NOT NULL, settings text NOT NULL); \
    CREATE OR REPLACE FUNCTION tidegate_get(classes smallint[], keys bytea[], most bigint) \
        RETURNS SETOF bytea language sql STABLE AS $$ \
        SELECT value FROM (SELECT wanted.place, e.value, \
        coalesce(sum(octet_length(e.value)) OVER (ORDER BY wanted.place), 0) \
        - coalesce(octet_length(e.value), 0) AS before \
        FROM unnest(classes, keys) WITH ORDINALITY AS wanted (class, key, place) \
        LEFT JOIN tidegate_entry e ON e.class = wanted.class AND e.key = wanted.key) AS found \
        WHERE before < most ORDER BY place $$; \
    CREATE OR REPLACE FUNCTION tidegate_lock_and_get(classes smallint[], keys bytea[], most bigint, what text) \
        RETURNS SETOF bytea language plpgsql AS $$ BEGIN \
        PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || ' ' || what, 0)); \
        RETURN QUERY SELECT * FROM tidegate_get(classes, keys, most); \
        END $$; \
    CREATE OR REPLACE FUNCTION tidegate_number() RETURNS void language plpgsql AS $$ \
        DECLARE last record; changes bigint; closed bigint; BEGIN \
        SELECT position, epoch, closed_at INTO last FROM tidegate_counter FOR UPDATE; \
        UPDATE tidegate_change SET position = last.position + 1 WHERE position IS NULL; \
        IF NOT FOUND THEN RETURN; END IF; \
        SELECT count(*), greatest(last.closed_at, least(max(at), extract(epoch FROM now())::bigint + 1)) \
            INTO changes, closed FROM tidegate_change \
            WHERE position = last.position + 1 AND logged IS NOT NULL; \
        INSERT INTO tidegate_entry (class, key, value, shown) SELECT 4, int8send(last.epoch + 1) || \
            int4send((row_number() OVER (ORDER BY number) - 1)::integer), int8send(closed) || logged, shown \
            FROM tidegate_change WHERE position = last.position + 1 AND logged IS NOT NULL; \
        UPDATE tidegate_counter SET position = last.position + 1, epoch = last.epoch + sign(changes)::bigint, \
            closed_at = CASE WHEN changes > 0 THEN closed ELSE last.closed_at END; \
        DELETE FROM tidegate_change WHERE position <= last.position + 1 - 16384; \
        END $$; \
    CREATE OR REPLACE VIEW tidegate_feed AS SELECT shown->>'feed' AS feed, shown->>'url' AS url, \
        shown->>'standing' AS standing FROM tidegate_entry WHERE class = 2; \
    CREATE OR REPLACE VIEW tidegate_state AS SELECT shown->>'feed' AS feed, \
        (shown->>'revision')::bigint AS revision, (shown->>'until')::timestamptz AS until, \
        (shown->>'updated')::timestamptz AS updated, (shown->>'items')::bigint AS items, \
        (shown->>'held')::boolean AS held FROM tidegate_entry WHERE class = 7; \
    CREATE OR REPLACE VIEW tidegate_log AS SELECT \
        ('x' || encode(substring(key FROM 1 FOR 8), 'hex'))::bit(64)::bigint AS epoch, \
        to_timestamp(('x' || encode(substring(value FROM 1 FOR 8), 'hex'))::bit(64)::bigint) AS closed_at, \
        shown->>'feed' AS feed, (shown->>'until')::timestamptz AS until, \
        (shown->>'revision')::bigint AS revision, (shown->>'versions')::bigint AS versions \
        FROM tidegate_entry WHERE class = 4; \
    CREATE OR REPLACE VIEW tidegate_poll AS SELECT shown->>'feed' AS feed, shown->>'url' AS url, \
        (shown->>'polled')::timestamptz AS polled, (shown->>'due')::timestamptz AS due, \
        (shown->>'failures')::bigint AS failures, shown->>'error' AS error, \
        (shown->>'gateway')::bigint AS gateway FROM tidegate_entry WHERE class = 3; \
    CREATE OR REPLACE VIEW tidegate_subscription AS SELECT shown->>'feed' AS feed, \
        shown->>'subscriber' AS subscriber, (shown->>'until')::timestamptz AS until, \
        (shown->>'failures')::bigint AS failures FROM tidegate_entry WHERE class = 5; \
    COMMIT";
