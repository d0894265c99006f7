//! PostgreSQL as the store: the same records, the same planner and the same conformance suite as on disk, over a database
//! that several gateways write alike.
//!
//! * **Tables.** `tidegate_entry` has every entry by class and key, the same bytes as on disk; beside the bytes of those
//!   that people ask for stands what they read ([`shown`]), and views have it in columns. `tidegate_change` has notes of
//!   what changed in what gateways have in memory, `tidegate_counter` up to where these are numbered, `tidegate_gateway`
//!   who lives, `tidegate_schema` the format of the tables.
//! * **A write** is one transaction ([`transaction`]), which has its feed to itself. What it reads comes with two or three
//!   statements, and what it writes goes out together with its commit.
//! * **A commit whose answer is lost** is settled by the feed's state, for which the next transaction of that feed waits.
//! * **Epochs** are numbered behind commits ([`statements::NUMBER`]), whoever does it: nothing is added to one that was
//!   given out, and no transaction of another database holds them back.
//! * **Readers** have a snapshot each.

mod connect;
mod database;
mod engine;
mod shown;
mod statements;
#[cfg(test)]
mod tests;
mod transaction;

pub(super) use self::database::{Database, MemoryLook, let_go};
pub(super) use self::transaction::MemoryNotes;

use self::connect::{DatabaseAddress, is_so};
use self::statements::{HAS_TABLES, WAITS_FOR_STANDBY};
use super::StoreError;
use super::embedded::{
    IDENTITY_KEY, OpenRequest, Records, Store, WriteScope, identify, identity, is_used, read_image,
};
use super::engine::{Engine, FirstRead};
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_core::clock::Clock;
use tidegate_core::model::{EndpointId, SupIdBasis};

/// A store in PostgreSQL that is to be opened, or made.
#[derive(Clone)]
pub struct PostgresRequest {
    /// The address of the database; it may have a password.
    pub url: String,
    /// As configured. A new store without one chooses its own at random, a used one refuses another.
    pub endpoint: Option<EndpointId>,
    /// What SUP ids are made of in a store that takes the place of another. A used one keeps its own.
    pub sup_ids: Option<SupIdBasis>,
}

impl std::fmt::Debug for PostgresRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresRequest").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl PostgresRequest {
    /// For the store in the database at `url`.
    pub fn new(url: &str, endpoint: Option<EndpointId>) -> Self {
        Self { url: url.to_owned(), endpoint, sup_ids: None }
    }

    /// An error where the address is none. Nothing is asked.
    pub fn check_address(url: &str) -> Result<(), StoreError> {
        DatabaseAddress::parse(url).map(|_| ())
    }

    /// An error where commits wait for no standby of the database: a failover may take back what was acknowledged.
    pub async fn check_standby(&self) -> Result<(), StoreError> {
        let (waits, database) = self.ask("look for a standby of it", WAITS_FOR_STANDBY).await?;
        waits.then_some(()).ok_or(StoreError::NoStandby { database })
    }

    /// Whether the database has a store. None is made.
    pub async fn has_store(&self) -> Result<bool, StoreError> {
        self.ask("look for its tables", HAS_TABLES).await.map(|(has, _)| has)
    }

    /// The answer to a question, and the database as messages show it.
    async fn ask(&self, doing: &'static str, what: &str) -> Result<(bool, String), StoreError> {
        let address = DatabaseAddress::parse(&self.url)?;
        let answer = is_so(&address.pool(1)?, what).await;
        let answer = answer.map_err(|error| error.of_store(doing, &address.shown))?;
        Ok((answer, address.shown))
    }
}

impl Store {
    /// Opens a store in PostgreSQL, or makes one. Other gateways may have it open. Blocks.
    pub fn open_on_postgres(
        request: PostgresRequest,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let PostgresRequest { url, endpoint, sup_ids } = request;
        let database = Database::open(&url)?;
        let transaction =
            Arc::new(database.begin(Some(WriteScope::Identity), FirstRead::default())?);
        let records = Records::of(Arc::clone(&transaction) as Arc<dyn Engine>);
        let (used, reached) = is_used(&records)?;
        // As long as one gateway polls, the database is what it was.
        let goes_on =
            database.gateways().live().iter().any(|gateway| !gateway.is_this && gateway.polls);
        let request = OpenRequest { endpoint, sup_ids };
        let found = identity(&records)?;
        let (_, writes) = identify(&records, found, (used, goes_on, reached), request)?;
        records.engine().apply(writes)?;
        let keys = BTreeMap::from([(IDENTITY_KEY.to_vec(), None)]);
        transaction.commit(MemoryNotes { at: clock.now(), keys, reached: None })?;
        let image = read_image(&database)?;
        Ok(Self::in_database(&database, image, clock))
    }
}
