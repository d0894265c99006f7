//! Writes to a database that other gateways write to as well: each is one ordinary transaction. What it changes of what
//! gateways have in memory is noted in it, and shown, here as everywhere, once the database has numbered the note
//! ([`super::follow`]).

use super::committer::{CommitGroup, Committer};
use super::request::WriteScope;
use super::shared::StoreShared;
use super::{Nowhere, Records, StoreInner, Writer, keys, open};
use crate::postgres::{Database, MemoryNotes};
use crate::{CommitError, Epoch, StoreError};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::clock::Clock;
use tidegate_core::model::Time;
use tokio::time::sleep;

/// How often it is asked what became of a transaction, and the first pause; each is twice the last.
const SETTLE_TRIES: (u32, Duration) = (7, Duration::from_millis(100));

impl StoreInner {
    /// The database, where others write to it as well.
    pub(super) fn database(&self) -> Option<Arc<Database>> {
        match self.opened().ok()?.writer {
            Writer::Transactions(database) => Some(database),
            _ => None,
        }
    }

    /// A time of this gateway's clock by that of the database.
    pub(super) fn by_database(&self, time: Time) -> Time {
        let ahead = self.database().map_or(0, |database| database.gateways().clock_ahead());
        let apart = Duration::from_millis(ahead.unsigned_abs());
        if ahead < 0 { time.plus(apart) } else { time.minus(apart) }
    }

    /// Does `work` as one transaction, and answers once this gateway shows what it changed.
    pub(super) async fn transact<T: Send + 'static>(
        &self,
        scope: WriteScope,
        work: impl FnOnce(&mut Committer, &mut CommitGroup) -> Result<T, CommitError> + Send + 'static,
    ) -> Result<T, CommitError> {
        let Writer::Transactions(database) = self.opened()?.writer else {
            let source = io::Error::other("its database has no transactions");
            return Err(StoreError::Io { doing: "write", source }.into());
        };
        if !self.is_current() {
            // A gateway that stood still knows first what has happened meanwhile.
            self.catch_up().await?;
        }
        let turn = self.read_turn().await?;
        let (shared, clock) = (Arc::clone(&self.shared), Arc::clone(&self.clock));
        let working = tokio::task::spawn_blocking(move || {
            let done = transact(&database, &scope, (&shared, &clock), work);
            drop((database, turn));
            done
        });
        let done = working.await.unwrap_or_else(|error| {
            let source = io::Error::other(error);
            Err(CommitError::Ambiguous(StoreError::Io { doing: "write", source }))
        });
        let (done, is_noted) = done?;
        if is_noted {
            self.show_committed().await;
        }
        Ok(done)
    }

    /// Waits until this gateway shows what it committed. That is durable, whether it is shown or not.
    pub(super) async fn show_committed(&self) {
        if let Err(error) = self.catch_up().await {
            tracing::warn!(%error, "a change is stored, and not shown here yet");
        }
    }

    /// The same of what may be done again, until it is answered.
    pub(super) async fn retried_transaction<T: Send + 'static>(
        &self,
        scope: WriteScope,
        work: impl Fn(&mut Committer, &mut CommitGroup) -> Result<T, CommitError>
        + Clone
        + Send
        + 'static,
    ) -> Result<T, StoreError> {
        let mut pause = SETTLE_TRIES.1;
        for _ in 1..SETTLE_TRIES.0 {
            match self.transact(scope.clone(), work.clone()).await.map_err(StoreError::from) {
                Err(error) if error.is_passing() => sleep(pause).await,
                done => return done,
            }
            pause = pause.saturating_mul(2);
        }
        Ok(self.transact(scope, work).await?)
    }
}

/// Does `work` as one transaction; whether it changes what gateways have in memory. Blocks.
fn transact<T>(
    database: &Arc<Database>,
    scope: &WriteScope,
    (shared, clock): (&Arc<StoreShared>, &Arc<dyn Clock>),
    work: impl FnOnce(&mut Committer, &mut CommitGroup) -> Result<T, CommitError>,
) -> Result<(T, bool), CommitError> {
    let transaction = database.begin(scope)?;
    let mut committer = Committer {
        records: Records::of(Arc::new(transaction.engine())),
        shared: Arc::clone(shared),
        place: Arc::new(Nowhere),
        clock: Arc::clone(clock),
        list_writes: 0,
        sealed: (*shared.sealed.borrow(), Time::MIN),
    };
    let mut group = CommitGroup::new(Epoch(0), clock.now());
    let done = work(&mut committer, &mut group)?;
    let notes = notes(&committer.records, &group)?;
    let is_noted = !notes.is_empty();
    drop(committer);
    transaction.commit(notes).map_err(CommitError::Ambiguous)?;
    Ok((done, is_noted))
}

/// What a transaction changed of what gateways have in memory.
fn notes(records: &Records, group: &CommitGroup) -> Result<MemoryNotes, StoreError> {
    if let Some(is_end) = group.imports {
        let anew = if is_end { MemoryNotes::anew(group.at) } else { MemoryNotes::none(group.at) };
        return Ok(MemoryNotes { reached: group.reached, ..anew });
    }
    let mut keys: BTreeMap<Vec<u8>, Option<Vec<u8>>> = BTreeMap::new();
    let listed = group.listed.iter().map(|(feed, _)| feed);
    keys.extend(group.feeds.keys().chain(listed).map(|feed| (keys::feed(feed), None)));
    for logged in &group.logged {
        let value = records.encoded(logged, || "a change in the log".to_owned())?;
        keys.insert(keys::feed(&logged.feed), Some(value));
    }
    if group.is_renamed {
        keys.insert(open::IDENTITY_KEY.to_vec(), None);
    }
    Ok(MemoryNotes { at: group.at, keys, reached: None })
}
