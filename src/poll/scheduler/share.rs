//! The share of the feeds that this gateway polls, where several gateways poll those of one store: the scheduler
//! compares it with what the store says, again and again, and takes over and gives up whole shards.

use super::handover::LeavingShard;
use super::reach::ReachedPublishers;
use super::survey::{Survey, SurveyBasis};
use super::waiters::ShardWaiter;
use super::{PollScheduler, SLICE};
use crate::permit::{CommitPermit, PermitBasis};
use crate::places::{PollPlace, WaitingRoom};
use crate::polling::PollContext;
use crate::shards::shard_of;
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedRecord};
use tidegate_net::fetch::FetchLimits;
use tidegate_store::{FeedList, HeldShard, PollShards, Shard, Store, StoreError};
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinSet};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// How often it is looked at whether the shards are still confirmed.
const GUARD_EVERY: Duration = Duration::from_millis(100);
/// How often it is looked at which shards have feeds with subscriptions to hubs.
const HUBS_EVERY: Duration = Duration::from_secs(10);
/// How often the store is told of them though they are the same.
const TELL_EVERY: Duration = Duration::from_secs(3600);
/// How long the poll of a guest may take, what came of it stored: a fetch, and a while for the rest.
pub(super) const GUEST_TIME: Duration =
    FetchLimits::STANDARD.total.saturating_add(Duration::from_secs(5));
/// The longest time for which a feed that a request has just made is left to the gateway that was asked, which polls it
/// for the first time. That gateway may begin a bit later than this time does.
pub(super) const FIRST_POLL_ELSEWHERE: Duration =
    GUEST_TIME.saturating_add(Duration::from_secs(10));

/// A feed that is taken over later.
#[derive(Debug, Clone, Copy)]
pub(super) struct Postponement {
    /// When it is looked at again.
    pub(super) at: Instant,
    /// Until when its first poll by another gateway is waited for, where there may be one.
    pub(super) left_until: Option<Instant>,
}

/// The share of the feeds that this gateway polls.
pub(super) struct PolledShare {
    pub(super) shards: Arc<PollShards>,
    changes: watch::Receiver<u64>,
    /// The shards whose feeds are here, with their fences.
    pub(super) taken: BTreeMap<Shard, i64>,
    /// The shards that are being given back.
    pub(super) leaving: BTreeMap<Shard, LeavingShard>,
    /// Feeds that are polled here once, for who added them, though their shard is another gateway's, until what came
    /// of it is stored; and when that began.
    pub(super) guests: BTreeMap<FeedName, Instant>,
    /// Feeds that are taken over later.
    pub(super) postponed: BTreeMap<FeedName, Postponement>,
    /// Callers that wait for shards.
    pub(super) waiters: VecDeque<ShardWaiter>,
    /// The feeds as they were when they were last compared; where another gateway writes the store.
    pub(super) list: Option<Arc<FeedList>>,
    surveys: JoinSet<Result<Survey, StoreError>>,
    /// Records that were put, or removed, while a survey is made that may not have seen that.
    pub(super) meanwhile: BTreeMap<FeedName, Option<Arc<FeedRecord>>>,
    /// When it is compared again.
    compare_at: Instant,
    /// When it is looked at how far the shards are that are being given back.
    pub(super) give_back_at: Instant,
    /// Not before then, because the last survey failed.
    survey_at: Instant,
    hubs_at: Instant,
    /// The shards that the store was last asked to keep here, and when it is asked again.
    kept: BTreeSet<Shard>,
    tell_at: Instant,
    /// Cancels what is in flight once the shards were not confirmed for too long.
    rounds: CancellationToken,
    /// Which publishers are reached from here.
    pub(super) reach: ReachedPublishers,
    guards: JoinSet<()>,
    /// Where errands wait for the gateway that writes.
    room: Arc<WaitingRoom>,
    freed: mpsc::UnboundedReceiver<Id>,
    /// Errands in flight that have given their places back.
    pub(super) placeless: HashSet<Id>,
}

/// What the share has to say to the scheduler.
pub(super) enum ShareEvent {
    /// The store says that it is another one.
    Changed,
    Surveyed(Result<Survey, String>),
    /// An errand needs its place no more.
    Freed(Id),
}

impl PolledShare {
    pub(super) fn new(shards: Arc<PollShards>) -> Self {
        let now = Instant::now();
        let rounds = CancellationToken::new();
        // Nothing is confirmed yet, as far as is known here.
        rounds.cancel();
        let (room, freed) = WaitingRoom::new();
        Self {
            changes: shards.changes(),
            shards,
            taken: BTreeMap::new(),
            leaving: BTreeMap::new(),
            guests: BTreeMap::new(),
            postponed: BTreeMap::new(),
            waiters: VecDeque::new(),
            list: None,
            surveys: JoinSet::new(),
            meanwhile: BTreeMap::new(),
            compare_at: now,
            give_back_at: now,
            survey_at: now,
            hubs_at: now,
            kept: BTreeSet::new(),
            tell_at: now,
            rounds,
            reach: ReachedPublishers::new(now),
            guards: JoinSet::new(),
            room,
            freed,
            placeless: HashSet::new(),
        }
    }

    /// Whether the feeds of a shard are polled here, and go on being.
    pub(super) fn takes(&self, shard: Shard) -> bool {
        self.taken.contains_key(&shard)
    }

    /// Whether another gateway writes the store.
    pub(super) fn is_follower(&self) -> bool {
        !self.shards.is_writer()
    }

    /// Whether a survey is being made.
    pub(super) fn is_surveyed(&self) -> bool {
        !self.surveys.is_empty()
    }

    /// Waits for what the share has to say; for ever, where there is none.
    pub(super) async fn next_event(share: &mut Option<Box<Self>>) -> ShareEvent {
        let Some(share) = share else { return std::future::pending().await };
        tokio::select! {
            Some(survey) = share.surveys.join_next() => ShareEvent::Surveyed(match survey {
                Ok(survey) => survey.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            }),
            Ok(()) = share.changes.changed() => ShareEvent::Changed,
            Some(id) = share.freed.recv() => ShareEvent::Freed(id),
            else => std::future::pending().await,
        }
    }

    /// Goes on with rounds once the shards are confirmed again.
    fn renew_rounds(&mut self, cancel: &CancellationToken) {
        if !self.rounds.is_cancelled() || cancel.is_cancelled() || !self.shards.may_go_on() {
            return;
        }
        self.rounds = cancel.child_token();
        let (rounds, shards) = (self.rounds.clone(), Arc::clone(&self.shards));
        while self.guards.try_join_next().is_some() {}
        // The scheduler may be waiting for the store, or be busy, when that time comes.
        self.guards.spawn(async move {
            while shards.may_go_on() && !rounds.is_cancelled() {
                sleep(GUARD_EVERY).await;
            }
            rounds.cancel();
        });
    }

    /// Begins a survey of what is to be taken over, unless one is being made.
    fn begin_survey(&mut self, held: &BTreeMap<Shard, HeldShard>, store: Arc<dyn Store>) {
        let gained = held.iter().filter(|(shard, held)| !held.is_leaving && !self.takes(**shard));
        let gained: BTreeMap<Shard, i64> =
            gained.map(|(shard, held)| (*shard, held.fence)).collect();
        let now = Instant::now();
        let due = self.postponed.iter().filter(|(_, postponed)| postponed.at <= now);
        let postponed: BTreeSet<FeedName> = due.map(|(name, _)| name.clone()).collect();
        if gained.is_empty() && postponed.is_empty() && !self.is_follower() {
            return;
        }
        let basis = SurveyBasis {
            store,
            gained,
            postponed,
            taken: self.taken.keys().copied().collect(),
            old: self.list.clone(),
        };
        self.meanwhile.clear();
        self.surveys.spawn(basis.make());
    }

    /// The permit of what begins now of a feed. A guest's ends before its shard's gateway takes the feed over.
    fn permit(
        &self,
        name: &FeedName,
        shard: Option<Shard>,
        cancel: &CancellationToken,
    ) -> CommitPermit {
        let taken = shard.and_then(|shard| Some((shard, *self.taken.get(&shard)?)));
        let basis = match (taken, self.guests.get(name)) {
            (Some((shard, fence)), _) => PermitBasis::Fence(shard, fence),
            (None, Some(begun)) => PermitBasis::Until(*begun + GUEST_TIME),
            (None, None) => PermitBasis::Until(Instant::now()),
        };
        CommitPermit::new(Arc::clone(&self.shards), basis, cancel.clone())
    }

    /// The place of what begins now, which waits for another gateway in the end, or for none.
    fn place(&self) -> PollPlace {
        if self.is_follower() { PollPlace::new(&self.room) } else { PollPlace::default() }
    }

    /// Has it be compared with what the store says at the next opportunity.
    pub(super) fn compare_soon(&mut self) {
        self.compare_at = Instant::now();
    }

    /// A survey failed; it is made again soon.
    pub(super) fn put_off_survey(&mut self) {
        self.survey_at = Instant::now() + SLICE;
    }
}

impl PollScheduler {
    /// Whether other gateways over the same store live.
    pub(super) fn has_others(&self) -> bool {
        self.share.as_ref().is_some_and(|share| share.shards.gateways() > 1)
    }

    /// Whether anything may begin, where the store says so of the shards.
    pub(super) fn may_begin(&self) -> bool {
        self.share.as_ref().is_none_or(|share| share.shards.may_begin())
    }

    /// When it is looked at how far leaving shards are.
    pub(super) fn give_back_at(&self) -> Option<Instant> {
        let share = self.share.as_ref().filter(|share| !share.leaving.is_empty())?;
        Some(share.give_back_at)
    }

    /// Whether what polling remembers may be written.
    pub(super) fn may_write(&self) -> bool {
        self.share.as_ref().is_none_or(|share| share.shards.may_go_on())
    }

    /// Cancels what is in flight when polling stops, or may not go on.
    pub(super) fn round_token(&self) -> CancellationToken {
        let rounds = self.share.as_ref().map_or(&self.cancel, |share| &share.rounds);
        rounds.child_token()
    }

    /// Whether the feeds of a shard are polled here, where several gateways poll.
    pub(super) fn takes(&self, shard: Shard) -> bool {
        self.share.as_ref().is_some_and(|share| share.takes(shard))
    }

    /// What an errand of a feed is made with that begins now and ends with `cancel`.
    pub(super) fn context_for(
        &self,
        name: &FeedName,
        cancel: &CancellationToken,
    ) -> Arc<PollContext> {
        let Some(share) = &self.share else { return Arc::clone(&self.bench) };
        let shard = self.feeds.get(name).and_then(|feed| feed.shard);
        let (permit, place) = (share.permit(name, shard, cancel), share.place());
        Arc::new(PollContext { permit, place, ..PollContext::clone(&self.bench) })
    }

    /// Whether polling follows a record here.
    pub(super) fn is_for_here(&self, record: &FeedRecord) -> bool {
        let Some(share) = &self.share else { return true };
        let shard = shard_of(&record.url);
        match self.feeds.get(&record.name) {
            Some(feed) if feed.is_lost() => false,
            Some(feed) => share.takes(shard) || feed.shard == Some(shard),
            None => {
                let paused = self.paused.get(&record.name);
                share.takes(shard) || paused.is_some_and(|state| shard_of(&state.url) == shard)
            }
        }
    }

    /// The gateway that polls a shard instead of this one.
    pub(super) fn owner_of(&self, shard: Shard) -> Option<Arc<str>> {
        self.share.as_ref().and_then(|share| share.shards.owner(shard))
    }

    /// Follows what the store says of the shards.
    pub(super) fn follow_share(&mut self) {
        let Some(share) = &mut self.share else { return };
        share.shards.note_stop(self.bench.store.condition().stop.is_some());
        share.renew_rounds(&self.cancel);
        let now = Instant::now();
        share.reach.keep(&share.taken);
        share.shards.note_reach(share.reach.decide(now));
        let is_changed = share.changes.has_changed().unwrap_or(false);
        if is_changed || share.compare_at <= now {
            share.changes.mark_unchanged();
            share.compare_at = now + SLICE;
            self.compare_shards();
        }
        self.part_with_guests();
        self.give_back_shards();
        self.serve_waiters();
        self.report_hubs();
    }

    /// Compares the shards of which feeds are here with those that the store gives this gateway.
    fn compare_shards(&mut self) {
        let Some(share) = &mut self.share else { return };
        let held = share.shards.held();
        let is_held = |shard: &Shard, fence: i64, is_leaving: bool| {
            held.get(shard).is_some_and(|it| it.fence == fence && it.is_leaving == is_leaving)
        };
        let mut lost: BTreeSet<Shard> = BTreeSet::new();
        share.taken.retain(|shard, fence| {
            let stays = is_held(shard, *fence, false);
            if !stays && !is_held(shard, *fence, true) {
                lost.insert(*shard);
            }
            stays
        });
        share.leaving.retain(|shard, leaving| {
            let stays = is_held(shard, leaving.fence, true);
            if !stays && !leaving.is_ended() {
                lost.insert(*shard);
            }
            stays
        });
        let leave = held.iter().filter(|(shard, held)| {
            held.is_leaving && !share.leaving.contains_key(shard) && !lost.contains(shard)
        });
        let leave = leave.map(|(shard, it)| (*shard, it.fence)).collect();
        self.leave_shards(&leave);
        self.lose_shards(&lost);
        let store = Arc::clone(&self.bench.store);
        if let Some(share) = &mut self.share
            && !share.is_surveyed()
            && share.survey_at <= Instant::now()
        {
            share.begin_survey(&held, store);
        }
    }

    /// Tells the store which shards have feeds with subscriptions to hubs, which only the gateway that writes can
    /// poll: where that is this one, they are kept here.
    fn report_hubs(&mut self) {
        let Some(share) = &mut self.share else { return };
        let now = Instant::now();
        if now < share.hubs_at {
            return;
        }
        share.hubs_at = now + HUBS_EVERY;
        let subscribed = self.feeds.values().filter(|feed| feed.subscription.is_some());
        let shards: BTreeSet<Shard> = subscribed.filter_map(|feed| feed.shard).collect();
        if share.is_follower() {
            for shard in shards {
                share.shards.leave_to_writer(shard);
            }
        } else if shards != share.kept || share.tell_at <= now {
            share.tell_at = now + TELL_EVERY;
            // After this gateway's end they go to the next one that writes.
            shards.iter().for_each(|shard| share.shards.leave_to_writer(*shard));
            share.kept.clone_from(&shards);
            share.shards.keep(shards);
        }
    }
}
