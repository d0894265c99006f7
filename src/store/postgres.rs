//! PostgreSQL as the engine of a store: the same records, planner and conformance suite as on disk, over a database
//! that several gateways write.
//!
//! * **Tables.** `tidegate_entry` has every entry by class and key, with the same bytes as on disk, and its readable form
//!   ([`shown`]) where a view has columns of it. `tidegate_change` has the notes of changes, `tidegate_counter` the last
//!   numbered one, `tidegate_gateway` the living gateways, `tidegate_schema` the format of the tables.
//! * **A write** is one transaction ([`transaction`]), which locks its feed. It reads with two or three statements, and
//!   sends its writes together with the commit.
//! * **A commit whose answer is lost**: the state of the feed says whether it was made, once the next transaction of that
//!   feed can read it.
//! * **Epochs** are numbered after commits ([`statements::NUMBER`]) by any gateway: a numbered epoch never gets another
//!   change, and a transaction of another database cannot delay them.
//! * **Readers** have a snapshot each.

mod connect;
mod database;
mod engine;
mod shown;
mod statements;
#[cfg(test)]
mod tests;
mod transaction;

pub(super) use self::database::{Database, SeenNotes, release_database};
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
        let records = Records::new(Arc::clone(&transaction) as Arc<dyn Engine>);
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
