//! One feed's round: fetch, unchanged gate, judgement, commit.

use super::PollSettings;
use super::allowance::Allowances;
use super::attempts::Attempts;
use super::callbacks::EndingCallbacks;
use super::decide::DecisionContext;
use super::decision::{DecisionBasis, decide_and_commit, evict_surplus};
use super::error::RoundError;
use super::feeds::FeedTable;
use super::host_queue::HostQueue;
use super::judge::{DocumentJudge, Judged};
use super::memory::Memory;
use super::overlap::Turnover;
use super::schedule::describe_duration;
use super::scheduler::SLICE;
use super::sharing;
use super::silence::SilenceWatch;
use super::turns::Turns;
use arc_swap::ArcSwap;
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tidegate_core::clock::Clock;
use tidegate_core::model::{
    EventKind, FeedRecord, FeedState, Hold, Revision, ShownAddress, Tick, Time,
};
use tidegate_core::sup::{SupAnnouncement, in_link};
use tidegate_core::websub::{Discovery, HubLinks};
use tidegate_judge::probe::ProbeScope;
use tidegate_net::fetch::{
    Fetch, FetchAnswer, FetchError, Fetched, FetchedDocument, LeadScope, PauseRequest, Services,
    read_url,
};
use tidegate_status::{FinishedPoll, ParsedNote, PollEnding};
use tidegate_store::{Store, StoreError};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;
use tracing::{Instrument as _, debug_span};
use url::Url;

/// What all rounds share.
pub struct PollContext {
    pub store: Arc<Store>,
    pub clock: Arc<dyn Clock>,
    pub judge: Arc<dyn DocumentJudge>,
    /// How feeds are polled, and the client; they change when the configuration is read again.
    pub settings: Arc<ArcSwap<PollSettings>>,
    pub services: ArcSwap<Services>,
    /// What is known of each feed, those that are paused included.
    pub table: FeedTable,
    /// The callbacks of subscriptions that are being ended.
    pub ending: EndingCallbacks,
    /// The turns of judgements.
    pub turns: Turns,
    /// The lines of hosts.
    pub hosts: Arc<HostQueue>,
    /// How many SUP documents may be asked for beside those that are.
    pub documents: Semaphore,
    /// How many pages of items may be asked for beside those that are.
    pub pages: Semaphore,
    /// What was asked about missing items within the hour.
    pub allowances: Mutex<Allowances>,
    /// The marks of large documents.
    pub attempts: Attempts,
    /// What decisions are made with.
    pub decisions: DecisionContext,
    /// Stops polling.
    pub cancel: CancellationToken,
    /// Whether other gateways may have polled the feeds that are here.
    pub silence: SilenceWatch,
    /// What is done aside from polls.
    pub tasks: TaskTracker,
    /// Ends that, wherever it is: polling waits for it no longer.
    pub abandon: CancellationToken,
}

/// A task aside from polls, which is given up when this is dropped.
pub struct TaskAside {
    pub(super) task: JoinHandle<()>,
    pub(super) _cancel: DropGuard,
}

impl TaskAside {
    pub fn is_over(&self) -> bool {
        self.task.is_finished()
    }
}

impl PollContext {
    /// The client, for documents.
    pub fn fetch(&self) -> Fetch {
        self.services.load().fetch.clone()
    }

    /// Which addresses a feed may have and lead to: also by the list that added it, since one at a public address must not
    /// choose what is read behind the walls. The operator, and a request that leads to its site alone, need no list.
    pub async fn leads_of(&self, feed: &FeedRecord) -> Result<LeadScope, StoreError> {
        let leads = LeadScope::of_feed(feed);
        let Some(list) = feed.deciding_list().filter(|_| feed.on_demand.is_none()) else {
            return Ok(leads);
        };
        let feeds = self.store.feed_list().await?;
        Ok(match feeds.get(list).filter(|list| list.has_upstream()) {
            Some(list) => leads.added_by(list),
            None => leads,
        })
    }

    /// Whether the store takes in what comes of a request, and this gateway is known to live.
    pub fn is_open(&self) -> bool {
        self.store.condition().check_intake().is_ok() && self.may_poll()
    }

    /// Whether this gateway is known to live, where several poll.
    pub fn may_poll(&self) -> bool {
        self.store.gateways().is_none_or(|gateways| gateways.may_poll())
    }

    /// Looks whether this gateway was silent, where several poll: whether there is a silence to deal with. `None`: it may
    /// not poll.
    pub fn look(&self, now: Instant) -> Option<bool> {
        let Some(gateways) = self.store.gateways() else { return Some(false) };
        let may_begin = gateways.may_poll();
        let is_outdated = self.silence.look(now, may_begin, || gateways.live().len() > 1);
        may_begin.then_some(is_outdated)
    }

    /// What is remembered may be written down for as long as this answers the same number.
    pub fn writing_term(&self) -> Option<u64> {
        match self.store.gateways() {
            Some(_) => self.silence.term().filter(|_| self.may_poll()),
            None => Some(0),
        }
    }

    /// Waits until it is open.
    pub async fn until_open(&self) {
        while !self.is_open() {
            sleep(SLICE).await;
        }
    }

    /// Does something aside from polls, until that is given up or polling stops.
    pub fn spawn_aside<T: Future<Output = ()> + Send + 'static>(
        &self,
        task: impl FnOnce(CancellationToken) -> T,
    ) -> TaskAside {
        let cancel = self.cancel.child_token();
        TaskAside { task: self.spawn(task(cancel.clone())), _cancel: cancel.drop_guard() }
    }

    /// Does something aside from polls, for as long as polling waits for it.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        // In a box, so that it is there once.
        let (abandon, task) = (self.abandon.clone(), Box::pin(task));
        self.tasks.spawn(async move {
            abandon.run_until_cancelled(task).await;
        })
    }
}

/// Why something came to nothing that panicked.
pub const BROKE_OFF: &str = "its task broke off";

/// What comes of work that may panic, or else what takes its place.
pub async fn catch_panic<T>(work: impl Future<Output = T>, broke_off: impl FnOnce() -> T) -> T {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| broke_off())
}

/// What comes of a request beside polls. That it panics is a defect like others.
pub async fn unless_it_breaks<T>(
    work: impl Future<Output = Result<T, RoundError>>,
) -> Result<T, RoundError> {
    catch_panic(work, || Err(RoundError::Defect(BROKE_OFF.to_owned()))).await
}

/// What came of a round that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollResult {
    /// What is told of it; when it began and how long it took is said by who made it.
    pub poll: FinishedPoll,
    /// When the publisher had answered: the interval until the next poll counts from then, however long what it
    /// answered took to store.
    pub answered: Time,
    /// Why a document is held back, if one is.
    pub held: Option<String>,
    /// When something that is pending can be decided.
    pub look_again: Option<Time>,
    /// The feed's tick.
    pub until: Option<Tick>,
    /// What the document is like, where one was read.
    pub document: Option<ParsedNote>,
    /// Where the feed says that its changes are announced, and which addresses that may lead to: nowhere (`Some(None)`), or nothing
    /// about it (`None`).
    pub announced: Option<Option<(SupAnnouncement, LeadScope)>>,
    /// Which hub tells of it, likewise.
    pub hub: Option<Option<Discovery>>,
    /// What a host asked for in answer to a further request.
    pub pause: Option<PauseRequest>,
    /// Whether the publisher was not asked: its answer to a reader's request was read instead.
    pub is_handed: bool,
}

/// A judgement, and what the store has of the feed then.
pub(super) struct CommitProgress {
    pub(super) judged: Judged,
    pub(super) counts: BTreeMap<EventKind, u32>,
    rewritten: u32,
    /// The feed as it was judged over.
    before: Option<FeedState>,
    /// The feed as it is afterwards, where anything was committed.
    pub(super) after: Option<FeedState>,
    /// What a host asked for in answer to what was asked beside the document.
    pub(super) pause: Option<PauseRequest>,
}

/// Makes one round of a feed and leaves what it learned in `memory`.
pub async fn round(
    context: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    memory: &mut Memory,
    asked_for: bool,
    cancel: &CancellationToken,
) -> Result<PollResult, RoundError> {
    let state = context.store.state(&feed.name).await?;
    let mut request = memory.request(feed, state.as_ref(), asked_for, context.clock.now());
    request.leads = context.leads_of(feed).await?;
    let asked_at = context.clock.now();
    // Only what is asked for is given up: a commit that has begun is carried through.
    let fetched = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(RoundError::Cancelled),
        fetched = context.fetch().oneshot(request).instrument(debug_span!("fetch")) => fetched,
    };
    let fetched = fetched?;
    // The observation is made when the answer is there, which may be long after the question.
    let now = context.clock.now();
    let known = memory.prints(&feed.url, state.as_ref()).map(|prints| prints.body);
    match (fetched.answer.clone(), state) {
        // Seeing a held document again is what confirms it, the same bytes above all.
        (FetchAnswer::Document(document), state)
            if document.delta || is_held(state.as_ref()) || known != Some(document.prints.body) =>
        {
            // What most polls do not come to is kept out of what each of them moves about.
            let times = (asked_at, now);
            Box::pin(judged(context, feed, memory, &fetched, document, state.as_ref(), times)).await
        }
        (answer, Some(state)) => {
            let wire = match &answer {
                FetchAnswer::Document(document) => Some(document.prints.wire),
                FetchAnswer::NotModified | FetchAnswer::Same => None,
            };
            unchanged(context, feed, memory, &fetched, wire, &state, (asked_at, now)).await
        }
        // Nothing is known that could be unchanged, and nothing was claimed to be in the request.
        (_, None) => Err(FetchError::Unasked304.into()),
    }
}

/// Whether a document is held back: the next one is judged even if it is the same, since it is by
/// being seen again that a held document is confirmed.
fn is_held(state: Option<&FeedState>) -> bool {
    state.is_some_and(|state| state.hold.is_some())
}

/// The publisher has nothing new; what is pending may be decided all the same.
async fn unchanged(
    context: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    memory: &mut Memory,
    fetched: &Fetched,
    wire: Option<u128>,
    state: &FeedState,
    (asked_at, now): (Time, Time),
) -> Result<PollResult, RoundError> {
    let same = memory.seen_again(state, wire);
    let quiet = match fetched.answer {
        FetchAnswer::NotModified => PollEnding::NotModified,
        FetchAnswer::Same | FetchAnswer::Document(_) => PollEnding::Unchanged,
    };
    let mut found = PollResult {
        held: state.hold.as_ref().map(Hold::describe),
        look_again: state.next_decision_at.map(|at| context.decisions.by_wall_clock(at, now)),
        until: state.tick,
        announced: may_announce(context, fetched, fetched.announced.clone()).map(Some),
        // A hub alone would be taken for another topic, where the document names its own address.
        hub: match hub(feed, fetched, &HubLinks::default()) {
            _ if is_secret(feed) => Some(None),
            found => found.filter(|_| fetched.links.own.is_some()).map(Some),
        },
        ..PollResult::nothing(quiet, fetched, now)
    };
    let ripe = state.next_decision_at.is_some_and(|at| at <= context.decisions.running.now());
    if let Some(same) = same.filter(|_| ripe) {
        let basis = DecisionBasis { asked_at: Some(asked_at), ..DecisionBasis::unsettled() };
        let decided = decide_and_commit(context, feed, now, basis, move |judge, round, _| {
            let verdict = judge.look_again(round, same)?;
            Ok(Judged { verdict, full: true, ..Judged::default() })
        });
        let settled = Box::pin(decided).await?;
        if settled.after.is_some() {
            memory.committed(settled.revision());
        }
        found.apply_commit(settled, &context.decisions, quiet);
    }
    memory.observed(found.poll.outcome == PollEnding::Changed, Some(state), now);
    memory.answered(fetched, memory.last_was_full(), now);
    Ok(found)
}

/// The publisher has a document that was not judged yet.
async fn judged(
    context: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    memory: &mut Memory,
    fetched: &Fetched,
    document: FetchedDocument,
    state: Option<&FeedState>,
    (asked_at, now): (Time, Time),
) -> Result<PollResult, RoundError> {
    let (prints, delta) = (document.prints, document.delta);
    let mut settled = sharing::judge_and_commit(context, feed, (asked_at, now), document).await?;
    if settled.after.is_some() {
        evict_surplus(context, feed, now, &mut settled).await?;
    }
    let full = settled.judged.full && !delta;
    // A delta is of new items alone.
    let turnover = settled.turnover().filter(|_| !delta);
    if let Some(turnover) = turnover {
        memory.turned_over(turnover, now);
    }
    memory.observed(settled.is_shown(), state, now);
    memory.asked_by_document(std::mem::take(&mut settled.judged.hints), now);
    memory.judged(prints, full, delta || settled.judged.lacking, settled.revision());
    memory.compare_dates(&fetched.validators, settled.judged.newest);
    memory.answered(fetched, full, now);
    // The header goes before the element (SUP section 6).
    let element = settled.judged.sup.take();
    let element = || element.and_then(|href| in_link(&href, &fetched.final_url));
    let place = may_announce(context, fetched, fetched.announced.clone().or_else(element));
    let told_by = hub(feed, fetched, &std::mem::take(&mut settled.judged.hub));
    let mut found = PollResult {
        document: Some(ParsedNote {
            at: asked_at,
            entries: settled.judged.entries,
            partial: settled.judged.partial.take(),
            warnings: std::mem::take(&mut settled.judged.warnings),
        }),
        announced: if full || place.is_some() { Some(place) } else { None },
        hub: if full || told_by.is_some() || is_secret(feed) { Some(told_by) } else { None },
        ..PollResult::nothing(PollEnding::Unchanged, fetched, now)
    };
    found.pause = settled.pause.take().or(found.pause);
    found.poll.is_apart = turnover.is_some_and(Turnover::is_whole);
    found.poll.entries = found.document.as_ref().map(|document| document.entries);
    found.apply_commit(settled, &context.decisions, PollEnding::Unchanged);
    Ok(found)
}

/// Where an answer says that the feed's changes are announced, unless it may not lead there.
fn may_announce(
    context: &PollContext,
    fetched: &Fetched,
    place: Option<SupAnnouncement>,
) -> Option<(SupAnnouncement, LeadScope)> {
    let (leads, allow) = (&fetched.leads, &context.settings.load().allow_private);
    let is_admitted = |to: &Url| leads.admits(to, allow);
    let place = place.filter(|place| read_url(&place.document).as_ref().is_ok_and(is_admitted))?;
    Some((place, leads.clone()))
}

/// Whether the operator says that the address of a feed is secret, whatever address it gives itself.
fn is_secret(feed: &FeedRecord) -> bool {
    feed.options.secret == Some(true)
}

/// Which hub tells of the feed; none where it would have to be told a secret address, or that of a
/// feed that is secret. Its own address is believed within the part of the web that belongs to its
/// configured address, or to the one that answered.
fn hub(feed: &FeedRecord, fetched: &Fetched, elements: &HubLinks) -> Option<Discovery> {
    if fetched.links.hubs.is_empty() && elements.hubs.is_empty() {
        return None;
    }
    let scopes =
        [ProbeScope::from_feed_url(&feed.url), ProbeScope::from_feed_url(&fetched.final_url)];
    let belongs = |url: &Url| scopes.iter().flatten().any(|scope| scope.admits(url));
    let found = Discovery::from_links(&fetched.links, elements, &fetched.final_url, belongs)?;
    // A topic is told to the hub, which is somebody else's as a rule.
    let is_masked = ShownAddress::new(&found.topic, feed.options.secret).is_masked();
    (!is_secret(feed) && !is_masked).then_some(found)
}

/// The pause that a host asks for that takes no more requests for now, though it took this one.
pub(super) fn rate_pause(fetched: &Fetched) -> Option<PauseRequest> {
    let address = fetched.final_url.clone();
    fetched.rate_reset.map(|wait| PauseRequest { address, wait })
}

impl PollResult {
    /// A round in which nothing was found out but what stands around the answer.
    fn nothing(outcome: PollEnding, fetched: &Fetched, answered: Time) -> Self {
        let paced = fetched.rate_reset.map(describe_duration);
        let paced = paced.map(|wait| {
            format!("its host takes few requests: it said that it takes no more for {wait}")
        });
        let notes = fetched.notes.iter().cloned().chain(paced).collect();
        let poll = FinishedPoll::new(answered, outcome);
        Self {
            poll: FinishedPoll { bytes: fetched.wire_bytes, notes, ..poll },
            answered,
            held: None,
            look_again: None,
            until: None,
            document: None,
            announced: None,
            hub: None,
            pause: rate_pause(fetched),
            is_handed: fetched.is_handed,
        }
    }

    /// Whether something is missing whose own address may tell more, and nothing is held.
    pub fn has_missing(&self) -> bool {
        self.look_again.is_some() && self.held.is_none()
    }

    fn apply_commit(
        &mut self,
        settled: CommitProgress,
        decisions: &DecisionContext,
        quiet: PollEnding,
    ) {
        self.poll.outcome = if settled.is_shown() { PollEnding::Changed } else { quiet };
        self.poll.committed = settled.after.is_some();
        let state = settled.after.or(settled.before);
        let hold = state.as_ref().and_then(|state| state.hold.as_ref()).map(Hold::describe);
        let ripens = state.as_ref().and_then(|state| state.next_decision_at);
        let verdict = settled.judged.verdict;
        self.held = verdict.held.or(hold);
        let by_wall_clock = |at| decisions.by_wall_clock(at, self.answered);
        self.look_again = verdict.look_again.or(ripens.map(by_wall_clock));
        self.until = state.and_then(|state| state.tick);
        (self.poll.counts, self.poll.rewritten) = (settled.counts, settled.rewritten);
    }
}

impl CommitProgress {
    /// Nothing is committed yet.
    pub(super) fn new(judged: Judged, before: Option<FeedState>) -> Self {
        let (counts, rewritten) = (judged.verdict.counts(), judged.verdict.rewritten());
        Self { judged, counts, rewritten, before, after: None, pause: None }
    }

    /// The feed's revision now.
    pub(super) fn revision(&self) -> Revision {
        self.after.as_ref().or(self.before.as_ref()).map(|state| state.revision).unwrap_or_default()
    }

    /// Whether something that is shown is another.
    fn is_shown(&self) -> bool {
        let renders = |after: &FeedState| {
            let before = self.before.as_ref().map(|before| before.render_revision);
            before != Some(after.render_revision)
        };
        self.after.as_ref().is_some_and(|after| renders(after) || !self.counts.is_empty())
    }

    /// How much of the document was new, where that says something.
    fn turnover(&self) -> Option<Turnover> {
        let before = self.before.as_ref().filter(|_| self.judged.full)?;
        Turnover::between(before, self.after.as_ref()?, &self.counts)
    }
}

#[cfg(test)]
mod tests;
