//! Connections to the database: by its address, with TLS where that asks for it, each with the same settings.

use super::statements::{DURABILITY, SETTINGS, WAIT_FOR_DISK};
use crate::error::AWAY;
use crate::{StoreError, in_words};
use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
};
use scopeguard::{ScopeGuard, guard};
use std::io;
use std::str::FromStr;
use std::time::Duration;
use tidegate_core::trust::ServerTrust;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::config::{Host, LoadBalanceHosts, SslMode, TargetSessionAttrs};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{FromSql, ToSql};
use tokio_postgres::{Client, Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The most connections: one for each read or write at a time, and some that are being released.
pub(super) const CONNECTIONS: usize = 20;
/// The connections of refreshes and lease renewals, which must not wait behind transactions that wait for a lock.
pub(super) const LOOK_CONNECTIONS: usize = 2;
/// How long connecting may take.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How long a caller waits for a free connection.
const POOL_TIME: Duration = Duration::from_secs(20);
/// How long the answer to a statement may take: longer than the time-out of the database itself.
pub(super) const ANSWER_TIME: Duration = Duration::from_secs(40);
/// The port of PostgreSQL where an address names none.
const DEFAULT_PORT: u16 = 5432;
/// How long bytes may stay unacknowledged before a connection counts as dead.
const UNACKNOWLEDGED_TIME: Duration = Duration::from_secs(8);
/// How long a connection may be idle before it is probed.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);

/// A parsed address of a database, without its password.
pub(super) struct DatabaseAddress {
    config: Config,
    /// Its form in messages.
    pub(super) shown: String,
}

impl DatabaseAddress {
    /// Parses an address. Errors do not quote it: it may have a password.
    pub(super) fn parse(text: &str) -> Result<Self, StoreError> {
        let unread = |why: String| StoreError::failed("read store.url", why);
        let mut config = Config::from_str(text).map_err(|error| unread(error.to_string()))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(unread("it names no host".to_owned()));
        }
        if config.get_target_session_attrs() == TargetSessionAttrs::Any {
            // Of several hosts, use the one that takes writes.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        if config.get_hosts().len() > 1 {
            // A host that accepts connections and hangs is not tried first each time.
            config.load_balance_hosts(LoadBalanceHosts::Random);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIME);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(UNACKNOWLEDGED_TIME);
        }
        config.keepalives_idle(config.get_keepalives_idle().min(KEEPALIVE_AFTER));
        if config.get_application_name().is_none() {
            config.application_name("tidegate");
        }
        let database = config.get_dbname().or_else(|| config.get_user()).unwrap_or("postgres");
        let shown = format!("the PostgreSQL database {database} at {}", shown_hosts(&config));
        Ok(Self { config, shown })
    }

    /// A pool of at most `most` connections, none of which is open yet.
    pub(super) fn pool(&self, most: usize) -> Result<Pool, StoreError> {
        // The certificates that are trusted for publishers are not trusted for the database.
        let trust = ServerTrust::with(&[]).map_err(|error| unprepared(error.into()))?;
        self.pool_by(trust, most)
    }

    /// A pool whose servers are verified by `trust`.
    fn pool_by(&self, trust: ServerTrust, most: usize) -> Result<Pool, StoreError> {
        if self.config.get_ssl_mode() == SslMode::Require && !trust.has_authorities {
            return Err(unprepared(NO_AUTHORITIES.into()));
        }
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let tls = MakeRustlsConnect::new(trust.config);
        let manager = Manager::from_config(self.config.clone(), tls, recycling);
        let settle = Hook::async_fn(|client, _| Box::pin(async move { prepare(client).await }));
        Pool::builder(manager)
            .max_size(most)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(POOL_TIME))
            .create_timeout(Some(CONNECT_TIME))
            .post_create(settle)
            .build()
            .map_err(|error| unprepared(error.into()))
    }
}

/// The hosts of an address with their ports, as messages show them.
fn shown_hosts(address: &Config) -> String {
    let ports = address.get_ports();
    let shown = |(place, host): (usize, &Host)| {
        let port = ports.get(place).or(ports.first()).copied().unwrap_or(DEFAULT_PORT);
        match host {
            Host::Tcp(name) if name.contains(':') => format!("[{name}]:{port}"),
            Host::Tcp(name) => format!("{name}:{port}"),
            #[cfg(unix)]
            Host::Unix(path) => format!("{}:{port}", path.display()),
        }
    };
    let shown: Vec<String> = address.get_hosts().iter().enumerate().map(shown).collect();
    shown.join(", ")
}

/// The error where there can be no connections.
fn unprepared(error: Box<dyn std::error::Error + Send + Sync>) -> StoreError {
    StoreError::failed("prepare its connections", error)
}

/// Sets up a new connection: time-outs, and commits that wait for the disk where the database's own would not.
async fn prepare(client: &Client) -> Result<(), HookError> {
    client.batch_execute(SETTINGS).await.map_err(HookError::Backend)?;
    let row = client.query_one(DURABILITY, &[]).await.map_err(HookError::Backend)?;
    let (waits, syncs, encoding): (String, String, String) = (row.get(0), row.get(1), row.get(2));
    if syncs == "off" {
        return Err(HookError::message(NO_FSYNC));
    }
    if !matches!(encoding.as_str(), "UTF8" | "SQL_ASCII") {
        return Err(HookError::message(NOT_UTF8));
    }
    if waits == "off" {
        client.batch_execute(WAIT_FOR_DISK).await.map_err(HookError::Backend)?;
    }
    Ok(())
}

/// The answer to a question.
pub(super) async fn is_so(pool: &Pool, question: &str) -> Result<bool, SqlError> {
    let asking = async |client: &Object| get(only(&query(client, question, &[]).await?)?, 0);
    on_connection(pool, CONNECT_TIME, asking).await
}

/// The error of a database that loses acknowledged commits.
const NO_FSYNC: &str = "the database runs with fsync = off, so a loss of power would take back what was \
    acknowledged; set fsync = on in postgresql.conf";

/// The error of a database that cannot store every character.
const NOT_UTF8: &str = "the database is not encoded as UTF-8, so it cannot have every address and name: create one \
    with ENCODING 'UTF8' TEMPLATE template0";

/// Takes a free connection.
pub(super) async fn connection(pool: &Pool) -> Result<Object, SqlError> {
    pool.get().await.map_err(|error| match error {
        PoolError::Backend(error) => SqlError::Database(error),
        PoolError::PostCreateHook(HookError::Backend(error)) => SqlError::Database(error),
        PoolError::PostCreateHook(error @ HookError::Message(_)) => {
            SqlError::Refused(error.to_string())
        }
        PoolError::Timeout(_) => SqlError::Late,
        error => SqlError::Refused(error.to_string()),
    })
}

/// Closes idle connections: they may lead to a host that hangs.
pub(super) fn close_idle(pool: &Pool) {
    drop(pool.retain(|_, _| false));
}

/// Runs `work` on a connection, within a time limit. If it fails, the connection is closed, which rolls back what it
/// began.
pub(super) async fn on_connection<T>(
    pool: &Pool,
    limit: Duration,
    work: impl AsyncFnOnce(&Object) -> Result<T, SqlError>,
) -> Result<T, SqlError> {
    let until = Instant::now() + limit;
    let connecting = timeout_at(until, connection(pool)).await;
    let client = connecting.unwrap_or(Err(SqlError::Late))?;
    // Closed unless it is given back: also where the caller is dropped.
    let client = guard(client, |client| drop(Object::take(client)));
    let done = timeout_at(until, work(&client)).await.unwrap_or(Err(SqlError::Late));
    match &done {
        Ok(_) => drop(ScopeGuard::into_inner(client)),
        // Idle connections may lead to the same host.
        Err(SqlError::Late) => close_idle(pool),
        Err(_) => {}
    }
    done
}

/// Limits the time of a query to that of any answer.
pub(super) async fn in_time<T>(
    asked: impl Future<Output = Result<T, SqlError>>,
) -> Result<T, SqlError> {
    timeout(ANSWER_TIME, asked).await.unwrap_or(Err(SqlError::Late))
}

/// The parameters of a statement.
pub(super) type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Queries rows.
pub(super) async fn query(
    client: &Object,
    text: &str,
    parameters: Parameters<'_>,
) -> Result<Vec<Row>, SqlError> {
    let statement = client.prepare_cached(text).await?;
    Ok(client.query(&statement, parameters).await?)
}

/// Executes a statement; answers the number of rows.
pub(super) async fn execute(
    client: &Object,
    text: &str,
    parameters: Parameters<'_>,
) -> Result<u64, SqlError> {
    let statement = client.prepare_cached(text).await?;
    Ok(client.execute(&statement, parameters).await?)
}

/// Decodes a column of a row. An error here is no lost connection.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, SqlError> {
    row.try_get(column).map_err(|error| SqlError::Refused(in_words(&error)))
}

/// The only row.
pub(super) fn only(rows: &[Row]) -> Result<&Row, SqlError> {
    rows.first().ok_or_else(|| SqlError::Refused("it has no row where there is one".to_owned()))
}

/// The reason why a statement was not answered.
#[derive(Debug)]
pub(super) enum SqlError {
    /// An error of the database or the connection.
    Database(tokio_postgres::Error),
    /// There was no answer in time.
    Late,
    /// The database is unsuitable, or its answer is invalid.
    Refused(String),
}

impl From<tokio_postgres::Error> for SqlError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl SqlError {
    /// Whether it may pass soon: the connection was cut, or the database starts, stops or fails over.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Late => true,
            Self::Refused(_) => false,
            Self::Database(error) => match error.code() {
                None => true,
                // Connections, operators that intervene, rollbacks, locks, a server that became a standby, and a
                // transaction whose next part took too long to arrive.
                Some(code) => {
                    let code = code.code();
                    ["08", "57", "40"].iter().any(|class| code.starts_with(class))
                        || matches!(code, "55P03" | "25006" | "25P03" | "53300")
                }
            },
        }
    }

    /// As an error of the store.
    pub(super) fn of_store(self, doing: &'static str, shown: &str) -> StoreError {
        let is_passing = self.is_passing();
        let mut known = None;
        let said = match self {
            Self::Database(error) => {
                let said = in_words(&error);
                known = known_cause(error.code().map(SqlState::code), &said);
                said
            }
            Self::Late => "it did not answer in time".to_owned(),
            Self::Refused(said) => said,
        };
        let source = io::Error::other(match known.filter(|_| !is_passing) {
            Some(why) => format!("{shown}: {why}: {said}"),
            None => format!("{shown}: {said}"),
        });
        match is_passing {
            true => StoreError::Away { doing, why: known.unwrap_or(AWAY), source },
            false => StoreError::Io { doing, source },
        }
    }
}

/// The known reason in errors, where there is a better one than that the database does not answer.
fn known_cause(code: Option<&str>, said: &str) -> Option<&'static str> {
    match code {
        Some("25006") => Some(NO_WRITES),
        // A prepared statement is not there, or there already: each is on one connection, and stays there.
        Some("26000" | "42P05") => Some(POOLER),
        // Errors of the client itself.
        None if said.contains("server does not support TLS") => Some(NO_TLS),
        None if said.contains("database does not allow writes") => Some(NO_WRITES),
        None if said.contains("UnknownIssuer") => Some(UNKNOWN_AUTHORITY),
        _ => None,
    }
}

const NO_AUTHORITIES: &str = "store.url demands TLS, and the system has no certificates of authorities, so that no \
    server would be believed: install them (ca-certificates), or name a file with that of the database's authority \
    (SSL_CERT_FILE)";
const UNKNOWN_AUTHORITY: &str = "has a certificate of an authority that the system does not know (SSL_CERT_FILE may \
    name a file with that of the authority)";
const NO_TLS: &str = "does not speak TLS, which the address in store.url asks for";
const POOLER: &str = "it is reached through a pooler in transaction mode, which cannot be used: have that one pool \
    sessions (pool_mode = session), or write the address of the server itself to store.url";
const NO_WRITES: &str = "takes no writes: it is read-only, or a standby";

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    /// What comes of a server that says this to the first request of a connection.
    async fn answered(mode: &str, answer: &[u8]) -> SqlError {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let address = format!("postgresql://gate@127.0.0.1:{port}/feeds?sslmode={mode}");
        let answering = async {
            let (mut stream, _) = server.accept().await.unwrap();
            stream.read_exact(&mut [0; 8]).await.unwrap();
            stream.write_all(answer).await.unwrap();
            stream
        };
        let config = Config::from_str(&address).unwrap();
        let connecting =
            config.connect(MakeRustlsConnect::new(ServerTrust::with(&[]).unwrap().config));
        let (_stream, connected) = tokio::join!(answering, connecting);
        SqlError::Database(connected.err().unwrap())
    }

    fn refusal(code: &str) -> Vec<u8> {
        let fields = format!("SERROR\0C{code}\0Mit is refused\0\0");
        let length = u32::try_from(fields.len() + 4).unwrap();
        [b"E".as_slice(), length.to_be_bytes().as_slice(), fields.as_bytes()].concat()
    }

    #[tokio::test]
    async fn what_is_known_of_a_database_is_said_first() {
        let of_store = |error: SqlError| error.of_store("connect", "the database feeds");
        for (answered, known) in [
            (answered("require", b"N").await, NO_TLS),
            (answered("disable", &refusal("25006")).await, NO_WRITES),
            (answered("disable", &refusal("57P01")).await, AWAY),
        ] {
            let error = of_store(answered);
            assert!(matches!(error, StoreError::Away { .. }), "{error:?}");
            let said = in_words(&error);
            let first = format!("the store could not connect: its database {known}: the database");
            assert!(said.starts_with(&first), "{said}");
        }
        for code in ["26000", "42P05"] {
            let error = of_store(answered("disable", &refusal(code)).await);
            let said = in_words(&error);
            let first = format!("the store could not connect: the database feeds: {POOLER}: ");
            assert!(said.starts_with(&first) && said.ends_with("it is refused"), "{said}");
        }
        let said = "error connecting to server: database does not allow writes";
        assert_eq!(known_cause(None, said), Some(NO_WRITES));
        let unknown = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        assert_eq!(known_cause(None, &unknown.to_string()), Some(UNKNOWN_AUTHORITY));
    }

    #[tokio::test]
    async fn tls_that_could_believe_nobody_is_refused_at_once() {
        for (mode, is_refused) in [("require", true), ("prefer", false), ("disable", false)] {
            let address = format!("postgresql://gate@db.example/feeds?sslmode={mode}");
            let address = DatabaseAddress::parse(&address).unwrap();
            let trust = ServerTrust { has_authorities: false, ..ServerTrust::with(&[]).unwrap() };
            let refused = address.pool_by(trust, 1).err();
            assert_eq!(refused.is_some(), is_refused, "{mode}");
            if let Some(error) = refused {
                assert!(!error.is_passing() && in_words(&error).contains(NO_AUTHORITIES));
            }
        }
    }

    #[test]
    fn an_address_is_shown_without_its_password_or_not_at_all() {
        let parse = |tls: &str| {
            let hosts = "db1.example,db2.example:5433";
            DatabaseAddress::parse(&format!("postgresql://gate:s3cret@{hosts}/feeds?sslmode={tls}"))
        };
        let shown = parse("require").unwrap().shown;
        assert_eq!(shown, "the PostgreSQL database feeds at db1.example:5432, db2.example:5433");
        let said = format!("{:?}", parse("perhaps").err().unwrap());
        assert!(said.contains("store.url") && !said.contains("s3cret"), "{said}");
    }

    #[test]
    fn what_may_be_over_soon_is_told_from_a_fault() {
        let of_store = |error: SqlError| error.of_store("read", "the database feeds");
        let late = of_store(SqlError::Late);
        assert!(matches!(late, StoreError::Away { doing: "read", .. }), "{late}");
        assert!(in_words(&late).contains("the database feeds: it did not answer in time"));
        let fault = of_store(SqlError::Refused("no row".to_owned()));
        assert!(matches!(fault, StoreError::Io { .. }) && !fault.is_passing(), "{fault}");
    }
}
