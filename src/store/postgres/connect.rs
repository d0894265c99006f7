//! Connections to the database: from the address, with TLS where that asks for it, each with the same settings.

use super::hosts::{EachHost, shown_hosts};
use super::statements::{DURABILITY, SETTINGS, WAIT_FOR_DISK, WAITS_FOR_STANDBY};
use crate::store::{StoreError, in_words};
use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
};
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls_platform_verifier::BuilderVerifierExt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The most connections: as many as read at a time, and those that write, keep the lease and start.
const CONNECTIONS: usize = 20;
/// How long one is waited for.
pub(super) const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How long anybody waits for one that is free.
const POOL_TIME: Duration = Duration::from_secs(20);
/// How long bytes may stay unacknowledged before a connection counts as dead.
const UNACKNOWLEDGED_TIME: Duration = Duration::from_secs(8);
/// How long a connection says nothing before it is tried whether it still goes through.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);

/// What an address of a database says, without its password.
pub(super) struct DatabaseAddress {
    config: Config,
    /// As messages show it.
    pub(super) shown: String,
}

impl DatabaseAddress {
    /// Reads an address. What is wrong with it is said without it: it may have a password.
    pub(super) fn parse(text: &str) -> Result<Self, StoreError> {
        let parsed = Config::from_str(text).map_err(|error| {
            let source = io::Error::new(io::ErrorKind::InvalidInput, error.to_string());
            StoreError::Io { doing: "read store.url", source }
        });
        let mut config = parsed?;
        if config.get_target_session_attrs() == TargetSessionAttrs::Any {
            // Of several hosts, the one that takes writes.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
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

    /// Connections to it, none of which is open yet.
    pub(super) fn pool(&self) -> Result<Pool, StoreError> {
        let doing = "prepare its connections";
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| StoreError::Io {
            doing,
            source: io::Error::other(error),
        };
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(BuilderVerifierExt::with_platform_verifier)
            .map_err(|error| failed(error.into()))?
            .with_no_client_auth();
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let hosts = EachHost::new(&self.config, MakeRustlsConnect::new(tls));
        let manager = Manager::from_connect(self.config.clone(), hosts, recycling);
        let settle = Hook::async_fn(|client, _| Box::pin(async move { prepare(client).await }));
        Pool::builder(manager)
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(POOL_TIME))
            .create_timeout(Some(CONNECT_TIME.saturating_mul(4)))
            .post_create(settle)
            .build()
            .map_err(|error| failed(error.into()))
    }
}

/// Sets up a new connection: time-outs, and commits that wait for the disk where the database's own would not.
async fn prepare(client: &Client) -> Result<(), HookError> {
    client.batch_execute(SETTINGS).await.map_err(HookError::Backend)?;
    let row = client.query_one(DURABILITY, &[]).await.map_err(HookError::Backend)?;
    let (waits, syncs): (String, String) = (row.get(0), row.get(1));
    if syncs == "off" {
        return Err(HookError::message(NO_FSYNC));
    }
    if waits == "off" {
        client.batch_execute(WAIT_FOR_DISK).await.map_err(HookError::Backend)?;
    }
    Ok(())
}

/// Whether commits wait for a standby of the database, too.
pub(super) async fn waits_for_standby(pool: &Pool) -> Result<bool, SqlError> {
    let client = connection(pool).await?;
    let row = timeout(CONNECT_TIME, client.query_one(WAITS_FOR_STANDBY, &[])).await;
    Ok(row.map_err(|_| SqlError::Late)??.try_get(0)?)
}

/// Why a database is refused that loses what it acknowledged.
const NO_FSYNC: &str = "the database runs with fsync = off, so a loss of power would take back what was \
    acknowledged; set fsync = on in postgresql.conf";

/// A connection that is free.
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

/// Why a statement was not answered.
#[derive(Debug)]
pub(super) enum SqlError {
    /// What the database or the connection said.
    Database(tokio_postgres::Error),
    /// Nothing was answered in time.
    Late,
    /// A read is not waited for any more: the database is silent, or another node has it.
    Vain(StoreError),
    /// The database is not to be used, or an answer is none that there can be.
    Refused(String),
    /// Another node has the shard, or has had it.
    Fenced,
    /// Writes that were not durable yet are gone: the database was started again, or another took its place.
    Lost,
}

impl From<tokio_postgres::Error> for SqlError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl SqlError {
    /// Whether it may be over soon: the connection was cut, or the database starts, stops or hands over.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Late | Self::Vain(_) => true,
            Self::Refused(_) | Self::Fenced | Self::Lost => false,
            Self::Database(error) => match error.code() {
                None => true,
                // Connections, operators that intervene, rollbacks, locks, and a server that became a standby.
                Some(code) => {
                    let code = code.code();
                    ["08", "57", "40"].iter().any(|class| code.starts_with(class))
                        || matches!(code, "55P03" | "25006" | "53300")
                }
            },
        }
    }

    /// As an error of the store.
    pub(super) fn of_store(self, doing: &'static str, shown: &str) -> StoreError {
        let is_passing = self.is_passing();
        let said = match self {
            Self::Vain(why) => return why,
            Self::Database(error) => in_words(&error),
            Self::Late => "it did not answer in time".to_owned(),
            Self::Refused(said) => said,
            Self::Fenced => "another gateway has taken it over".to_owned(),
            Self::Lost => "writes that it had taken are gone; it was started anew".to_owned(),
        };
        let source = io::Error::other(format!("{shown}: {said}"));
        match is_passing {
            true => StoreError::Away { doing, source },
            false => StoreError::Io { doing, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let address = DatabaseAddress::parse(
            "postgresql://gate:s3cret@db1.example,db2.example:5433/feeds?sslmode=require",
        );
        let shown = address.unwrap().shown;
        assert_eq!(shown, "the PostgreSQL database feeds at db1.example:5432, db2.example:5433");
    }

    #[test]
    fn what_may_be_over_soon_is_told_from_a_fault() {
        let of_store = |error: SqlError| error.of_store("read", "the database feeds");
        let late = of_store(SqlError::Late);
        assert!(matches!(late, StoreError::Away { doing: "read", .. }), "{late}");
        assert!(in_words(&late).contains("the database feeds: it did not answer in time"));
        let silent = of_store(SqlError::Vain(StoreError::Unseen { seconds: 17 }));
        assert!(matches!(silent, StoreError::Unseen { seconds: 17 }), "{silent}");
        for fault in [SqlError::Refused("no row".to_owned()), SqlError::Fenced, SqlError::Lost] {
            let fault = of_store(fault);
            assert!(matches!(fault, StoreError::Io { .. }) && !fault.is_passing(), "{fault}");
        }
    }

    #[test]
    fn an_address_that_is_none_is_refused_without_being_shown() {
        let error = DatabaseAddress::parse("postgresql://gate:s3cret@db/feeds?sslmode=perhaps");
        let said = format!("{:?}", error.err().unwrap());
        assert!(said.contains("store.url") && !said.contains("s3cret"), "{said}");
    }
}
