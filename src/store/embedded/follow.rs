//! Following the writes of another gateway: what this one has in memory is what the other made durable.
//!
//! The gateway that writes notes, in each write's own transaction, what the write did to what gateways have in
//! memory ([`crate::engine::Class::IN_MEMORY`]). A look reads those notes behind the last one that it knows, up
//! to the last write that is durable, and shows them: states first, the epoch that announces them last. So a look costs
//! what changed, not what there is. It goes on where another gateway takes the database with all that is shown in it.
//! Where that is not certain, and where the notes do not reach back far enough, everything is read anew, which costs
//! what a start costs; meanwhile nothing is answered.
//!
//! Content is read from the database as it is asked for. Whoever writes keeps what records were before only for
//! readers in its own process. So a read is believed only where the feed's state in the database is still the one
//! that was pinned: it moves in the transaction that moves content. Otherwise it is made anew, or ends with
//! [`StoreError::Outdated`].

mod memory_change;
mod written_since;

use self::memory_change::{MemoryChange, opening};
use self::written_since::WrittenSince;
use super::forward::AskWriter;
use super::open::Found;
use super::read_turns::ReadTurns;
use super::reopen::Acknowledged;
use super::shared::StoreShared;
use super::{
    EmbeddedStore, OpenState, OpenStore, Records, StoreInner, StorePlace, Writer, inspect, open,
    read,
};
use crate::engine::RecordKey;
use crate::record::IdentityRecord;
use crate::{DatabaseOwner, Epoch, FeedList, StoreError, as_list, in_words};
use bytes::Bytes;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;
use tidegate_core::clock::Clock;
use tidegate_core::model::EndpointId;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How often the database is looked at while nobody asks.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How far apart looks for readers begin, so that many readers share one: a look takes as much of the processor as
/// some ten answers that are ready.
const LOOK_PACE: Duration = Duration::from_millis(4);
/// How long the database may be unseen before nothing is answered.
pub(super) const UNSEEN_LIMIT: Duration = Duration::from_secs(5);
/// The pause after a look that failed.
pub(super) const LOOK_PAUSE: Duration = Duration::from_millis(100);
/// The most readers that one look answers, and that wait for the next one.
const LOOK_READERS: usize = 4096;
/// The most looks in a row that show what one call asks for.
const LOOK_ROUNDS: usize = 64;
/// How often everything is read anew in a row, because it was overtaken.
const WHOLE_TRIES: usize = 3;
/// How far apart, while everything is read, what is written meanwhile is taken: at first, and at most.
const READ_PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(250));

/// What could not be done, in errors.
const FOLLOW: &str = "follow what another gateway writes";

/// An entry that a write set, or removed.
pub(crate) type RecentEntry = (RecordKey, Option<Bytes>);

/// What writes did to what gateways have in memory.
pub(crate) enum RecentWrites {
    /// All of it, each with its write, in their order, up to the write `reached`.
    Noted { entries: Vec<(i64, RecentEntry)>, reached: i64 },
    /// It is not known any more.
    Forgotten,
}

/// How the gateway that has a database took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastClaim {
    /// That gateway, and the one that had taken it before: numbers at random.
    pub(crate) by: i64,
    pub(crate) after: i64,
    /// The last write before it.
    pub(crate) at: i64,
}

/// What was seen of a database at one moment.
pub(crate) struct DatabaseLook {
    /// Raised whenever another gateway takes the database.
    pub(crate) fence: i64,
    /// How that was.
    pub(crate) claim: LastClaim,
    /// The last write, and the last one that is durable.
    pub(crate) log_seq: i64,
    pub(crate) passed: i64,
    /// The last write up to which epochs are closed: nothing comes into them any more.
    pub(crate) closed: i64,
    /// The gateway that has it, as it calls itself.
    pub(crate) owner: String,
    /// Whether its lease has run out or was given back.
    pub(crate) is_free: bool,
    pub(crate) recent: RecentWrites,
}

/// Nothing follows this write: a look behind it is the first of those that read everything anew.
pub(crate) const BEHIND_ALL: i64 = i64::MAX;

/// Looks at the database for what follows a write. Blocks.
pub(crate) type LookAt = dyn Fn(i64) -> Result<DatabaseLook, StoreError> + Send;

/// Asks for a look; answers whether there was one.
pub(super) type LookRequest = oneshot::Sender<bool>;

/// What is known of the gateway that is followed.
pub(super) struct Following {
    /// Asks the gateway that writes.
    pub(super) writer: Box<dyn AskWriter>,
    owner: RwLock<DatabaseOwner>,
    /// When the last look that succeeded was begun.
    seen: Mutex<Instant>,
    is_failing: AtomicBool,
}

impl Following {
    /// The gateway that has the database.
    pub(super) fn owner(&self) -> DatabaseOwner {
        self.owner.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why nothing is written here.
    pub(super) fn refusal(&self) -> StoreError {
        StoreError::Standby { owner: self.owner() }
    }

    /// For how long the database was not seen, where that is too long.
    pub(super) fn unseen(&self) -> Option<Duration> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        (seen > UNSEEN_LIMIT).then_some(seen)
    }

    /// An error where the database was not seen for too long.
    pub(super) fn check_seen(&self) -> Result<(), StoreError> {
        let error = |unseen: Duration| StoreError::Unseen { seconds: unseen.as_secs() };
        self.unseen().map_or(Ok(()), |unseen| Err(error(unseen)))
    }

    fn note(&self, name: &str, is_gone: bool) {
        let mut owner = self.owner.write().unwrap_or_else(PoisonError::into_inner);
        // Once nobody has it, the last one that had it is named.
        if !name.is_empty() && owner.name != name {
            name.clone_into(&mut owner.name);
        }
        owner.is_gone = is_gone;
    }

    /// Notes how a look went that was begun at `begun`.
    fn looked(&self, begun: Instant, done: &Result<(), StoreError>) {
        if done.is_ok() {
            *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = begun;
        }
        let was_failing = self.is_failing.swap(done.is_err(), Ordering::AcqRel);
        match done {
            Err(error) if !was_failing => {
                let error = in_words(error);
                tracing::warn!(%error, "the database that another gateway writes cannot be followed");
            }
            Ok(()) if was_failing => tracing::info!("the database is followed again"),
            _ => {}
        }
    }
}

/// Up to where a database is known.
#[derive(Clone, Copy)]
struct FollowedTo {
    /// Under which claim it is written.
    fence: i64,
    claim: LastClaim,
    /// The last write that is known.
    write: i64,
}

impl FollowedTo {
    /// Whether what is seen goes on from there: the same gateway has the database, or the next one took it with that
    /// write in it. Where a database went back, it is another claim, or one behind less.
    fn leads_to(&self, seen: &DatabaseLook) -> bool {
        let is_same = seen.fence == self.fence && seen.claim == self.claim;
        let is_next = seen.fence == self.fence.saturating_add(1)
            && seen.claim.after == self.claim.by
            && seen.claim.at >= self.write;
        (is_same || is_next) && seen.passed >= self.write
    }
}

/// Everything that a gateway has in memory, as of one write that is durable.
pub(crate) struct Followed {
    pub(crate) identity: IdentityRecord,
    found: Found,
    feeds: FeedList,
    at: FollowedTo,
    owner: DatabaseOwner,
    /// Epochs that are not closed yet, of writes that it has.
    open: Vec<(i64, Epoch)>,
}

/// Reads everything while another gateway writes: each entry as it is found, and over that what was written since
/// it was begun. That is one state once all that was written until the end is durable. Blocks.
pub(crate) fn read_followed(records: &Records, look: &LookAt) -> Result<Followed, StoreError> {
    let now = || look(BEHIND_ALL);
    for _ in 0..WHOLE_TRIES {
        let mut written = WrittenSince::new(&now()?);
        let Some((found, feeds)) = read_beside(records, look, &mut written)? else { continue };
        let end = now()?.log_seq;
        if let Some((change, seen, at)) = written.finish_at(end, records, look)? {
            let mut followed =
                followed((found, feeds), change, (at, seen.closed), (seen.owner, seen.is_free))?;
            // A feed that was purged meanwhile has left its marks by now.
            followed.found.floors = open::floors(records)?.0;
            return Ok(followed);
        }
    }
    let source = io::Error::other("it is written to faster than it is read");
    Err(StoreError::Io { doing: FOLLOW, source })
}

/// Reads each entry, and beside it takes what is written: notes of that are forgotten while much is read. `None` where
/// that is not known any more.
fn read_beside(
    records: &Records,
    look: &LookAt,
    written: &mut WrittenSince,
) -> Result<Option<(Found, FeedList)>, StoreError> {
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| Ok((inspect(records)?, as_list(read::feeds(records)?))));
        let mut pause = READ_PAUSES.0;
        while !reading.is_finished() {
            match written.read_notes(records, look) {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(None),
                // Notes are kept for longer than a failure or two.
                Err(error) if error.is_passing() => {}
                Err(error) => return Err(error),
            }
            std::thread::sleep(pause);
            pause = pause.saturating_mul(2).min(READ_PAUSES.1);
        }
        let source = || io::Error::other("the thread that reads it ended");
        let read = reading.join();
        read.unwrap_or_else(|_| Err(StoreError::Io { doing: FOLLOW, source: source() })).map(Some)
    })
}

fn followed(
    (mut found, mut feeds): (Found, FeedList),
    change: MemoryChange,
    (at, closed): (FollowedTo, i64),
    (name, is_gone): (String, bool),
) -> Result<Followed, StoreError> {
    let MemoryChange { states, feeds: listed, identity, list_writes, logged } = change;
    for (feed, head) in states {
        match head {
            Some(head) => drop(found.committed.insert(feed, head)),
            None => drop(found.committed.remove(&feed)),
        }
    }
    for (feed, record) in listed {
        match record {
            Some(record) => drop(feeds.insert(feed, Arc::new(record))),
            None => drop(feeds.remove(&feed)),
        }
    }
    found.list_writes = list_writes.unwrap_or(found.list_writes);
    let logged_last = logged.iter().map(|(_, epoch)| *epoch).max();
    found.sealed.0 = logged_last.unwrap_or_default().max(found.sealed.0);
    let open: Vec<(i64, Epoch)> = logged.into_iter().filter(|(write, _)| *write > closed).collect();
    // Only the last epoch may be open.
    if let Some(first) = open.iter().map(|(_, epoch)| *epoch).min() {
        found.sealed.0 = found.sealed.0.min(Epoch(first.0.saturating_sub(1)));
    }
    let identity = identity.or(found.identity.take()).ok_or_else(|| StoreError::Io {
        doing: FOLLOW,
        source: io::Error::other("that one has not begun to write yet"),
    })?;
    let owner = DatabaseOwner { name, is_gone };
    Ok(Followed { identity, found, feeds, at, owner, open })
}

/// Whether nothing is followed any more after an error, until the gateway is started again.
const fn ends_following(error: &StoreError) -> bool {
    matches!(error, StoreError::Damaged { .. } | StoreError::Format { .. })
}

/// Follows, on a thread of its own.
struct WriteFollower {
    records: Records,
    endpoint: EndpointId,
    look: Box<LookAt>,
    following: Arc<Following>,
    /// Up to where it is shown.
    at: FollowedTo,
    /// Whether another gateway took the database, and its program's tables were not compared with this one's yet.
    is_unchecked: bool,
    /// Epochs that are not closed yet, of writes that are shown.
    open: Vec<(i64, Epoch)>,
}

impl WriteFollower {
    /// Looks whenever somebody asks, and every now and then, until the store is closed.
    fn run(mut self, within: &Weak<StoreInner>, requests: &mpsc::Receiver<LookRequest>) {
        let mut begun = Instant::now();
        loop {
            let mut waiting = match requests.recv_timeout(LOOK_EVERY) {
                Ok(first) => vec![first],
                Err(RecvTimeoutError::Timeout) => Vec::new(),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            std::thread::sleep(LOOK_PACE.saturating_sub(begun.elapsed()));
            waiting.extend(requests.try_iter().take(LOOK_READERS));
            let Some(inner) = within.upgrade() else { return };
            begun = Instant::now();
            let done = inner.shared.health().and_then(|()| self.follow(&inner.shared));
            if let Err(error) = &done
                && ends_following(error)
            {
                inner.shared.end(self.records.engine().path(), error);
            }
            self.following.looked(begun, &done);
            for reply in waiting {
                let _ = reply.send(done.is_ok());
            }
        }
    }

    /// Shows what became durable until now.
    fn follow(&mut self, shared: &StoreShared) -> Result<(), StoreError> {
        let (mut change, mut at) = (MemoryChange::default(), self.at);
        for _ in 0..LOOK_ROUNDS {
            let mut seen = (self.look)(at.write)?;
            self.following.note(&seen.owner, seen.is_free);
            let recent = std::mem::replace(&mut seen.recent, RecentWrites::Forgotten);
            let RecentWrites::Noted { entries, reached } = recent else {
                return self.read_anew(shared);
            };
            if !at.leads_to(&seen) {
                return self.read_anew(shared);
            }
            self.check_tables(&at, &seen)?;
            change.apply_notes(&self.records, entries)?;
            at = FollowedTo { fence: seen.fence, claim: seen.claim, write: reached };
            if reached >= seen.passed {
                // At once: an epoch may announce what another round has read.
                change.show(shared, &mut self.open, seen.closed);
                self.at = at;
                return Ok(());
            }
        }
        self.read_anew(shared)
    }

    /// Compares the program's tables with those of a gateway that took the database, before anything that it wrote is
    /// shown: it changes them, if it does, before it writes. An error where they are another program's.
    fn check_tables(&mut self, at: &FollowedTo, seen: &DatabaseLook) -> Result<(), StoreError> {
        if seen.fence != at.fence && !std::mem::replace(&mut self.is_unchecked, true) {
            tracing::info!(owner = %seen.owner, "another gateway writes, and is followed");
        }
        if self.is_unchecked && seen.log_seq > seen.claim.at {
            (self.look)(BEHIND_ALL)?;
            self.is_unchecked = false;
        }
        Ok(())
    }

    /// Another gateway has the database and may lack what is shown, or too much was written. An error where what was
    /// shown is missing.
    fn read_anew(&mut self, shared: &StoreShared) -> Result<(), StoreError> {
        let mut followed = read_followed(&self.records, &*self.look)?;
        // The database may have lost that an epoch was closed that is told here already.
        let told = *shared.sealed.borrow();
        if followed.open.iter().any(|(_, epoch)| *epoch == told) {
            followed.open.retain(|(_, epoch)| *epoch > told);
            followed.found.sealed.0 = told;
        }
        let shown = Acknowledged::new(shared, self.endpoint.clone(), HashMap::new());
        if let Some(missing) = shown.missing(&followed.found, Some(&followed.identity)) {
            let what = format!("it went back behind what was shown: {missing}");
            return Err(self.records.damage(what));
        }
        let Followed { identity, found, feeds, at, owner, open } = followed;
        tracing::info!(owner = %owner.name, "what another gateway wrote was read anew");
        self.following.note(&owner.name, owner.is_gone);
        shared.list_writes.store(found.list_writes, Ordering::Release);
        shared.replace(found.committed, Some(feeds), opening(identity), found.sealed.0);
        self.open = open;
        self.at = at;
        self.is_unchecked = false;
        Ok(())
    }
}

impl EmbeddedStore {
    /// A store that another gateway writes, as it was found: it is read from here, and that one is asked to write.
    pub(crate) fn following(
        (records, followed): (Records, Followed),
        (look, writer): (Box<LookAt>, Box<dyn AskWriter>),
        place: Arc<dyn StorePlace>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let Followed { identity, found, feeds, at, owner, open } = followed;
        let (endpoint, sup_ids) = (identity.endpoint.clone(), identity.sup_ids);
        let heads = found.committed.into_iter();
        let heads = heads.map(|(feed, head)| (feed, super::published::Published::new(&head)));
        let opening = opening(identity);
        let shared = StoreShared::new(heads.collect(), opening, found.sealed.0, Arc::clone(&clock));
        shared.list_writes.store(found.list_writes, Ordering::Release);
        shared.set_list(feeds);
        let following = Arc::new(Following {
            writer,
            owner: RwLock::new(owner),
            seen: Mutex::new(Instant::now()),
            is_failing: AtomicBool::new(false),
        });
        let (sender, requests) = mpsc::sync_channel(LOOK_READERS);
        let writer = Writer::Elsewhere(sender);
        let inner = Arc::new(StoreInner {
            shared: Arc::new(shared),
            reads: ReadTurns::new(),
            blocks: true,
            open: RwLock::new(OpenState::Open(OpenStore {
                records: records.clone(),
                writer,
                place,
            })),
            is_closing: AtomicBool::new(false),
            committer: Mutex::default(),
            following: Some(Arc::clone(&following)),
            lease: None,
        });
        let within = Arc::downgrade(&inner);
        let whose = endpoint.clone();
        let is_unchecked = false;
        let follower =
            WriteFollower { records, endpoint: whose, look, following, at, is_unchecked, open };
        let thread = std::thread::Builder::new()
            .name("store-follower".to_owned())
            .spawn(move || follower.run(&within, &requests))
            .map_err(|source| StoreError::Io { doing: "start its thread", source })?;
        *inner.committer.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(Self { endpoint, sup_ids, clock, space: None, inner })
    }
}
