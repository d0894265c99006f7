//! Writes to a database that several gateways write: each is one transaction, and notes which records it changed that
//! gateways keep in memory. A change is shown, here as elsewhere, once the database has numbered its note
//! ([`super::follow`]).

use super::committer::{Committer, WriteScope};
use super::shared::StoreShared;
use super::{Records, StoreInner, Writer, keys, open};
use crate::engine::{Class, Engine, FirstRead, RecordKey};
use crate::postgres::{Database, MemoryNotes};
use crate::{CommitError, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::Time;

impl StoreInner {
    /// The database, where others write to it as well.
    pub(super) fn database(&self) -> Option<Arc<Database>> {
        match self.opened().ok()?.writer {
            Writer::Transactions(database) => Some(database),
            _ => None,
        }
    }

    /// Converts a time of this gateway's clock to the clock of the database.
    pub(super) fn by_database(&self, time: Time) -> Time {
        let ahead = self.database().map_or(0, |database| database.gateways().clock_ahead());
        let apart = Duration::from_millis(ahead.unsigned_abs());
        if ahead < 0 { time.plus(apart) } else { time.minus(apart) }
    }

    /// Runs `work` as one transaction, and answers once this gateway shows its changes. `first`: the keys that it
    /// probably reads.
    pub(super) async fn transact<T: Send + 'static>(
        &self,
        scope: WriteScope,
        first: Vec<RecordKey>,
        work: impl FnOnce(&mut Committer) -> Result<T, CommitError> + Send + 'static,
    ) -> Result<T, CommitError> {
        let Writer::Transactions(database) = self.opened()?.writer else {
            return Err(StoreError::failed("write", "its database has no transactions").into());
        };
        if !self.is_current() {
            // A gateway that was suspended first reads the changes of the others.
            self.catch_up().await?;
        }
        let permit = self.acquire_read_permit().await?;
        let shared = Arc::clone(&self.shared);
        let working = tokio::task::spawn_blocking(move || {
            let done = transact(&database, (scope, first), &shared, work);
            drop((database, permit));
            done
        });
        let done = working.await.unwrap_or_else(|error| {
            Err(CommitError::Ambiguous(StoreError::failed("write", error)))
        });
        let (done, is_noted) = done?;
        // The change is durable, whether it can be shown here yet or not.
        if is_noted && let Err(error) = self.catch_up().await {
            tracing::warn!(%error, "a change is stored, and not shown here yet");
        }
        Ok(done)
    }
}

/// Runs `work` as one transaction; also answers whether it changed records that gateways keep in memory. Blocks.
fn transact<T>(
    database: &Arc<Database>,
    (scope, mut first): (WriteScope, Vec<RecordKey>),
    shared: &Arc<StoreShared>,
    work: impl FnOnce(&mut Committer) -> Result<T, CommitError>,
) -> Result<(T, bool), CommitError> {
    if let WriteScope::Feed(feed) = &scope {
        first.push((Class::States, keys::feed(feed)));
    }
    let first = FirstRead { keys: first, range: None };
    let transaction = Arc::new(database.begin(Some(scope), first)?);
    let records = Records::new(Arc::clone(&transaction) as Arc<dyn Engine>);
    let newest = (*shared.newest.borrow(), Time::MIN);
    let mut committer = Committer::new(records, None, shared, (0, newest));
    let done = work(&mut committer)?;
    let notes = notes(&committer)?;
    let is_noted = !notes.keys.is_empty();
    drop(committer);
    transaction.commit(notes).map_err(CommitError::Ambiguous)?;
    Ok((done, is_noted))
}

/// The notes of a transaction: which records changed that gateways keep in memory.
fn notes(committer: &Committer) -> Result<MemoryNotes, StoreError> {
    let Committer { records, group, .. } = committer;
    let mut keys: BTreeMap<Vec<u8>, Option<Vec<u8>>> = BTreeMap::new();
    if let Some(is_end) = group.imports {
        // The end of an import has all gateways read everything anew.
        keys.extend(is_end.then(|| (Vec::new(), None)));
        return Ok(MemoryNotes { at: group.at, keys, reached: group.reached });
    }
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
