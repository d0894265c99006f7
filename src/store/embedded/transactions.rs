//! Writes to a database that other gateways write to as well: each is one ordinary transaction. What it changes of what
//! gateways have in memory is noted in it, and shown, here as everywhere, once the database has numbered the note
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

    /// A time of this gateway's clock by that of the database.
    pub(super) fn by_database(&self, time: Time) -> Time {
        let ahead = self.database().map_or(0, |database| database.gateways().clock_ahead());
        let apart = Duration::from_millis(ahead.unsigned_abs());
        if ahead < 0 { time.plus(apart) } else { time.minus(apart) }
    }

    /// Does `work` as one transaction, and answers once this gateway shows what it changed. `first`: the keys of what it
    /// reads most likely.
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
            // A gateway that stood still knows first what has happened meanwhile.
            self.catch_up().await?;
        }
        let turn = self.read_turn().await?;
        let shared = Arc::clone(&self.shared);
        let working = tokio::task::spawn_blocking(move || {
            let done = transact(&database, (scope, first), &shared, work);
            drop((database, turn));
            done
        });
        let done = working.await.unwrap_or_else(|error| {
            Err(CommitError::Ambiguous(StoreError::failed("write", error)))
        });
        let (done, is_noted) = done?;
        // It is durable, whether it is shown here or not.
        if is_noted && let Err(error) = self.catch_up().await {
            tracing::warn!(%error, "a change is stored, and not shown here yet");
        }
        Ok(done)
    }
}

/// Does `work` as one transaction; whether it changes what gateways have in memory. Blocks.
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
    let records = Records::of(Arc::clone(&transaction) as Arc<dyn Engine>);
    let sealed = (*shared.sealed.borrow(), Time::MIN);
    let mut committer = Committer::new(records, None, shared, (0, sealed));
    let done = work(&mut committer)?;
    let notes = notes(&committer)?;
    let is_noted = !notes.keys.is_empty();
    drop(committer);
    transaction.commit(notes).map_err(CommitError::Ambiguous)?;
    Ok((done, is_noted))
}

/// What a transaction changed of what gateways have in memory.
fn notes(committer: &Committer) -> Result<MemoryNotes, StoreError> {
    let Committer { records, group, .. } = committer;
    let mut keys: BTreeMap<Vec<u8>, Option<Vec<u8>>> = BTreeMap::new();
    if let Some(is_end) = group.imports {
        // At its end everything is read anew.
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
