//! Looks at what another gateway writes.

use super::ask::get;
use super::connect::SqlError;
use super::lease::{LeaseState, LeaseWatch, Ownership};
use super::session::{SHARD, Session, SessionShared};
use super::statements::{LOOK, PASS_FOR_WRITER};
use super::writer::{READ_ANEW, RECENT_ENTRIES, RECENT_WRITES};
use crate::StoreError;
use crate::embedded::{BEHIND_ALL, DatabaseLook, LastClaim, RecentEntry, RecentWrites};
use crate::engine::Class;
use bytes::Bytes;
use deadpool_postgres::Object;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_postgres::Row;

/// The most notes that one look reads: those of some of the largest writes.
const NOTES: usize = 4 * RECENT_ENTRIES;
/// How long a look may take, with the connecting: less than readers wait for it.
const LOOK_TIME: Duration = Duration::from_secs(2);
/// After how long without another write the last ones are made durable from here, where their node has not done so: it
/// may have ended between the two, and the feeds that it wrote to could not be read, for which readers wait about a
/// second. As long as it goes on writing, that is left to it: what is durable is shown here at once, and there only
/// behind its own barrier.
const PASS_AFTER: Duration = Duration::from_millis(400);

/// Looks at the shard of another node, with what was seen of that node.
pub(super) struct ShardLooks {
    pub(super) session: Arc<Session>,
    pub(super) lease: Mutex<LeaseWatch>,
    /// The last write, where it is not durable, and since when it is that one.
    pub(super) behind: Mutex<Option<(i64, Instant)>>,
    /// Whether that is being made durable.
    pub(super) is_passing: Arc<AtomicBool>,
}

impl ShardLooks {
    /// What there is behind the write `after`. One statement, so that all of it is of one moment. Before everything
    /// is read anew, an error where the tables are another program's. Blocks.
    pub(super) fn look(&self, after: i64) -> Result<DatabaseLook, StoreError> {
        if after == BEHIND_ALL {
            self.session.check_tables()?;
        }
        let shared = |shared: Arc<SessionShared>| async move { shared.look(after).await };
        let (look, owner) = self.session.run("look at what another gateway wrote", shared)?;
        self.pass_for_writer(&look);
        let shared = self.session.shared();
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        let state = lease.note(&owner, (shared.node, shared.lease), Instant::now());
        Ok(DatabaseLook { is_free: state == LeaseState::Free, ..look })
    }
}

impl ShardLooks {
    /// Makes writes durable that have waited for that for too long. Whatever is seen of the database was written to its
    /// log before, so that a commit which waits for the disk makes it durable, whoever makes it.
    /// Nobody waits for that.
    fn pass_for_writer(&self, seen: &DatabaseLook) {
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        let written = seen.log_seq;
        if seen.passed >= written {
            *behind = None;
            return;
        }
        let since = match *behind {
            Some((last, since)) if last == written => since,
            _ => behind.insert((written, Instant::now())).1,
        };
        if since.elapsed() < PASS_AFTER || self.is_passing.swap(true, Ordering::AcqRel) {
            return;
        }
        *behind = None;
        drop(behind);
        let (shared, is_passing) =
            (Arc::clone(self.session.shared()), Arc::clone(&self.is_passing));
        self.session.spawn(async move {
            if let Err(error) = shared.execute(PASS_FOR_WRITER, &[&SHARD, &written]).await {
                tracing::debug!(?error, "what another gateway wrote was not made durable");
            }
            is_passing.store(false, Ordering::Release);
        });
    }
}

impl SessionShared {
    async fn look(&self, after: i64) -> Result<(DatabaseLook, Ownership), SqlError> {
        let limit = i64::try_from(NOTES).unwrap_or(i64::MAX);
        let asking = async |client: &Object| {
            let statement = client.prepare_cached(LOOK).await?;
            Ok(client.query(&statement, &[&SHARD, &after, &limit]).await?)
        };
        let rows = self.lease_pool.on_connection(LOOK_TIME, asking).await;
        if matches!(rows, Err(SqlError::Late)) {
            self.pool.close_idle();
        }
        let rows = rows?;
        let row = rows.first().ok_or_else(|| SqlError::Refused("it has no shard".to_owned()))?;
        let owner = Ownership::read(row, [3, 4, 5, 6])?;
        let (fence, log_seq, passed) = (get(row, 0)?, get::<i64>(row, 1)?, get::<i64>(row, 2)?);
        // What is older may be forgotten.
        let is_noted = after >= log_seq.saturating_sub(RECENT_WRITES);
        let recent = if is_noted { noted(&rows, passed)? } else { RecentWrites::Forgotten };
        let claim = LastClaim { by: get(row, 12)?, after: get(row, 13)?, at: get(row, 14)? };
        let look = DatabaseLook {
            fence,
            claim,
            log_seq,
            passed,
            closed: get(row, 11)?,
            owner: owner.name.clone(),
            is_free: false,
            recent,
        };
        Ok((look, owner))
    }
}

/// What writes did, by the rows of a look.
fn noted(rows: &[Row], passed: i64) -> Result<RecentWrites, SqlError> {
    let mut notes: Vec<(i64, Option<RecentEntry>)> = Vec::with_capacity(rows.len());
    for row in rows {
        let Some(write) = get::<Option<i64>>(row, 7)? else { continue };
        let number: i16 = get(row, 8)?;
        let class = u8::try_from(number).ok().and_then(Class::numbered);
        let value = get::<Option<&[u8]>>(row, 10)?.map(Bytes::copy_from_slice);
        let key: Vec<u8> = get(row, 9)?;
        // A class that this program does not know may be one that a newer one has in memory.
        let entry = class.filter(|_| number != READ_ANEW).map(|class| ((class, key), value));
        notes.push((write, entry));
    }
    let mut reached = passed;
    if rows.len() >= NOTES
        && let Some((last, _)) = notes.last()
    {
        // The last write may have more.
        let last = *last;
        notes.retain(|(write, _)| *write < last);
        reached = last.saturating_sub(1);
    }
    let entries: Option<Vec<(i64, RecentEntry)>> =
        notes.into_iter().map(|(write, entry)| Some((write, entry?))).collect();
    Ok(match entries {
        Some(entries) => RecentWrites::Noted { entries, reached },
        None => RecentWrites::Forgotten,
    })
}
