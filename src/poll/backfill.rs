//! One step of a walk through a publisher's older documents: a request, and the commit of what the
//! document brings.

use super::decision::{DecisionBasis, decide_and_commit};
use super::error::RoundError;
use super::judge::{DocumentJudge, ReceivedDocument, Wants};
use super::ledger::LedgerReader;
use super::polling::{PollContext, rate_pause};
use super::scheduler::PAUSE_MARGIN;
use super::walk;
use super::word::behind_list;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{Backfill, FeedRecord, Revision, WalkStanding};
use tidegate_judge::record::Observation;
use tidegate_net::fetch::{self, FetchAnswer, FetchRequest};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use url::Url;

/// How long a walk waits for a feed that was not taken in yet, or that is held.
const WAIT: Duration = Duration::from_secs(10 * 60);

/// How often a step asks for what left the ledger, at most.
const MAX_WAITS: usize = 8;

/// What a step came to.
#[derive(Debug)]
pub(super) struct Stepped {
    /// The walk as it is now.
    pub(super) walk: Backfill,
    /// The feed's revision, where anything was committed.
    pub(super) revision: Option<Revision>,
    /// How long to wait before the next step; `None`: as long as its host is owed.
    pub(super) wait: Option<Duration>,
    /// Whether it was given up, and is to be done again.
    pub(super) is_given_up: bool,
}

/// Makes a step. `is_shared`: several gateways poll the feeds of one store. The error is the gateway's own.
pub(super) async fn step(
    bench: Arc<PollContext>,
    feed: Arc<FeedRecord>,
    mut walk: Backfill,
    is_shared: bool,
    cancel: CancellationToken,
) -> Result<Stepped, RoundError> {
    let asked = walk.next.as_deref().unwrap_or(&feed.url).to_owned();
    let stopped = |walk, wait| Stepped { walk, revision: None, wait, is_given_up: false };
    let slot = tokio::select! {
        biased;
        () = cancel.cancelled() => return Ok(Stepped { is_given_up: true, ..stopped(walk, None) }),
        slot = bench.hosts.slot(&asked) => slot,
    };
    // Held until the host's answer is known to everybody.
    let _slot = match slot {
        Ok(slot) => slot,
        Err(left) => {
            let note = "it waits, because the host asked for a pause (Retry-After)";
            walk.note = Some(note.to_owned());
            return Ok(stopped(walk, Some(left + PAUSE_MARGIN)));
        }
    };
    let made = match made(&bench, &feed, &mut walk, &cancel).await {
        Ok(made) => made,
        Err(RoundError::Cancelled | RoundError::Overtaken) => {
            return Ok(Stepped { is_given_up: true, ..stopped(walk, None) });
        }
        // The publisher has no part in it: the walk stands where it stood.
        Err(error) if error.is_of_store(is_shared) => return Err(error),
        Err(error) => {
            let status = match &error {
                RoundError::Fetch(error) => error.status(),
                _ => None,
            };
            if let Some(pause) = error.pause(&asked) {
                bench.hosts.pause(&pause);
            }
            let now = bench.clock.now();
            let wait = walk::fail(&mut walk, &error.describe(), (status, error.retry()), now);
            return Ok(stopped(walk, wait));
        }
    };
    let (revision, wait) = made;
    Ok(Stepped { walk, revision, wait, is_given_up: false })
}

type BackfillResult = (Option<Revision>, Option<Duration>);

async fn made(
    bench: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    walk: &mut Backfill,
    cancel: &CancellationToken,
) -> Result<BackfillResult, RoundError> {
    let state = bench.store.state(&feed.name).await?;
    let Some(state) = state else {
        walk.note = Some("it waits for the feed's first document".to_owned());
        return Ok((None, Some(WAIT)));
    };
    if state.hold.is_some() {
        walk.note = Some("it waits while a document of the feed is held".to_owned());
        return Ok((None, Some(WAIT)));
    }
    let now = bench.clock.now();
    if feed.options.complete || state.says_complete {
        let note = "the feed lists everything, so that nothing is older";
        walk::end(walk, WalkStanding::Done, note, now);
        return Ok((None, None));
    }
    let asked_at = Some(now);
    let url = without_credentials(walk.next.as_deref().unwrap_or(&feed.url));
    let mut request = FetchRequest::whole(url, now).for_feed(feed);
    request.leads = behind_list(&bench.store, feed, request.leads).await?;
    let fetched = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(RoundError::Cancelled),
        fetched = bench.fetch.clone().oneshot(request) => fetched?,
    };
    if let Some(pause) = rate_pause(&fetched) {
        bench.hosts.pause(&pause);
    }
    let FetchAnswer::Document(document) = fetched.answer else {
        return Err(tidegate_net::fetch::FetchError::Unasked304.into());
    };
    let bytes = u64::try_from(document.bytes.len()).unwrap_or(u64::MAX);
    walk.bytes = walk.bytes.saturating_add(bytes);
    let seen = ReceivedDocument::new(document, fetched.final_url);
    let now = bench.clock.now();
    let before = walk.clone();
    let bytes = seen.bytes.clone();
    let (seen, before) = (Arc::new(seen), Arc::new(before));
    let mut names = HashSet::new();
    let mut settled;
    let mut waits = 0;
    loop {
        let (seen, before, asked) = (Arc::clone(&seen), Arc::clone(&before), names.clone());
        let decide =
            move |judge: &dyn DocumentJudge, round: &Observation<'_>, _: &dyn LedgerReader| {
                judge.backfill(round, &seen, &before, &asked)
            };
        let (document, names_asked) = (bytes.clone(), names.iter().cloned().collect());
        let basis = DecisionBasis { document, names: names_asked, asked_at, is_unsettled: false };
        settled = decide_and_commit(bench, feed, now, basis, decide).await?;
        match settled.judged.wants.take() {
            Some(Wants::Stubs(more)) if waits < MAX_WAITS => names.extend(more),
            _ => break,
        }
        waits += 1;
    }
    let walked = settled.judged.walked.unwrap_or_default();
    walk.taken_bytes = walk.taken_bytes.saturating_add(walked.bytes);
    if walk.next.is_none() {
        walk::set_out(walk, walked.signpost, now);
    } else {
        walk::go_on(walk, walked.signpost, (walked.taken, walked.known), now);
    }
    Ok((settled.committed.then_some(settled.revision), None))
}

/// An address without credentials: what a document says must not choose whom we claim to be.
pub(super) fn without_credentials(address: &str) -> String {
    Url::parse(address).map_or_else(|_| address.to_owned(), |url| fetch::bare(&url))
}
