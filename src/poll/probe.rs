//! Probes: asks missing items' own addresses whether the items are gone.
//!
//! `judge::probe` decides what to ask and what the answers mean. This module sends the requests one after the other,
//! waiting in the host's line and at its pace, and commits the result.

use super::decide::{DecisionBasis, decide_and_commit};
use super::error::RoundError;
use super::feeds::FeedCell;
use super::judge::{LedgerReader, judge_replies};
use super::politeness::HostRank;
use super::polling::{PollContext, unless_it_breaks};
use super::schedule::describe_duration;
use super::scheduler::SLICE;
use http::Method;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedRecord, Probing, Time};
use tidegate_judge::probe::{self, ProbeEnd, ProbePlan, ProbeReply, Replies};
use tidegate_judge::record::Observation;
use tidegate_net::fetch::{Call, CallRequest, PauseRequest, read_url};
use tidegate_net::origin::address_at_host;
use tidegate_status::FinishedProbe;
use tidegate_store::in_words;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use url::Url;

/// The most redirects followed from one page.
pub const MAX_PAGE_REDIRECTS: usize = 5;
/// The most pages fetched at the same time, over all hosts: slow ones must not use up the calls that deliveries need.
pub const MAX_PAGES_AT_ONCE: usize = 16;
/// The longest time of a probe; after it no further item is asked for.
pub const PROBE_TIME: Duration = Duration::from_secs(180);

/// Plans a probe of the feed; `None` if there is nothing to ask, or nothing may be asked.
pub(super) async fn plan(context: &PollContext, feed: &Arc<FeedRecord>) -> Option<ProbePlan> {
    // Do not reveal the reader of a feed with credentials, unless the operator wants all items probed.
    let has_credentials = feed.access.as_ref().is_some_and(|access| access.has_credentials());
    if has_credentials && feed.options.probe == Probing::Doubts {
        return None;
    }
    let now = context.decisions.running.now();
    let room = context.allowances.lock().room_of_feed(&feed.name, feed.options.probe, now);
    if room == 0 {
        return None;
    }
    let snapshot = match context.store.snapshot(&feed.name).await {
        Ok(snapshot) => snapshot?,
        Err(error) => {
            let error = in_words(&error);
            tracing::warn!(feed = %feed.name, error, "what is missing could not be read");
            return None;
        }
    };
    // The items of a site link to where its readers have it.
    let url = read_url(&feed.url).ok();
    let here = url.and_then(|url| address_at_host(&context.settings.load().sites, &url));
    let feed = Arc::clone(feed);
    // Blocking, because a ledger of many thousand items takes time.
    let planned = tokio::task::spawn_blocking(move || {
        let url = here.as_deref().unwrap_or(&feed.url);
        probe::plan(&feed.name, url, &feed.options, &snapshot, now, room)
    });
    planned.await.unwrap_or_else(|error| {
        tracing::error!(%error, "what is missing could not be looked through");
        None
    })
}

/// Runs a planned probe within the host's allowance, and records the result.
pub(super) async fn run(
    context: Arc<PollContext>,
    cell: Arc<FeedCell>,
    mut plan: ProbePlan,
    cancel: CancellationToken,
) {
    let feed = Arc::clone(&cell.lock().record);
    let (host, now) = (context.hosts.host(plan.listed.as_str()), context.decisions.running.now());
    let asked = match context.hosts.paused(plan.listed.as_str()) {
        Some(left) => Ok(paused_note(&context, left)),
        None => {
            let (names, probing) = ((&feed.name, &*host.name), feed.options.probe);
            let room = context.allowances.lock().take(names, probing, plan.items.len(), now);
            plan.items.truncate(room);
            if plan.items.is_empty() {
                return;
            }
            cell.lock().live.is_probing = true;
            unless_it_breaks(ask_and_commit(&context, &feed, &cell, &plan, &cancel)).await
        }
    };
    let mut polling = cell.lock();
    polling.live.is_probing = false;
    match asked {
        Ok(note) => polling.add_probe(note),
        Err(RoundError::Cancelled | RoundError::Overtaken) => {}
        Err(error) => {
            let error = error.report();
            tracing::warn!(feed = %feed.name, error, "asking for what is missing failed");
        }
    }
}

/// Builds the note that nothing (more) was asked, because the host asked for a pause that lasts `left`.
fn paused_note(context: &PollContext, left: Duration) -> FinishedProbe {
    let left = describe_duration(left.max(SLICE));
    let said = format!(
        "nothing more was asked: the host asked for a pause (Retry-After), {left} of it are left"
    );
    let counts = BTreeMap::new();
    FinishedProbe { at: context.clock.now(), requests: 0, said: vec![said], counts }
}

/// Waits for a slot, asks what was planned, and commits the result. A probe makes several requests, so it is aborted if
/// its host asks for a pause.
async fn ask_and_commit(
    context: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    cell: &Arc<FeedCell>,
    plan: &ProbePlan,
    cancel: &CancellationToken,
) -> Result<FinishedProbe, RoundError> {
    let (begun, listed) = (context.clock.now(), plan.listed.as_str());
    let slot = cancel.run_until_cancelled(context.hosts.slot(listed, HostRank::Usual)).await;
    let slot = match slot.ok_or(RoundError::Cancelled)? {
        Ok(slot) => slot,
        Err(left) => return Ok(paused_note(context, left)),
    };
    let leads = context.lead_scope(feed).await?;
    let spacing = slot.host.pace.spacing;
    let route = feed.access.as_ref().and_then(|access| access.route.clone());
    let way = CallRequest { route, ..CallRequest::page(plan.listed.clone(), leads, begun) };
    let call = context.services.load().call.clone();
    let mut probe_run = ProbeRun::new(call, &context.pages, plan, spacing, way);
    let replies = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(RoundError::Cancelled),
        left = context.hosts.until_paused(listed) => return Ok(paused_note(context, left)),
        replies = probe_run.ask_all() => replies,
    };
    let (requests, refused) = (probe_run.requests, probe_run.refused);
    if let Some(pause) = &probe_run.pause_request {
        context.hosts.pause(pause);
    }
    if refused {
        let now = context.decisions.running.now();
        context.allowances.lock().exhaust(&feed.name, &slot.host.name, now);
    }
    let (now, polled) = (context.clock.now(), Arc::clone(cell));
    let decide = move |observation: &Observation<'_>, _: &LedgerReader| {
        let revision = observation.snapshot.map(|snapshot| snapshot.state.revision);
        let same = polled.lock().memory.unchanged_since(revision);
        Ok(judge_replies(observation, &replies, same))
    };
    let progress = decide_and_commit(context, feed, now, DecisionBasis::default(), decide).await?;
    tracing::debug!(feed = %feed.name, requests, "asked");
    if let Some(after) = &progress.after {
        cell.lock().memory.note_probe_commit(after.revision);
    }
    let (said, counts) = (progress.judged.warnings, progress.counts);
    Ok(FinishedProbe { at: now, requests, said, counts })
}

/// Returns an unpredictable number for a made-up address.
fn token() -> u64 {
    // Without a random source, a fixed number does nearly as well.
    getrandom::u64().unwrap_or(0x7469_6465_6761_7465)
}

/// A probe in progress.
struct ProbeRun<'a> {
    call: Call,
    /// Limits the pages fetched at the same time.
    pages: &'a Semaphore,
    plan: &'a ProbePlan,
    pause: Duration,
    /// When the next request may begin.
    next: Instant,
    /// Whether to use GET, because HEAD proved useless here.
    get: bool,
    requests: u32,
    refused: bool,
    pause_request: Option<PauseRequest>,
    /// The template of requests: route, SSRF scope and reference time.
    way: CallRequest,
}

impl<'a> ProbeRun<'a> {
    fn new(
        call: Call,
        pages: &'a Semaphore,
        plan: &'a ProbePlan,
        pause: Duration,
        way: CallRequest,
    ) -> Self {
        let (next, get, requests, refused, pause_request) = (Instant::now(), false, 0, false, None);
        Self { call, pages, plan, pause, next, get, requests, refused, pause_request, way }
    }

    /// Asks for the listed item first, then for a made-up address, then for the missing items.
    async fn ask_all(&mut self) -> Replies {
        let (plan, deadline) = (self.plan, Instant::now() + PROBE_TIME);
        let listed = self.ask_reference_page(&plan.listed, probe::is_alive).await;
        let mut replies = Replies { listed, made_up: None, items: Vec::new() };
        let goes_on = probe::is_alive(&replies.listed);
        if let Some((_, first)) = plan.items.first().filter(|_| goes_on) {
            let made_up = probe::made_up(first, token());
            let is_fit = |reply: &ProbeReply| !probe::is_echo(reply);
            replies.made_up = Some(self.ask_reference_page(&made_up, is_fit).await);
        }
        for (id, page) in &plan.items {
            let reply = if goes_on && !self.refused {
                if Instant::now() >= deadline {
                    break;
                }
                Some(self.ask_page(page).await)
            } else {
                None
            };
            replies.items.push((id.clone(), reply));
        }
        replies
    }

    /// Asks for a page whose answer shows whether HEAD works here: some servers answer 404 to any HEAD, others 200.
    async fn ask_reference_page(
        &mut self,
        page: &Url,
        is_fit: impl Fn(&ProbeReply) -> bool,
    ) -> ProbeReply {
        let reply = self.ask_page(page).await;
        if self.get || self.refused || is_fit(&reply) {
            return reply;
        }
        let again = self.request_page(page, true).await;
        self.get = is_fit(&again);
        again
    }

    async fn ask_page(&mut self, page: &Url) -> ProbeReply {
        let reply = self.request_page(page, self.get).await;
        if self.get || self.refused || !probe::wants_get(&reply) {
            return reply;
        }
        self.request_page(page, true).await
    }

    /// Asks for a page, following redirects within the feed's own domain.
    async fn request_page(&mut self, page: &Url, get: bool) -> ProbeReply {
        sleep_until(self.next).await;
        let end = self.follow(page, get).await;
        self.next = Instant::now() + self.pause;
        let reply = ProbeReply { asked: page.clone(), end };
        self.refused |= probe::is_refusal(&reply);
        reply
    }

    async fn follow(&mut self, page: &Url, get: bool) -> ProbeEnd {
        let (mut url, mut leads) = (page.clone(), self.way.leads.clone());
        for _ in 0..=MAX_PAGE_REDIRECTS {
            self.requests = self.requests.saturating_add(1);
            let request = CallRequest {
                method: if get { Method::GET } else { Method::HEAD },
                url: url.clone(),
                leads: leads.clone(),
                ..self.way.clone()
            };
            let permit = self.pages.acquire().await;
            let asked = self.call.clone().oneshot(request).await;
            drop(permit);
            let asked = match asked {
                Ok(asked) => asked,
                Err(error) => return ProbeEnd::NoStatus(error.to_string()),
            };
            let code = asked.status;
            self.pause_request = PauseRequest::from_status(code, asked.retry_after, url.as_str());
            if !matches!(code, 301 | 302 | 303 | 307 | 308) {
                return ProbeEnd::Status { code, at: url };
            }
            leads = asked.leads;
            let Some(to) = asked.location else {
                return ProbeEnd::NoStatus(format!("a redirect ({code}) leads nowhere"));
            };
            if !self.plan.scope.admits(&to) {
                let host = to.host_str().unwrap_or_default();
                return ProbeEnd::NoStatus(format!(
                    "a redirect ({code}) leads to another site, {host}"
                ));
            }
            url = to;
            url.set_fragment(None);
        }
        ProbeEnd::NoStatus(format!("it sent more than {MAX_PAGE_REDIRECTS} redirects"))
    }
}

/// Missing items probed per feed and hour. Each probe round also asks for a listed item and a made-up address, and
/// requests may be repeated with GET.
pub const FEED_ASKS_PER_HOUR: usize = 4;
/// Missing items probed per host and hour, over all its feeds.
pub const HOST_ASKS_PER_HOUR: usize = 12;
/// The same for feeds with `probe = "doubts"`, the default.
pub const HOST_DOUBTS_PER_HOUR: usize = 1;

const HOUR: Duration = Duration::from_secs(3600);

/// What an allowance belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum AskedOf {
    Host(String),
    Feed(FeedName),
    /// A feed whose ledger is searched for items in doubt.
    Doubts(FeedName),
}

/// The times of probes within the last hour.
#[derive(Debug, Default)]
pub struct Allowances(HashMap<AskedOf, Vec<Time>>);

impl Allowances {
    /// Returns how many more may be probed now; forgets probes older than an hour.
    fn room(&mut self, of: &AskedOf, limit: usize, now: Time) -> usize {
        self.0.retain(|_, asked| {
            // After a clock was set back, times in the future must not block for longer than an hour.
            asked.iter_mut().for_each(|at| *at = (*at).min(now));
            asked.retain(|at| now.since(*at) < HOUR);
            !asked.is_empty()
        });
        limit.saturating_sub(self.0.get(of).map_or(0, Vec::len))
    }

    /// Records `count` probes.
    fn record_requests(&mut self, of: AskedOf, count: usize, now: Time) {
        if count > 0 {
            self.0.entry(of).or_default().extend(std::iter::repeat_n(now, count));
        }
    }

    /// Returns how many items of a feed may be probed.
    pub fn room_of_feed(&mut self, feed: &FeedName, probing: Probing, now: Time) -> usize {
        match probing {
            Probing::Off => 0,
            Probing::All => self.room(&AskedOf::Feed(feed.clone()), FEED_ASKS_PER_HOUR, now),
            // Doubts last for days: searching once an hour suffices.
            Probing::Doubts => {
                let of = AskedOf::Doubts(feed.clone());
                let room = self.room(&of, 1, now);
                self.record_requests(of, room, now);
                room
            }
        }
    }

    /// Reserves probes at a host, at most `wanted`; returns their number and counts them for the host and the feed.
    pub fn take(
        &mut self,
        (feed, host): (&FeedName, &str),
        probing: Probing,
        wanted: usize,
        now: Time,
    ) -> usize {
        let limit = match probing {
            Probing::Off => 0,
            Probing::All => HOST_ASKS_PER_HOUR,
            Probing::Doubts => HOST_DOUBTS_PER_HOUR,
        };
        let of_host = AskedOf::Host(host.to_owned());
        let count = self.room(&of_host, limit, now).min(wanted);
        self.record_requests(of_host, count, now);
        self.record_requests(AskedOf::Feed(feed.clone()), count, now);
        count
    }

    /// Uses up the allowance of a feed and its host for an hour, because the host refused.
    pub fn exhaust(&mut self, feed: &FeedName, host: &str, now: Time) {
        let of_host = (AskedOf::Host(host.to_owned()), HOST_ASKS_PER_HOUR);
        for (of, limit) in [of_host, (AskedOf::Feed(feed.clone()), FEED_ASKS_PER_HOUR)] {
            let left = self.room(&of, limit, now);
            self.record_requests(of, left, now);
        }
    }
}

#[cfg(test)]
mod tests;
