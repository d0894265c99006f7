//! Every statement that the database gets. They are narrow: what any PostgreSQL takes, and what spreads tables over
//! machines as well. A test keeps them so.

/// Names each statement, and lists all of them for the test.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $text:expr;)+) => {
        $($(#[$doc])* pub(super) const $name: &str = $text;)+
        #[cfg(test)]
        const ALL: &[(&str, &str)] = &[$((stringify!($name), $name),)+];
    };
}

/// A portion of a range: bounded by its entries, and by the bytes of their values.
macro_rules! portion {
    ($end:literal, $order:literal) => {
        concat!(
            "SELECT key, value FROM (SELECT key, value, sum(octet_length(value)) OVER (ORDER BY key ",
            $order,
            ") - octet_length(value) AS before FROM (SELECT key, value FROM tidegate_entry ",
            "WHERE shard = $1 AND class = $2 AND key >= $3",
            $end,
            " ORDER BY key ",
            $order,
            " LIMIT $4) AS few) AS summed WHERE before < $5 ORDER BY key ",
            $order
        )
    };
}

/// The keys of a range, with how much their values take.
macro_rules! sizes {
    ($end:literal) => {
        concat!(
            "SELECT key, octet_length(value), substring(value from 1 for $5) FROM tidegate_entry ",
            "WHERE shard = $1 AND class = $2 AND key >= $3",
            $end,
            " ORDER BY key LIMIT $4"
        )
    };
}

/// Removes the first entries of a range.
macro_rules! clear {
    ($end:literal) => {
        concat!(
            "DELETE FROM tidegate_entry WHERE shard = $1 AND class = $2 AND key IN ",
            "(SELECT key FROM tidegate_entry WHERE shard = $1 AND class = $2 AND key >= $3",
            $end,
            " ORDER BY key LIMIT $4)"
        )
    };
}

statements! {
    /// What each connection does first. A connection that waits must not hold others up: a node that stands still within a
    /// transaction has the row of its shard, which another is to take after a lease.
    SETTINGS = "SET default_transaction_isolation TO 'read committed'; SET statement_timeout TO '30s'; \
        SET lock_timeout TO '10s'; SET idle_in_transaction_session_timeout TO '5s'";
    /// Whether commits wait for the disk, and whether the disk is waited for at all.
    DURABILITY = "SELECT current_setting('synchronous_commit'), current_setting('fsync')";
    /// Whether commits wait for a standby of the database, too.
    WAITS_FOR_STANDBY = "SELECT current_setting('synchronous_standby_names') <> '' \
        AND current_setting('synchronous_commit') <> 'local'";
    /// For a connection whose database does not wait: the barrier has to.
    WAIT_FOR_DISK = "SET synchronous_commit TO 'on'";
    /// Whether there is a table of versions.
    HAS_VERSIONS = "SELECT to_regclass('tidegate_schema') IS NOT NULL";
    /// The version of the tables.
    VERSION = "SELECT coalesce(max(version), 0) FROM tidegate_schema";
    /// Notes a version of the tables.
    NOTE_VERSION = "INSERT INTO tidegate_schema (version) VALUES ($1)";

    /// The time by the database's clock, in milliseconds, and where it sees this process.
    NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint, \
        coalesce(host(inet_client_addr()), 'a local socket')";
    /// A node says that it lives.
    BEAT = "UPDATE tidegate_node SET beat_at = $2 WHERE node = $1";
    /// A node says so for the first time.
    JOIN = "INSERT INTO tidegate_node (node, name, beat_at) VALUES ($1, $2, $3) \
        ON CONFLICT (node) DO UPDATE SET name = EXCLUDED.name, beat_at = EXCLUDED.beat_at";
    /// A node publishes whether it polls, whether it reaches publishers, and hashes of its settings.
    PUBLISH_STATUS = "UPDATE tidegate_node SET polls = $2, reaches = $3, settings = $4 WHERE node = $1";
    /// A node ends.
    LEAVE = "DELETE FROM tidegate_node WHERE node = $1";
    /// A node that has not said for a whole lease that it lives is forgotten: it asks for nothing more under this row.
    FORGET_NODE = "DELETE FROM tidegate_node WHERE node = $1 AND beat_at = $2";
    /// Who has a shard, and when that node lived last.
    OWNER = "SELECT s.owner, s.fence, n.name, n.beat_at, \
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint \
        FROM tidegate_shard s LEFT JOIN tidegate_node n ON n.node = s.owner WHERE s.shard = $1";
    /// Takes a shard, guarded by the fence that was seen, and notes after whom and behind which write.
    CLAIM = "UPDATE tidegate_shard SET owner = $3, fence = fence + 1, taken_by = $3, \
        taken_after = taken_by, taken_at = log_seq WHERE shard = $1 AND fence = $2";
    /// Gives it back.
    RELEASE = "UPDATE tidegate_shard SET owner = NULL WHERE shard = $1 AND fence = $2";

    /// The nodes: when each lived last, its status, whether it writes; and the time.
    NODES = "SELECT n.node, n.name, n.beat_at, n.polls, n.reaches, n.settings, \
        EXISTS (SELECT 1 FROM tidegate_shard s WHERE s.shard = 0 AND s.owner = n.node), \
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM tidegate_node n";
    /// The shards of polls.
    POLL_SHARDS = "SELECT shard, owner, fence, wanted, writer_until FROM tidegate_shard WHERE shard > 0 \
        ORDER BY shard";
    /// Takes shards of polls that no node has, each guarded by the fence that was seen.
    CLAIM_POLLS = "UPDATE tidegate_shard s SET owner = $1, fence = s.fence + 1, wanted = NULL \
        FROM unnest($2::integer[], $3::bigint[]) AS seen (shard, fence) \
        WHERE s.shard = seen.shard AND s.fence = seen.fence AND s.shard > 0 AND NOT EXISTS \
        (SELECT 1 FROM tidegate_node n WHERE n.node = s.owner AND n.node <> $1)";
    /// Gives them back.
    RELEASE_POLLS = "UPDATE tidegate_shard s SET owner = NULL \
        FROM unnest($2::integer[], $3::bigint[]) AS seen (shard, fence) \
        WHERE s.shard = seen.shard AND s.fence = seen.fence AND s.owner = $1 AND s.shard > 0";
    /// Gives all of a node's back.
    RELEASE_ALL_POLLS = "UPDATE tidegate_shard SET owner = NULL WHERE owner = $1 AND shard > 0";
    /// A node needs shards that others have.
    WANT_POLLS = "UPDATE tidegate_shard SET wanted = $1 WHERE shard = ANY($2) AND shard > 0";
    /// Only the node that writes polls these shards, until a time.
    LEAVE_TO_WRITER = "UPDATE tidegate_shard SET writer_until = $2 WHERE shard = ANY($1) AND shard > 0";

    /// A node asks the one that writes for something. One that was forgotten does not.
    ASK = "INSERT INTO tidegate_request (node, number, asked_at, body, once_until) \
        SELECT node, $2, $3, $4, $5 FROM tidegate_node WHERE node = $1";
    /// Which requests of a node there still are.
    ASKED = "SELECT number FROM tidegate_request WHERE node = $1";
    /// What was answered to a node, up to a number of bytes.
    ANSWERS = "SELECT number, answer FROM (SELECT number, answer, \
        sum(octet_length(answer)) OVER (ORDER BY number) - octet_length(answer) AS before \
        FROM tidegate_request WHERE node = $1 AND answer IS NOT NULL) AS answered \
        WHERE before < $3 ORDER BY number LIMIT $2";
    /// Takes requests away.
    END_REQUESTS = "DELETE FROM tidegate_request WHERE node = $1 AND number = ANY($2)";
    /// The node that writes takes up requests, as long as it has the fence of its claim, but for those that it has begun:
    /// its last answer from here may have been lost. One that may be carried out once is taken up by nobody else, and
    /// not when nobody waits for it any more. Nor is what a node asked that was forgotten since, as long as it has not
    /// joined anew. Up to a number of bytes at once.
    TAKE_REQUESTS = "UPDATE tidegate_request r SET taken = $1 FROM \
        (SELECT q.node, q.number, sum(octet_length(q.body)) OVER (ORDER BY q.asked_at, q.node, q.number) \
        - octet_length(q.body) AS before FROM tidegate_request q WHERE q.taken <= $1 AND q.answer IS NULL \
        AND (q.once_until IS NULL OR (q.taken IN (0, $1) AND q.once_until > $3)) \
        AND NOT EXISTS (SELECT 1 FROM unnest($4::bigint[], $5::bigint[]) AS begun (node, number) \
        WHERE begun.node = q.node AND begun.number = q.number) \
        AND EXISTS (SELECT 1 FROM tidegate_node n WHERE n.node = q.node) \
        AND EXISTS (SELECT 1 FROM tidegate_shard s WHERE s.shard = 0 AND s.fence = $1) \
        ORDER BY q.asked_at, q.node, q.number LIMIT $2) AS next \
        WHERE next.before < $6 AND r.node = next.node AND r.number = next.number \
        RETURNING r.node, r.number, r.body, r.once_until IS NOT NULL";
    /// It answers one that it has taken up.
    ANSWER = "UPDATE tidegate_request SET answer = $3 WHERE node = $1 AND number = $2 AND taken = $4";
    /// Forgets requests of nodes that ended.
    FORGET_REQUESTS = "DELETE FROM tidegate_request WHERE asked_at < $1";

    /// Begins a write. It is made durable by the next barrier, which waits for all before it.
    BEGIN = "BEGIN; SET LOCAL synchronous_commit TO 'off'";
    /// Ends one.
    COMMIT = "COMMIT";
    /// Gives one up.
    ROLLBACK = "ROLLBACK";
    /// The next position of the shard, where nobody else has it, and the last write was that one.
    ADVANCE = "UPDATE tidegate_shard SET log_seq = log_seq + 1 \
        WHERE shard = $1 AND fence = $2 AND log_seq = $3";
    /// The barrier: a commit that waits for the disk, and for a synchronous standby.
    PASS = "UPDATE tidegate_shard SET passed = log_seq, closed = greatest(closed, $4) \
        WHERE shard = $1 AND fence = $2 AND log_seq = $3";
    /// What was made durable is shown by the node that writes: the others may announce it. It waits for no disk; where
    /// it is lost, the next barrier says it again.
    CLOSE = "UPDATE tidegate_shard SET closed = log_seq \
        WHERE shard = $1 AND fence = $2 AND log_seq = $3";
    /// The barrier of a node that follows, for writes that their own node may not live to pass. It closes nothing: the
    /// node that writes may go on with the same epoch. It does not wait for a write that is under way, and does nothing
    /// once there is another write.
    PASS_FOR_WRITER = "UPDATE tidegate_shard SET passed = log_seq WHERE shard = \
        (SELECT shard FROM tidegate_shard WHERE shard = $1 AND log_seq = $2 AND passed < $2 FOR UPDATE SKIP LOCKED)";
    /// How far a shard is; waits for a write that is still under way.
    REACHED = "SELECT fence, log_seq FROM tidegate_shard WHERE shard = $1 FOR UPDATE";
    /// Sets entries.
    PUT = "INSERT INTO tidegate_entry (shard, class, key, value) \
        SELECT $1, class, key, value \
        FROM unnest($2::smallint[], $3::bytea[], $4::bytea[]) AS new (class, key, value) \
        ON CONFLICT (shard, class, key) DO UPDATE SET value = EXCLUDED.value";
    /// Removes entries.
    REMOVE = "DELETE FROM tidegate_entry e USING unnest($2::smallint[], $3::bytea[]) AS gone (class, key) \
        WHERE e.shard = $1 AND e.class = gone.class AND e.key = gone.key";
    /// Notes what a write did to what gateways have in memory. Each is a row of the write's own position: who
    /// follows reads those behind the last one that it knows.
    NOTE_RECENT = "INSERT INTO tidegate_recent (shard, log_seq, class, key, value) \
        SELECT $1, $2, class, key, value \
        FROM unnest($3::smallint[], $4::bytea[], $5::bytea[]) AS new (class, key, value)";
    /// Forgets such notes.
    FORGET_RECENT = "DELETE FROM tidegate_recent WHERE shard = $1 AND log_seq <= $2";
    /// How far a shard is, who has it, and what became durable in it behind a position: all of one moment. Where
    /// nothing did it reads three rows by their keys.
    LOOK = "SELECT s.fence, s.log_seq, s.passed, s.owner, n.name, n.beat_at, \
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint, r.log_seq, r.class, r.key, r.value, s.closed, \
        s.taken_by, s.taken_after, s.taken_at \
        FROM tidegate_shard s LEFT JOIN tidegate_node n ON n.node = s.owner \
        LEFT JOIN tidegate_recent r \
        ON r.shard = s.shard AND r.log_seq > $2 AND r.log_seq <= s.passed \
        WHERE s.shard = $1 ORDER BY r.log_seq LIMIT $3";
    /// Removes the first entries of a range.
    CLEAR = clear!(" AND key < $5");
    /// The same without an end.
    CLEAR_ALL = clear!("");

    /// A value.
    GET = "SELECT value FROM tidegate_entry WHERE shard = $1 AND class = $2 AND key = $3";
    /// Many values, up to a number of bytes; of those beyond it, that they are there.
    GET_MANY = "SELECT class, key, CASE WHEN before < $4 THEN value END FROM \
        (SELECT e.class, e.key, e.value, sum(octet_length(e.value)) OVER (ORDER BY e.class, e.key) \
        - octet_length(e.value) AS before FROM tidegate_entry e \
        JOIN unnest($2::smallint[], $3::bytea[]) AS wanted (class, key) \
        ON e.class = wanted.class AND e.key = wanted.key WHERE e.shard = $1) AS found";
    /// Many ranges, each by its place among them, up to a number of bytes; of the entries beyond it, that they are there.
    /// Each range ends at a number of entries.
    RANGES = "SELECT number, key, CASE WHEN before < $6 THEN value END FROM \
        (SELECT wanted.number, e.key, e.value, \
        sum(octet_length(e.key) + octet_length(e.value)) OVER (ORDER BY wanted.number, e.key) \
        - octet_length(e.key) - octet_length(e.value) AS before \
        FROM unnest($2::smallint[], $3::bytea[], $4::bytea[]) \
        WITH ORDINALITY AS wanted (class, first, beyond, number) \
        CROSS JOIN LATERAL (SELECT key, value FROM tidegate_entry WHERE shard = $1 AND class = wanted.class \
        AND key >= wanted.first AND key < wanted.beyond ORDER BY key LIMIT $5) AS e) AS found \
        ORDER BY number, key";
    /// Whether there is a value.
    CONTAINS = "SELECT EXISTS \
        (SELECT 1 FROM tidegate_entry WHERE shard = $1 AND class = $2 AND key = $3)";
    /// The first entries of a range.
    FIRST = portion!(" AND key < $6", "ASC");
    /// The same without an end.
    FIRST_ALL = portion!("", "ASC");
    /// The last entries of a range.
    LAST = portion!(" AND key < $6", "DESC");
    /// The same without an end.
    LAST_ALL = portion!("", "DESC");
    /// The first keys of a range, with what their values take.
    SIZES = sizes!(" AND key < $6");
    /// The same without an end.
    SIZES_ALL = sizes!("");
}

/// The format of the tables.
pub(super) const FORMAT: i32 = 1;

/// Makes the tables. Requests between nodes are forgotten when the database is started anew: who asked asks again.
pub(super) const TABLES: &str = "\
    CREATE TABLE tidegate_schema (version integer PRIMARY KEY); \
    CREATE TABLE tidegate_node (node bigint PRIMARY KEY, name text NOT NULL, beat_at bigint NOT NULL, \
        polls boolean NOT NULL DEFAULT false, reaches boolean NOT NULL DEFAULT true, \
        settings text NOT NULL DEFAULT ''); \
    CREATE TABLE tidegate_shard (shard integer PRIMARY KEY, owner bigint, fence bigint NOT NULL, \
        log_seq bigint NOT NULL, passed bigint NOT NULL, closed bigint NOT NULL DEFAULT 0, wanted bigint, \
        writer_until bigint NOT NULL DEFAULT 0, taken_by bigint NOT NULL DEFAULT 0, \
        taken_after bigint NOT NULL DEFAULT 0, taken_at bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50); \
    INSERT INTO tidegate_shard (shard, owner, fence, log_seq, passed) \
        SELECT shard, NULL, 0, 0, 0 FROM generate_series(0, 1024) AS shards (shard); \
    CREATE TABLE tidegate_entry (shard integer NOT NULL, class smallint NOT NULL, key bytea NOT NULL, \
        value bytea NOT NULL, PRIMARY KEY (shard, class, key)); \
    ALTER TABLE tidegate_entry ALTER COLUMN value SET STORAGE EXTERNAL; \
    CREATE TABLE tidegate_recent (shard integer NOT NULL, log_seq bigint NOT NULL, class smallint NOT NULL, \
        key bytea NOT NULL, value bytea, PRIMARY KEY (shard, log_seq, class, key)); \
    CREATE UNLOGGED TABLE tidegate_request (node bigint NOT NULL, number bigint NOT NULL, \
        asked_at bigint NOT NULL, taken bigint NOT NULL DEFAULT 0, body bytea NOT NULL, answer bytea, \
        once_until bigint, PRIMARY KEY (node, number)); \
    ALTER TABLE tidegate_request ALTER COLUMN body SET STORAGE EXTERNAL; \
    ALTER TABLE tidegate_request ALTER COLUMN answer SET STORAGE EXTERNAL";

#[cfg(test)]
mod tests {
    use super::*;

    /// What no statement holds: it binds a node to a connection, is bound to one machine, or is evaluated
    /// anew on each copy of a row.
    const WIDE: &[&str] = &[
        "listen",
        "notify",
        "advisory",
        "nextval",
        "serial",
        "sequence",
        "trigger",
        "extension",
        "function",
        "random()",
        "gen_random",
        "serializable",
        "repeatable",
        "lock table",
        "copy ",
        "temp",
    ];

    #[test]
    fn the_statements_are_narrow() {
        for (name, text) in ALL.iter().copied().chain([("TABLES", TABLES)]) {
            let lower = text.to_lowercase();
            for wide in WIDE {
                assert!(!lower.contains(wide), "{name} has {wide}: {text}");
            }
        }
    }

    /// A function of the time is a read of its own; what writes has its answer as a parameter.
    #[test]
    fn what_writes_asks_no_clock() {
        for (name, text) in ALL {
            let lower = text.to_lowercase();
            let writes = ["insert", "update", "delete"].iter().any(|word| lower.starts_with(word));
            if writes {
                for clock in ["now()", "clock_timestamp", "current_timestamp", "localtime"] {
                    assert!(!lower.contains(clock), "{name} asks {clock}");
                }
            }
        }
    }

    /// Whatever reads or writes entries or a shard names the shard: it is one machine's. The shards of polls are a
    /// table of their own kind.
    #[test]
    fn each_names_its_shard() {
        for (name, text) in ALL
            .iter()
            .filter(|(_, text)| text.contains("tidegate_entry") || text.contains("tidegate_shard"))
        {
            let is_named = text.contains("shard = $1") || text.contains("SELECT $1, class");
            let is_named = is_named || text.contains("shard > 0") || text.contains("s.shard = 0");
            assert!(is_named, "{name} is of all shards: {text}");
        }
    }
}
