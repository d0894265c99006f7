//! Writes: each is one transaction that moves its shard on by one position, under the fence of this node. The
//! position settles what became of a commit whose answer was lost.

use super::ask::{Parameters, get};
use super::connect::SqlError;
use super::session::{ANSWER_TIME, SHARD, SessionShared};
use super::statements::{
    ADVANCE, BEGIN, CLEAR, CLEAR_ALL, CLOSE, COMMIT, FORGET_RECENT, NOTE_RECENT, PASS, PUT,
    REACHED, REMOVE, ROLLBACK,
};
use crate::engine::{Class, Writes};
use deadpool_postgres::Object;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The bytes that one statement sets, about.
const PUT_BYTES: usize = 16 << 20;
/// How long after the first failure it is tried to learn what became of a write, and to make it again; less than a
/// lease lasts.
const SETTLE_TIME: Duration = Duration::from_secs(10);
/// The pauses between tries: the first, and the longest.
const SETTLE_PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// The last writes of which is noted what they did to what gateways have in memory. Who follows and is further
/// behind reads everything anew; so it may be raised, and never lowered.
pub(super) const RECENT_WRITES: i64 = 16_384;
/// They are forgotten so many at a time.
const FORGET_EVERY: i64 = 256;
/// The most notes of one write; one that has more is noted by [`READ_ANEW`] alone.
pub(super) const RECENT_ENTRIES: usize = 1024;
/// The class of a note that says that everything is to be read anew; no class has the number.
pub(super) const READ_ANEW: i16 = 0;
/// How long one transaction may take.
const WRITE_TIME: Duration = Duration::from_secs(60);

/// Where the writes of a node stand.
#[derive(Debug, Clone, Copy)]
pub(super) struct WritePosition {
    pub(super) fence: i64,
    /// The last write.
    pub(super) log_seq: i64,
}

/// What a write removes.
pub(super) enum Removal {
    Nothing,
    Entries {
        classes: Vec<i16>,
        keys: Vec<Vec<u8>>,
    },
    /// The first entries of a range, to an end or without one.
    First {
        class: i16,
        from: Vec<u8>,
        to: Option<Vec<u8>>,
        limit: i64,
    },
}

/// Entries that one statement sets.
#[derive(Default)]
struct Puts {
    classes: Vec<i16>,
    keys: Vec<Vec<u8>>,
    values: Vec<Vec<u8>>,
}

/// What a write does to entries that gateways have in memory ([`Class::IN_MEMORY`]).
#[derive(Default)]
struct RecentNotes {
    classes: Vec<i16>,
    keys: Vec<Vec<u8>>,
    /// `None` where an entry is removed.
    values: Vec<Option<Vec<u8>>>,
}

impl RecentNotes {
    /// That everything is to be read anew.
    fn read_anew() -> Self {
        Self { classes: vec![READ_ANEW], keys: vec![Vec::new()], values: vec![None] }
    }

    fn of(writes: &Writes) -> Self {
        let mut notes = Self::default();
        for ((class, key), value) in writes {
            // The log loses its oldest epochs without anybody's memory being another.
            let is_noted = class.is_in_memory() && (*class != Class::Log || value.is_some());
            if !is_noted {
                continue;
            }
            if notes.keys.len() >= RECENT_ENTRIES {
                return Self::read_anew();
            }
            notes.classes.push(number(*class));
            notes.keys.push(key.clone());
            notes.values.push(value.clone());
        }
        notes
    }
}

/// A write.
pub(super) struct WriteBatch {
    removal: Removal,
    puts: Vec<Puts>,
    recent: RecentNotes,
}

/// A class as the tables have it.
pub(super) fn number(class: Class) -> i16 {
    i16::from(class as u8)
}

impl WriteBatch {
    /// Sets and removes entries.
    pub(super) fn of(writes: Writes) -> Self {
        let recent = RecentNotes::of(&writes);
        let (mut classes, mut keys) = (Vec::new(), Vec::new());
        let (mut puts, mut last, mut bytes) = (Vec::new(), Puts::default(), 0_usize);
        for ((class, key), value) in writes {
            let Some(value) = value else {
                classes.push(number(class));
                keys.push(key);
                continue;
            };
            bytes = bytes.saturating_add(value.len());
            last.classes.push(number(class));
            last.keys.push(key);
            last.values.push(value);
            if bytes >= PUT_BYTES {
                puts.push(std::mem::take(&mut last));
                bytes = 0;
            }
        }
        if !last.keys.is_empty() {
            puts.push(last);
        }
        let is_nothing = keys.is_empty();
        let removal =
            if is_nothing { Removal::Nothing } else { Removal::Entries { classes, keys } };
        Self { removal, puts, recent }
    }

    /// Removes the entries of a class.
    pub(super) fn removing(removal: Removal, class: Class) -> Self {
        let is_in_memory = class.is_in_memory();
        let recent = if is_in_memory { RecentNotes::read_anew() } else { RecentNotes::default() };
        Self { removal, puts: Vec::new(), recent }
    }

    /// Whether it does nothing.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self.removal, Removal::Nothing) && self.puts.is_empty()
    }
}

impl SessionShared {
    /// Makes a write after `position`, once; how many entries it removed, where that is known. What it says
    /// when it returns is certain: an error leaves it open only where the database cannot be reached.
    pub(super) async fn write(
        &self,
        position: WritePosition,
        batch: &WriteBatch,
    ) -> Result<Option<u64>, SqlError> {
        self.check_lease()?;
        let (mut failed, mut pause) = (None, SETTLE_PAUSES.0);
        loop {
            let error = match self.write_once(position, batch).await {
                Ok(removed) => return Ok(Some(removed)),
                Err(error) => error,
            };
            if !(error.is_passing() || matches!(error, SqlError::Fenced)) {
                return Err(error);
            }
            let since = *failed.get_or_insert_with(Instant::now);
            // Nothing is written again before it is known that it was not written.
            loop {
                if since.elapsed() > SETTLE_TIME {
                    return Err(error);
                }
                match self.reached(position.fence).await {
                    Ok(reached) if reached == position.log_seq.saturating_add(1) => {
                        return Ok(None);
                    }
                    Ok(reached) if reached == position.log_seq => break,
                    Ok(_) => return Err(SqlError::Lost),
                    Err(other) if !other.is_passing() => return Err(other),
                    Err(_) => {}
                }
                sleep(pause).await;
                pause = pause.saturating_mul(2).min(SETTLE_PAUSES.1);
            }
            self.check_lease()?;
        }
    }

    async fn write_once(
        &self,
        position: WritePosition,
        batch: &WriteBatch,
    ) -> Result<u64, SqlError> {
        let writing = async |client: &Object| transaction(client, position, batch).await;
        self.pool.on_connection(WRITE_TIME, writing).await
    }

    /// The last position of the shard, after a write that may be under way; an error where another node has it.
    pub(super) async fn reached(&self, fence: i64) -> Result<i64, SqlError> {
        let rows = self.rows(REACHED, &[&SHARD]).await?;
        match rows.first() {
            Some(row) if get::<i64>(row, 0)? == fence => get(row, 1),
            _ => Err(SqlError::Fenced),
        }
    }

    /// Waits until everything up to `position` is durable; epochs up to the write `closed` are closed. An error where
    /// not all of it is there.
    pub(super) async fn pass(&self, position: WritePosition, closed: i64) -> Result<(), SqlError> {
        self.until_updated(position, Some(closed)).await
    }

    /// Closes epochs up to `position`, which is durable. An error where not all of it is there.
    pub(super) async fn close_epochs(&self, position: WritePosition) -> Result<(), SqlError> {
        self.until_updated(position, None).await
    }

    async fn close_once(
        &self,
        WritePosition { fence, log_seq }: WritePosition,
    ) -> Result<u64, SqlError> {
        let closing = async |client: &Object| {
            let close = client.prepare_cached(CLOSE).await?;
            let updating = async { client.execute(&close, &[&SHARD, &fence, &log_seq]).await };
            let (begun, closed, committed) = tokio::join!(
                biased;
                client.batch_execute(BEGIN),
                updating,
                client.batch_execute(COMMIT),
            );
            begun?;
            committed?;
            Ok(closed?)
        };
        self.pool.on_connection(ANSWER_TIME, closing).await
    }

    /// Passes the barrier with what is `closed`, or closes all, until that is answered: either may be done again. An
    /// error where the shard is not at `position`.
    async fn until_updated(
        &self,
        position: WritePosition,
        closed: Option<i64>,
    ) -> Result<(), SqlError> {
        let WritePosition { fence, log_seq } = position;
        let (mut failed, mut pause) = (None, SETTLE_PAUSES.0);
        loop {
            let updated = match closed {
                Some(closed) => self.execute(PASS, &[&SHARD, &fence, &log_seq, &closed]).await,
                None => self.close_once(position).await,
            };
            match updated {
                Ok(1) => return Ok(()),
                Ok(_) => {
                    self.reached(fence).await?;
                    return Err(SqlError::Lost);
                }
                Err(error) => {
                    let since = *failed.get_or_insert_with(Instant::now);
                    if !error.is_passing() || since.elapsed() > SETTLE_TIME {
                        return Err(error);
                    }
                }
            }
            sleep(pause).await;
            pause = pause.saturating_mul(2).min(SETTLE_PAUSES.1);
        }
    }
}

/// One transaction: its statements go out together, and its commit once it is known that the fence held.
async fn transaction(
    client: &Object,
    WritePosition { fence, log_seq }: WritePosition,
    batch: &WriteBatch,
) -> Result<u64, SqlError> {
    let advance = client.prepare_cached(ADVANCE).await?;
    let mut puts = batch.puts.iter();
    let first = puts.next();
    let put = match first {
        Some(_) => Some(client.prepare_cached(PUT).await?),
        None => None,
    };
    let (text, parameters): (&str, Parameters<'_>) = match &batch.removal {
        Removal::Nothing => ("", &[]),
        Removal::Entries { classes, keys } => (REMOVE, &[&SHARD, classes, keys]),
        Removal::First { class, from, to: Some(to), limit } => {
            (CLEAR, &[&SHARD, class, from, limit, to])
        }
        Removal::First { class, from, to: None, limit } => {
            (CLEAR_ALL, &[&SHARD, class, from, limit])
        }
    };
    let remove = match text {
        "" => None,
        text => Some(client.prepare_cached(text).await?),
    };
    let advancing = async { client.execute(&advance, &[&SHARD, &fence, &log_seq]).await };
    let removing = async {
        match &remove {
            Some(statement) => client.execute(statement, parameters).await,
            None => Ok(0),
        }
    };
    let putting = async {
        match (&put, first) {
            (Some(statement), Some(Puts { classes, keys, values })) => {
                client.execute(statement, &[&SHARD, classes, keys, values]).await
            }
            _ => Ok(0),
        }
    };
    let RecentNotes { classes: of, keys: at, values: now } = &batch.recent;
    let noted = match of.is_empty() {
        true => None,
        false => Some(client.prepare_cached(NOTE_RECENT).await?),
    };
    let next = log_seq.saturating_add(1);
    let noting = async {
        match &noted {
            Some(statement) => client.execute(statement, &[&SHARD, &next, of, at, now]).await,
            None => Ok(0),
        }
    };
    // In this order, each behind the other on one connection.
    let (begun, advanced, removed, set, noted) = tokio::join!(
        biased;
        client.batch_execute(BEGIN),
        advancing,
        removing,
        putting,
        noting,
    );
    begun?;
    if advanced? != 1 {
        client.batch_execute(ROLLBACK).await?;
        return Err(SqlError::Fenced);
    }
    let removed = removed?;
    set?;
    noted?;
    if let Some(statement) = &put {
        for Puts { classes, keys, values } in puts {
            client.execute(statement, &[&SHARD, classes, keys, values]).await?;
        }
    }
    if next % FORGET_EVERY == 0 {
        let forget = client.prepare_cached(FORGET_RECENT).await?;
        client.execute(&forget, &[&SHARD, &next.saturating_sub(RECENT_WRITES)]).await?;
    }
    client.batch_execute(COMMIT).await?;
    Ok(removed)
}
