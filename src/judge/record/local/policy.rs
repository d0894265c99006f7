//! Conflicts that nobody needs to be asked about, because the operator said what becomes of them.
//!
//! Endpoints that share and all resolve by themselves could answer each other's resolutions for
//! ever. They come to rest by four rules.
//!
//! 1. Versions that say the same are no conflict: the losers go, and no version is made. So two
//!    endpoints that resolved alike at the same time are done.
//! 2. What is to be kept is decided by the versions alone: the preferred endpoint's best, where one
//!    is its own, else the winner. Endpoints that know the same keep the same.
//! 3. To keep the winner, an update is made by the endpoint whose own version it is, and by one that
//!    made none of the versions. Who made a loser lets it go, as if the item had `noconflicts`
//!    (section 3.3): of two whose versions meet, one answers.
//! 4. At most [`TURNS`] times in what is kept of an item's history an endpoint resolves by itself.
//!    Then the losers go and no version is made, whatever is preferred: every endpoint keeps the
//!    greatest version that it knows, and those are the same once all have heard of all.

use tidegate_core::model::{ConflictPolicy, EndpointId, History, Shared, Stamp, Version};
use tidegate_core::sync::{self, Canonical, Choice, SyncError};

/// How often an endpoint resolves by itself in what is kept of an item's history.
pub const TURNS: usize = 4;

/// What is said of losers that went, while the winner is as it was.
pub(super) const DROPPED: &str = "what was in conflict goes, as the operator wants";
/// What is said of an update that resolved a conflict (section 3.4).
pub(super) const KEPT_WINNER: &str = "resolved as the operator wants: the winner is kept";
/// The same of one by which a loser became the winner.
pub(super) const KEPT_PREFERRED: &str =
    "resolved as the operator wants: the preferred endpoint's version is kept";

/// Resolves what is in conflict as the operator said, right after a merge. `stamp` is that of an
/// update that this makes, by this endpoint. Returns what came of it, in words; nothing where there is no conflict, or
/// the policy is to keep it.
pub fn settle_by_policy<D: Canonical>(
    item: &mut Shared<D>,
    policy: &ConflictPolicy,
    stamp: Stamp,
) -> Result<Option<&'static str>, SyncError> {
    if item.conflicts.is_empty() || *policy == ConflictPolicy::Keep {
        return Ok(None);
    }
    // Rule 1.
    item.conflicts.retain(|loser| !says_the_same(loser, &item.winner));
    let turns = stamp.by().map_or(TURNS, |own| turns(&item.winner.history, own));
    if item.conflicts.is_empty() || turns >= TURNS {
        item.conflicts.clear();
        return Ok(Some(DROPPED));
    }
    // Rule 2.
    if let ConflictPolicy::Prefer(endpoint) = policy
        && let Some(number) = preferred(item, endpoint)
    {
        sync::resolve(item, Choice::Conflict(number), &all(item), stamp)?;
        return Ok(Some(KEPT_PREFERRED));
    }
    // Rule 3.
    let own = stamp.by();
    let lost = item.conflicts.iter().any(|loser| is_by(loser, own));
    if lost {
        item.conflicts.clear();
        return Ok(Some(DROPPED));
    }
    sync::resolve_all(item, Choice::Winner, stamp)?;
    Ok(Some(KEPT_WINNER))
}

fn all<D>(item: &Shared<D>) -> Vec<usize> {
    (0..item.conflicts.len()).collect()
}

fn is_by<D>(version: &Version<D>, endpoint: Option<&EndpointId>) -> bool {
    endpoint.is_some() && version.history.topmost().stamp.by() == endpoint
}

/// The number of the preferred endpoint's best version among the losers; `None` if the winner is
/// its own, or none is.
fn preferred<D: Canonical>(item: &Shared<D>, endpoint: &EndpointId) -> Option<usize> {
    if is_by(&item.winner, Some(endpoint)) {
        return None;
    }
    let own = item.conflicts.iter().enumerate().filter(|(_, loser)| is_by(loser, Some(endpoint)));
    own.max_by(|(_, one), (_, other)| sync::precedence(one, other)).map(|(number, _)| number)
}

/// Whether two versions say the same to a reader.
fn says_the_same<D: Canonical>(one: &Version<D>, other: &Version<D>) -> bool {
    match (one.deleted, other.deleted) {
        (true, true) => true,
        (false, false) => one.data.canonical() == other.data.canonical(),
        _ => false,
    }
}

/// How often an endpoint answered others: its updates that stand directly above another's.
fn turns(history: &History, own: &EndpointId) -> usize {
    let updates: Vec<_> = history.iter().map(|update| update.stamp.by()).collect();
    let answers = updates.windows(2).filter(|pair| match pair {
        [above, below] => *above == Some(own) && *below != Some(own),
        _ => false,
    });
    answers.count()
}
