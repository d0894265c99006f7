//! PostgreSQL as the store: the same records, the same committer and the same conformance suite as on disk, over
//! a database that is reached by the network.
//!
//! # How it is made
//!
//! What an entry means is written once, in [`super::embedded`]: classes, keys, codecs, how a change becomes writes,
//! versions, past, archives, retention, undo. PostgreSQL is an [`Engine`] below it, as sled is. There is
//! no second planner that could drift from the first.
//!
//! * **Tables.** `tidegate_entry` has every entry by shard, class and key, the same bytes as on disk; values that we
//!   compress are stored as they are (`STORAGE EXTERNAL`). `tidegate_shard` has for each shard its owner, its fence
//!   and its position; `tidegate_node` says when each node lived last; `tidegate_schema` has the format of the
//!   tables, and a program of another format refuses them. Closed epochs, the log, the incarnation (the lineage of the identity) are entries.
//! * **A write** is one transaction: the entries, and `UPDATE tidegate_shard SET log_seq = log_seq + 1 WHERE shard,
//!   fence and log_seq are as we know them`. Whoever lost the shard meets no row and writes nothing; positions are
//!   dense, in the order of commits. Its statements go out together: two round trips.
//! * **The barrier.** Writes commit with `synchronous_commit = off`; the barrier is one small transaction that waits
//!   for the disk, and for a synchronous standby where there is one. The log of the database is one sequence, so
//!   what the barrier made durable has everything before it. So one wait serves a group of changes, and nothing is
//!   published or acknowledged before it. A change costs three round trips, and those that plan it.
//! * **Epochs are closed** by one more small update, which waits for no disk: after the writer shows what an epoch
//!   announces, and before it announces it itself. So whoever was told of a change, by whichever gateway, gets it from
//!   each.
//! * **A commit whose answer is lost** is settled, not guessed: the shard's row says whether the position moved. It
//!   waits for a transaction that is still under way. Fence and position together are the token of the commit:
//!   nobody else writes under this fence, and this node makes one write at a time. Where the position went back
//!   (the database was started again, or a standby took over), writes without a barrier are gone: the store stops
//!   and is opened again, with what was acknowledged checked ([`super::embedded`], reopen).
//! * **Readers** see a feed at one revision by the write numbers and the undo records of `embedded`. No transaction is
//!   held open for them, so a slow reader keeps nothing from being vacuumed.
//! * **The lease** ([`session`]): one gateway at a time has the shard. Another one that starts waits until it knows
//!   whether the first lives, and refuses if so; then it may follow. A node that could not renew its lease stops
//!   writing before others may take the shard.
//! * **Who follows** ([`look`]) claims nothing and writes no entry. Each write notes in `tidegate_recent` what it
//!   did to what gateways have in memory, with the values, under its own position: one more row for each, in the
//!   same round trip, some hundred bytes each. A look reads those behind a position, up to the last durable one
//!   (`passed`), together with the owner and the fence, in one statement and so as of one moment. The writer forgets
//!   all but the last 16,384 writes; a write with more than 1,024 such entries notes only that all is to be read
//!   anew. What following means is written in [`super::embedded`], follow.
//!
//! * **Several gateways share the polls** ([`poll_claims`]): 1,024 more shards of `tidegate_shard`, each with its owner
//!   and fence. What a gateway that follows found goes to the one that writes as a row of `tidegate_request`
//!   ([`requests`]).

mod ask;
mod clocks;
mod connect;
mod engine;
mod hosts;
mod lease;
mod look;
mod poll_claims;
mod poll_plan;
mod requests;
mod session;
mod statements;
#[cfg(test)]
mod tests;
mod writer;

use self::connect::{DatabaseAddress, waits_for_standby};
use self::engine::PostgresEngine;
use self::look::ShardLooks;
use self::requests::{RequestSender, answer_requests};
use self::session::{LEASE, Session};
use super::embedded::{
    Acknowledged, AnswerRequests, EmbeddedStore, Found, LeaseSign, LookAt, OpenRequest, Records,
    Reopen, ReopenError, ReopenPauses, Reopened, StorePlace, begin, inspect, read_followed,
};
use super::engine::Engine;
use super::{Epoch, KnownGateway, PollShards, StoreError};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
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
        let address = DatabaseAddress::parse(&self.url)?;
        let waits = waits_for_standby(&address.pool(1)?).await;
        match waits.map_err(|error| error.of_store("look for a standby of it", &address.shown))? {
            true => Ok(()),
            false => Err(StoreError::NoStandby { database: address.shown }),
        }
    }
}

impl EmbeddedStore {
    /// Opens a store in PostgreSQL, or makes one. Blocks: also until it is known whether the gateway that had the
    /// database last still lives.
    pub fn open_on_postgres(
        request: PostgresRequest,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        open_with_lease(request, LEASE, clock)
    }

    /// Follows a store in PostgreSQL that another gateway has and writes: this one reads it, and is told when it
    /// may be taken ([`super::DatabaseOwner::is_gone`]). Blocks.
    pub fn follow_on_postgres(
        request: PostgresRequest,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        follow_with_lease(request, LEASE, clock)
    }
}

fn follow_with_lease(
    request: PostgresRequest,
    lease: Duration,
    clock: Arc<dyn Clock>,
) -> Result<EmbeddedStore, StoreError> {
    let session = Session::open(&request.url, lease)?;
    let looks = ShardLooks {
        session: Arc::clone(&session),
        lease: Mutex::default(),
        behind: Mutex::default(),
        is_passing: Arc::default(),
    };
    let look: Box<LookAt> = Box::new(move |after| looks.look(after));
    let records = Records::of(Arc::new(PostgresEngine::following(&session)));
    let followed = read_followed(&records, &*look)?;
    let stored = followed.identity.endpoint.clone();
    if let Some(wanted) = request.endpoint.filter(|wanted| *wanted != stored) {
        return Err(StoreError::Endpoint { stored, wanted });
    }
    let writer = Box::new(RequestSender::new(&session));
    let place = Arc::new(InDatabase { session, is_writer: false });
    EmbeddedStore::following((records, followed), (look, writer), place, clock)
}

fn open_with_lease(
    request: PostgresRequest,
    lease: Duration,
    clock: Arc<dyn Clock>,
) -> Result<EmbeddedStore, StoreError> {
    let PostgresRequest { url, endpoint, sup_ids } = request;
    let request = OpenRequest { endpoint, sup_ids };
    let opener = DatabaseOpener { session: Session::open(&url, lease)? };
    let Reopened { records, opened, place } = opener.begin(opener.open_database()?, request)?;
    EmbeddedStore::over((records, opened, place), clock, Some(Box::new(opener)))
}

/// Opens the store in a database, as often as needed.
struct DatabaseOpener {
    session: Arc<Session>,
}

impl DatabaseOpener {
    /// Takes the shard anew, and reads what is kept in memory.
    fn open_database(&self) -> Result<(Records, Found), StoreError> {
        let engine: Arc<dyn Engine> = Arc::new(PostgresEngine::open(&self.session)?);
        let records = Records::of(engine);
        let found = inspect(&records)?;
        Ok((records, found))
    }

    /// Begins to use what was found.
    fn begin(
        &self,
        (records, found): (Records, Found),
        request: OpenRequest,
    ) -> Result<Reopened, StoreError> {
        let opened = begin(&records, found, request)?;
        let place = Arc::new(InDatabase { session: Arc::clone(&self.session), is_writer: true });
        Ok(Reopened { records, opened, place })
    }
}

impl Reopen for DatabaseOpener {
    fn reopen(&self, known: &Acknowledged) -> Result<Reopened, ReopenError> {
        let found = self.open_database()?;
        let request = known.request(&found.1, &self.session.shared().shown)?;
        Ok(self.begin(found, request)?)
    }

    fn pauses(&self) -> ReopenPauses {
        ReopenPauses::default()
    }

    fn has_answered(&self, since: Duration) -> bool {
        self.session.shared().sign.last_answer() > since
    }
}

/// The database of a store that is open. The lease is given back when nobody has it any more.
struct InDatabase {
    session: Arc<Session>,
    is_writer: bool,
}

impl StorePlace for InDatabase {
    fn lease(&self) -> Option<Arc<LeaseSign>> {
        Some(Arc::clone(&self.session.shared().sign))
    }

    fn blocks(&self) -> bool {
        true
    }

    fn poll_shards(&self) -> Result<Option<Arc<PollShards>>, StoreError> {
        self.session.poll_shards(self.is_writer).map(Some)
    }

    fn gateways(&self) -> Arc<[KnownGateway]> {
        let (_, shards) = &self.session.shards;
        shards.get().map(|shards| shards.known_gateways()).unwrap_or_default()
    }

    fn clock_ahead(&self) -> i64 {
        self.session.shared().clocks.ahead()
    }

    fn answer_requests(&self, answers: Arc<dyn AnswerRequests>) {
        if self.is_writer {
            let shared = Arc::downgrade(self.session.shared());
            self.session.spawn(answer_requests(shared, answers));
        }
    }

    fn note(&self, _epoch: Epoch) -> io::Result<()> {
        Ok(())
    }

    fn closed(&self, _epoch: Epoch) {}
}
