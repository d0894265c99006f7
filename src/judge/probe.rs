//! Asking a missing item's own address whether it is gone: which to ask, and what the answers mean.
//!
//! A publisher that takes an item away nearly always takes its page away as well, so that 404 or
//! 410 there says more than any hole in a document, and 200 says that a hole is none. But sites
//! answer 404 to everything while they are broken, 200 to everything when they are built so, and a
//! hostile feed names addresses that are not its own. Hence: only the feed's own domain is asked
//! ([`ProbeScope`]); each round asks an item that is still listed first, and a made-up address; and an
//! answer that is anything but plain says nothing ([`answers`]). Pure: `poll` does the asking.

mod answer;
mod scope;

pub use answer::{
    ProbeEnd, ProbeReply, ProbeVerdict, Replies, answers, describe_replies, is_alive, is_echo,
    is_refusal, wants_get,
};
pub(crate) use answer::{describe_probe, note_answer};
pub use scope::{ProbeScope, made_up};

use crate::{DAY, HOUR};
use foldhash::HashSet;
use std::time::Duration;
use tidegate_core::model::{
    Absence, Deletions, Evidence, FeedName, FeedOptions, ItemStatus, LedgerEntry, Probe, Probing,
    ShownAddress, Snapshot, SyncId, Time,
};
use tidegate_core::xml::plain_address::plain_link;
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

/// The most items that one round asks about.
pub const ITEMS_PER_ROUND: usize = 4;
/// Where doubts alone are asked about: so many questions a day …
const DOUBTS_A_DAY: usize = 2;
/// … of items that have been in doubt for so long.
const LONG_IN_DOUBT: Duration = Duration::from_secs(48 * 3600);
/// The most probes of an item while it is missing.
pub(crate) const MAX_PROBES: u32 = 6;
/// The least time between two answers that confirm each other.
pub(crate) const CONFIRM_AFTER: Duration = HOUR;
/// An address that said nothing is asked again so much later …
const AFTER_SILENCE: Duration = Duration::from_secs(6 * 3600);
/// … and one where the item is there, which may follow the feed with some delay.
const AFTER_PRESENCE: Duration = Duration::from_secs(12 * 3600);

/// What one round asks, all of it of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbePlan {
    /// Where it may go, redirects included.
    pub scope: ProbeScope,
    /// The address of an item that the document lists.
    pub listed: Url,
    /// The missing items with their addresses; never empty, at most [`ITEMS_PER_ROUND`].
    pub items: Vec<(SyncId, Url)>,
}

/// What to ask now, where something is to be asked: of at most `room` items.
pub fn plan(
    feed: &FeedName,
    url: &str,
    options: &FeedOptions,
    snapshot: &Snapshot,
    now: Time,
    room: usize,
) -> Option<ProbePlan> {
    let room = room.min(match options.probe {
        Probing::Off => 0,
        Probing::All => ITEMS_PER_ROUND,
        Probing::Doubts if is_private(url, options) => 0,
        Probing::Doubts => DOUBTS_A_DAY.saturating_sub(asked_within_a_day(snapshot, now)),
    });
    if room == 0 || options.deletions == Deletions::Off || snapshot.state.hold.is_some() {
        return None;
    }
    let scope = ProbeScope::from_feed_url(url)?;
    let mut wanted = candidates(snapshot, &scope, now);
    if options.probe == Probing::Doubts {
        wanted.retain(|item| item.known.absence.as_ref().is_some_and(|a| is_long_in_doubt(a, now)));
    }
    let shown = listed(snapshot, &scope);
    // The first whose host has something to compare it with leads; others of its host follow.
    let listed = wanted.iter().find_map(|first| {
        let there = shown.iter().filter(|there| is_same_host(there, &first.page));
        pick_listed_page(feed, &there.collect::<Vec<_>>(), now)
    })?;
    let items = wanted.into_iter().filter(|item| is_same_host(&item.page, &listed));
    let items = items.map(|item| (item.known.id.clone(), item.page));
    Some(ProbePlan { items: items.take(room).collect(), scope, listed })
}

/// Whether the address of a feed is secret: who reads it is nobody's business.
fn is_private(url: &str, options: &FeedOptions) -> bool {
    options.secret == Some(true) || ShownAddress::new(url, options.secret).is_masked()
}

/// Estimates the number of probes within the last day: an item that was probed then counts once, or twice if it was
/// also probed before, because two answers settle it.
fn asked_within_a_day(snapshot: &Snapshot, now: Time) -> usize {
    let asked = snapshot.known.iter().filter_map(|known| known.absence.as_ref()?.probe.as_ref());
    let lately = asked.filter(|probe| now.since(probe.last) < DAY);
    lately.map(|probe| if probe.asked > 1 { 2 } else { 1 }).sum()
}

/// Whether what was seen of a missing item has been in doubt for so long that the feed is not likely to settle
/// it soon.
fn is_long_in_doubt(absence: &Absence, now: Time) -> bool {
    absence.evidence == Evidence::Unplaced
        && !absence.doubts.is_empty()
        && now.since(absence.since) >= LONG_IN_DOUBT
}

/// A missing item that may be asked about.
struct Candidate<'a> {
    rank: u8,
    since: Time,
    known: &'a LedgerEntry,
    page: Url,
}

/// The items that may be asked about now, the most urgent first.
fn candidates<'a>(snapshot: &'a Snapshot, scope: &ProbeScope, now: Time) -> Vec<Candidate<'a>> {
    let known = snapshot.known.iter();
    let mut wanted: Vec<Candidate<'_>> =
        known.filter_map(|known| candidate(known, scope, now)).collect();
    retain_pages_of_their_own(&mut wanted, snapshot);
    wanted.sort_by_key(|item| (item.rank, item.since, item.known.id.clone()));
    wanted
}

fn candidate<'a>(known: &'a LedgerEntry, scope: &ProbeScope, now: Time) -> Option<Candidate<'a>> {
    let absence = known.absence.as_ref().filter(|_| known.standing == ItemStatus::Current)?;
    let rank = match (absence.evidence, &absence.probe) {
        // What one more answer may decide comes first.
        (Evidence::Unplaced, Some(Probe { heard: Some(heard), .. })) if heard.gone => 0,
        (Evidence::Hole | Evidence::Complete, _) => 1,
        (Evidence::Unplaced, _) => 2,
        _ => return None,
    };
    let page = known.link.as_deref().and_then(|link| scope.page(link))?;
    is_due(absence, now).then_some(Candidate { rank, since: absence.since, known, page })
}

/// Whether the address may be asked, or asked again.
fn is_due(absence: &Absence, now: Time) -> bool {
    let Some(probe) = &absence.probe else { return true };
    let pause = match &probe.heard {
        Some(heard) if heard.gone => CONFIRM_AFTER,
        Some(_) => AFTER_PRESENCE,
        None => AFTER_SILENCE,
    };
    probe.asked < MAX_PROBES && now.since(probe.last) >= pause
}

/// A page that several items lead to says nothing of one of them.
fn retain_pages_of_their_own(wanted: &mut Vec<Candidate<'_>>, snapshot: &Snapshot) {
    if wanted.is_empty() {
        return;
    }
    let links = snapshot.known.iter().filter_map(|known| known.link.as_deref());
    let bearers = crate::count(links.map(plain_link));
    wanted.retain(|item| bearers.get(&plain_link(item.page.as_str())).is_none_or(|n| *n < 2));
}

/// The addresses of the items that the document lists.
fn listed(snapshot: &Snapshot, scope: &ProbeScope) -> Vec<Url> {
    let order: HashSet<&SyncId> = snapshot.order.iter().collect();
    let there = |known: &&LedgerEntry| {
        known.standing == ItemStatus::Current
            && known.absence.is_none()
            && order.contains(&known.id)
    };
    let listed = snapshot.known.iter().filter(there);
    listed.filter_map(|known| scope.page(known.link.as_deref()?)).collect()
}

/// Picks the page of a listed item, another one each hour, so that one bad link does not stop all probes.
fn pick_listed_page(feed: &FeedName, there: &[&Url], now: Time) -> Option<Url> {
    let turn = xxh3_64(format!("{feed} {}", now.unix().div_euclid(3600)).as_bytes());
    let count = u64::try_from(there.len()).ok().filter(|count| *count > 0)?;
    there.get(usize::try_from(turn % count).ok()?).map(|url| Url::clone(url))
}

fn is_same_host(a: &Url, b: &Url) -> bool {
    a.host() == b.host() && a.port_or_known_default() == b.port_or_known_default()
}

#[cfg(test)]
mod tests;
