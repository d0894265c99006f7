//! One round of a feed: fetch, compare with the last document, judge, commit.

use super::decide::{
    CommitProgress, DecisionBasis, DecisionContext, decide_and_commit, evict_surplus,
};
use super::error::RoundError;
use super::feeds::FeedTable;
use super::host_queue::HostQueue;
use super::judge::Judged;
use super::memory::{FeedMemory, Turnover};
use super::permits::{Attempts, JudgePermits};
use super::poller::PollCommand;
use super::probe::Allowances;
use super::schedule::describe_duration;
use super::scheduler::{PollScheduler, SLICE};
use super::silence::SilenceWatch;
use super::subscribe::EndingCallbacks;
use super::{PollSettings, sharing};
use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tidegate_core::clock::Clock;
use tidegate_core::model::{FeedRecord, FeedState, Hold, ShownAddress, Tick, Time};
use tidegate_core::sup::{SupAnnouncement, in_link};
use tidegate_core::websub::{Discovery, HubLinks};
use tidegate_judge::probe::ProbeScope;
use tidegate_judge::record;
use tidegate_net::fetch::{
    Fetch, FetchAnswer, FetchError, Fetched, FetchedDocument, LeadScope, PauseRequest, Services,
    read_url,
};
use tidegate_status::{FinishedPoll, ParsedNote, PollEnding};
use tidegate_store::{Store, StoreError};
use tokio::sync::{Semaphore, mpsc};
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
    /// The settings and services (HTTP clients); replaced when the configuration is reloaded.
    pub settings: Arc<ArcSwap<PollSettings>>,
    pub services: ArcSwap<Services>,
    /// The polling state of each feed, paused ones included.
    pub table: FeedTable,
    /// Callbacks of subscriptions that are being ended.
    pub ending: EndingCallbacks,
    /// Limits the judgements that run at the same time.
    pub judge_permits: JudgePermits,
    /// The lines of hosts.
    pub hosts: Arc<HostQueue>,
    /// Limits the SUP documents read at the same time.
    pub documents: Semaphore,
    /// Limits the item pages that probes fetch at the same time.
    pub pages: Semaphore,
    /// The probes of the last hour.
    pub allowances: Mutex<Allowances>,
    /// The attempt marks of large documents.
    pub attempts: Attempts,
    /// The store, locks, clock and settings that decisions need.
    pub decisions: DecisionContext,
    /// The commands of the polling task, which ends when no handle to it is left.
    pub commands: mpsc::WeakSender<PollCommand>,
    /// Cancelled when polling stops.
    pub cancel: CancellationToken,
    /// Detects when other gateways may have polled the feeds of this one.
    pub silence: SilenceWatch,
    /// The tasks that run next to polls.
    pub tasks: TaskTracker,
    /// Cancelled when a stopping scheduler no longer waits for `tasks`.
    pub abandon: CancellationToken,
}

/// A task next to polls, cancelled when this is dropped.
pub struct BackgroundTask {
    pub(super) task: JoinHandle<()>,
    pub(super) _cancel: DropGuard,
}

impl PollContext {
    /// Returns the service that fetches documents.
    pub fn fetch(&self) -> Fetch {
        self.services.load().fetch.clone()
    }

    /// Returns the SSRF scope of a feed: what it and the list that added it may lead to. A list at a public address
    /// must not choose private ones. Feeds of the operator, and on-demand feeds, which only lead to their site, need no
    /// list.
    pub async fn lead_scope(&self, feed: &FeedRecord) -> Result<LeadScope, StoreError> {
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

    /// Whether the store accepts results and this gateway is known to live.
    pub fn is_open(&self) -> bool {
        self.store.condition().check_intake().is_ok() && self.may_poll()
    }

    /// Whether this gateway is known to live; always true for a single one.
    pub fn may_poll(&self) -> bool {
        self.store.gateways().is_none_or(|gateways| gateways.may_poll())
    }

    /// Checks for a silence of this gateway. Returns whether one has to be dealt with; `None` if it may not poll.
    pub fn check_silence(&self, now: Instant) -> Option<bool> {
        let Some(gateways) = self.store.gateways() else { return Some(false) };
        let may_begin = gateways.may_poll();
        let is_outdated = self.silence.check(now, may_begin, || gateways.live().len() > 1);
        may_begin.then_some(is_outdated)
    }

    /// Returns the term in which poll states may be written, as long as it stays the same; see [`SilenceWatch::term`].
    pub fn writing_term(&self) -> Option<u64> {
        match self.store.gateways() {
            Some(_) => self.silence.term().filter(|_| self.may_poll()),
            None => Some(0),
        }
    }

    /// Waits until [`Self::is_open`].
    pub async fn until_open(&self) {
        while !self.is_open() {
            sleep(SLICE).await;
        }
    }

    /// Has the polling task execute a command; no effect once it has ended.
    pub async fn command(&self, command: impl FnOnce(&mut PollScheduler) + Send + 'static) {
        if let Some(commands) = self.commands.upgrade() {
            let _ = commands.send(Box::new(command)).await;
        }
    }

    /// Runs a task next to polls until it is dropped or polling stops.
    pub fn spawn_background<T: Future<Output = ()> + Send + 'static>(
        &self,
        task: impl FnOnce(CancellationToken) -> T,
    ) -> BackgroundTask {
        let cancel = self.cancel.child_token();
        BackgroundTask { task: self.spawn(task(cancel.clone())), _cancel: cancel.drop_guard() }
    }

    /// Runs a task next to polls; a stopping scheduler waits for it for a limited time.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        // Boxed, so that the wrapper does not hold the future twice.
        let (abandon, task) = (self.abandon.clone(), Box::pin(task));
        self.tasks.spawn(async move {
            abandon.run_until_cancelled(task).await;
        })
    }
}

/// The shown failure of a task that panicked.
pub const BROKE_OFF: &str = "its task broke off";

/// Runs `work`; if it panics, returns the value of `broke_off`. An async function would hold the future of `work`
/// twice.
pub fn catch_panic<T>(
    work: impl Future<Output = T>,
    broke_off: impl FnOnce() -> T,
) -> impl Future<Output = T> {
    AssertUnwindSafe(work).catch_unwind().map(|ended| ended.unwrap_or_else(|_| broke_off()))
}

/// Runs `work`; a panic becomes [`RoundError::Defect`].
pub fn unless_it_breaks<T>(
    work: impl Future<Output = Result<T, RoundError>>,
) -> impl Future<Output = Result<T, RoundError>> {
    catch_panic(work, || Err(RoundError::Defect(BROKE_OFF.to_owned())))
}

/// The result of a successful round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollResult {
    /// The summary; the caller fills in its start and duration.
    pub poll: FinishedPoll,
    /// When the publisher answered. The next interval counts from here, however long the commit took.
    pub answered: Time,
    /// Why a document is held back, if one is.
    pub held: Option<String>,
    /// When a pending decision is due.
    pub decision_due: Option<Time>,
    /// The feed's tick.
    pub until: Option<Tick>,
    /// A summary of the document, if one was parsed.
    pub document: Option<ParsedNote>,
    /// The SUP announcement of the feed and the scope of addresses it may lead to. `Some(None)`: the feed has none;
    /// `None`: unknown.
    pub announced: Option<Option<(SupAnnouncement, LeadScope)>>,
    /// The hub of the feed. `Some(None)`: it has none; `None`: unknown.
    pub hub: Option<Option<Discovery>>,
    /// The pause that a host asked for, if any.
    pub pause: Option<PauseRequest>,
    /// Whether the publisher was not asked: the document came from a reader's request.
    pub is_from_reader: bool,
}

/// Makes one round of a feed and records what it learned in `memory`. `send`: called before the request goes out;
/// returns whether a caller waits for its answer.
pub async fn round(
    context: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    memory: &mut FeedMemory,
    send: impl FnOnce() -> bool,
    cancel: &CancellationToken,
) -> Result<PollResult, RoundError> {
    let state = context.store.state(&feed.name).await?;
    // Most feeds need no list, and their address is parsed once, to be fetched.
    let leads = match feed.on_demand.is_none() && feed.deciding_list().is_none() {
        true => LeadScope::Own,
        false => context.lead_scope(feed).await?,
    };
    let asked_at = context.clock.now();
    let request = memory.request(feed, state.as_ref(), send(), asked_at).for_feed(feed, leads);
    // Only the fetch can be cancelled; a commit that has begun is completed.
    let fetched = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(RoundError::Cancelled),
        fetched = context.fetch().oneshot(request).instrument(debug_span!("fetch")) => fetched,
    };
    let fetched = fetched?;
    // The observation dates from the answer, which may come long after the request.
    let now = context.clock.now();
    let known = memory.prints(&feed.url, state.as_ref()).map(|prints| prints.body);
    match (fetched.answer.clone(), state) {
        // A held document is confirmed by being observed again, even with the same bytes.
        (FetchAnswer::Document(document), state)
            if document.delta || is_held(state.as_ref()) || known != Some(document.prints.body) =>
        {
            // Boxed: most polls end unchanged and should not carry this large future.
            let times = (asked_at, now);
            Box::pin(judge_document(
                context,
                feed,
                memory,
                &fetched,
                document,
                state.as_ref(),
                times,
            ))
            .await
        }
        (answer, Some(state)) => {
            let wire = match &answer {
                FetchAnswer::Document(document) => Some(document.prints.wire),
                FetchAnswer::NotModified | FetchAnswer::Same => None,
            };
            finish_unchanged(context, feed, memory, &fetched, wire, &state, (asked_at, now)).await
        }
        // There is no known document, and the request carried no validators.
        (_, None) => Err(FetchError::Unasked304.into()),
    }
}

/// Whether a document is held back. The next one is judged even if it is the same, because repeated observation
/// confirms a held document.
fn is_held(state: Option<&FeedState>) -> bool {
    state.is_some_and(|state| state.hold.is_some())
}

/// Ends a round whose document is unchanged; commits a pending decision if it is due.
async fn finish_unchanged(
    context: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    memory: &mut FeedMemory,
    fetched: &Fetched,
    wire: Option<u128>,
    state: &FeedState,
    (asked_at, now): (Time, Time),
) -> Result<PollResult, RoundError> {
    let same = memory.note_unchanged(state, wire);
    let quiet = match fetched.answer {
        FetchAnswer::NotModified => PollEnding::NotModified,
        FetchAnswer::Same | FetchAnswer::Document(_) => PollEnding::Unchanged,
    };
    let mut result = PollResult {
        held: state.hold.as_ref().map(Hold::describe),
        decision_due: state.next_decision_at.map(|at| context.decisions.by_wall_clock(at, now)),
        until: state.tick,
        announced: admit_announcement(context, fetched, fetched.announced.clone()).map(Some),
        // The hub link alone is not enough: the document may name another topic.
        hub: match find_hub(feed, fetched, &HubLinks::default()) {
            _ if is_secret(feed) => Some(None),
            hub => hub.filter(|_| fetched.links.own.is_some()).map(Some),
        },
        ..PollResult::unchanged(quiet, fetched, now)
    };
    let ripe = state.next_decision_at.is_some_and(|at| at <= context.decisions.running.now());
    if let Some(same) = same.filter(|_| ripe) {
        let (document, asked_at) = (Bytes::new(), Some(asked_at));
        let basis = DecisionBasis { document, asked_at, is_unsettled: true };
        let decided = decide_and_commit(context, feed, now, basis, move |observation, _| {
            let verdict = record::decide_pending(observation, same);
            Ok(Judged { verdict, full: true, ..Judged::default() })
        });
        let progress = Box::pin(decided).await?;
        if progress.after.is_some() {
            memory.restart_observations(progress.revision());
        }
        result.apply_commit(progress, &context.decisions, quiet);
    }
    memory.update_rate(result.poll.outcome == PollEnding::Changed, Some(state), now);
    memory.note_answer(fetched, memory.last_was_full(), now);
    Ok(result)
}

/// Judges and commits a new document.
async fn judge_document(
    context: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    memory: &mut FeedMemory,
    fetched: &Fetched,
    document: FetchedDocument,
    state: Option<&FeedState>,
    (asked_at, now): (Time, Time),
) -> Result<PollResult, RoundError> {
    let (prints, delta) = (document.prints, document.delta);
    let mut progress = sharing::judge_and_commit(context, feed, (asked_at, now), document).await?;
    if progress.after.is_some() {
        evict_surplus(context, feed, now, &mut progress).await?;
    }
    let full = progress.judged.full;
    let turnover = progress.turnover();
    if let Some(turnover) = turnover {
        memory.note_turnover(turnover, now);
    }
    memory.update_rate(progress.is_shown(), state, now);
    memory.schedule(now).hints = std::mem::take(&mut progress.judged.hints);
    memory.note_document(prints, full, delta || progress.judged.lacking, progress.revision());
    let items_changed = !progress.counts.is_empty();
    memory.compare_validators(&fetched.validators, progress.judged.newest, items_changed);
    memory.note_answer(fetched, full, now);
    // The header takes precedence over the element (SUP section 6).
    let element = progress.judged.sup.take();
    let element = || element.and_then(|href| in_link(&href, &fetched.final_url));
    let announcement =
        admit_announcement(context, fetched, fetched.announced.clone().or_else(element));
    let hub = find_hub(feed, fetched, &std::mem::take(&mut progress.judged.hub));
    let mut result = PollResult {
        document: Some(ParsedNote {
            at: asked_at,
            entries: progress.judged.entries,
            partial: progress.judged.partial.take(),
            warnings: std::mem::take(&mut progress.judged.warnings),
        }),
        announced: if full || announcement.is_some() { Some(announcement) } else { None },
        hub: if full || hub.is_some() || is_secret(feed) { Some(hub) } else { None },
        ..PollResult::unchanged(PollEnding::Unchanged, fetched, now)
    };
    result.pause = progress.pause.take().or(result.pause);
    result.poll.is_apart = turnover.is_some_and(Turnover::is_whole);
    result.poll.entries = result.document.as_ref().map(|document| document.entries);
    result.apply_commit(progress, &context.decisions, PollEnding::Unchanged);
    Ok(result)
}

/// Returns the SUP announcement with its scope, unless the answer may not lead to its address.
fn admit_announcement(
    context: &PollContext,
    fetched: &Fetched,
    announcement: Option<SupAnnouncement>,
) -> Option<(SupAnnouncement, LeadScope)> {
    let (leads, allow) = (&fetched.leads, &context.settings.load().hosts.allow_private);
    let is_admitted = |to: &Url| leads.admits(to, allow);
    let announcement = announcement
        .filter(|announcement| read_url(&announcement.document).as_ref().is_ok_and(is_admitted))?;
    Some((announcement, leads.clone()))
}

/// Whether the operator marked the feed's address as secret.
fn is_secret(feed: &FeedRecord) -> bool {
    feed.options.secret == Some(true)
}

/// Returns the hub of the feed; `None` if its topic is a secret address. The topic is believed only within the site of
/// the configured address or of the final one.
fn find_hub(feed: &FeedRecord, fetched: &Fetched, elements: &HubLinks) -> Option<Discovery> {
    if fetched.links.hubs.is_empty() && elements.hubs.is_empty() {
        return None;
    }
    let scopes =
        [ProbeScope::from_feed_url(&feed.url), ProbeScope::from_feed_url(&fetched.final_url)];
    let belongs = |url: &Url| scopes.iter().flatten().any(|scope| scope.admits(url));
    let discovery = Discovery::from_links(&fetched.links, elements, &fetched.final_url, belongs)?;
    // The hub learns the topic, and is usually run by a third party.
    let is_masked = ShownAddress::new(&discovery.topic, feed.options.secret).is_masked();
    (!is_secret(feed) && !is_masked).then_some(discovery)
}

/// Returns the pause of a host that answered but accepts no more requests for now.
pub(super) fn rate_pause(fetched: &Fetched) -> Option<PauseRequest> {
    let address = fetched.final_url.clone();
    fetched.rate_reset.map(|wait| PauseRequest { address, wait })
}

impl PollResult {
    /// Creates the result of a round that learned nothing beyond the metadata of the answer.
    fn unchanged(outcome: PollEnding, fetched: &Fetched, answered: Time) -> Self {
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
            decision_due: None,
            until: None,
            document: None,
            announced: None,
            hub: None,
            pause: rate_pause(fetched),
            is_from_reader: fetched.is_from_reader,
        }
    }

    fn apply_commit(
        &mut self,
        progress: CommitProgress,
        decisions: &DecisionContext,
        quiet: PollEnding,
    ) {
        self.poll.outcome = if progress.is_shown() { PollEnding::Changed } else { quiet };
        self.poll.committed = progress.after.is_some();
        let state = progress.after.or(progress.before);
        let hold = state.as_ref().and_then(|state| state.hold.as_ref()).map(Hold::describe);
        let ripens = state.as_ref().and_then(|state| state.next_decision_at);
        let verdict = progress.judged.verdict;
        self.held = verdict.held.or(hold);
        let by_wall_clock = |at| decisions.by_wall_clock(at, self.answered);
        self.decision_due = verdict.decision_due.or(ripens.map(by_wall_clock));
        self.until = state.and_then(|state| state.tick);
        (self.poll.counts, self.poll.rewritten) = (progress.counts, progress.rewritten);
    }
}

#[cfg(test)]
mod tests;
