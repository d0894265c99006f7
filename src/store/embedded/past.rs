//! What a feed said at some time, and what is kept of it. Whoever calls holds the feed's gate.

use super::chain::{self, ORDERS, SKELETONS};
use super::keys;
use super::read;
use super::records::Records;
use crate::assemble::{assemble_past, is_told};
use crate::engine::Class;
use crate::{Holdings, KeptVersion, Past, PastSelect, StoreError, VersionNote, View};
use std::collections::HashSet;
use tidegate_core::model::{Count, FeedName, FeedState, Markup, Skeleton, SyncId, Tick, Time};

/// One version of an item.
pub(super) fn version(
    records: &Records,
    feed: &FeedName,
    id: &SyncId,
    updates: Count,
) -> Result<Option<KeptVersion>, StoreError> {
    for note in read::notes(records, feed, id) {
        let note = note?;
        if note.updates == updates {
            let markup =
                if note.deleted { None } else { chain::body(records, feed, id, note.tick)? };
            return Ok(Some(KeptVersion { note, markup }));
        }
    }
    Ok(None)
}

/// What an item was at some time.
enum Then {
    /// This version, with these bytes.
    Version(Box<(VersionNote, Markup)>),
    /// It was not there.
    Absent,
    /// It is not known; its oldest kept version is shown from here on.
    Unknown(Time),
}

fn then(records: &Records, feed: &FeedName, id: &SyncId, at: Time) -> Result<Then, StoreError> {
    let mut newer: Vec<VersionNote> = Vec::new();
    let mut found: Option<VersionNote> = None;
    for note in read::notes(records, feed, id) {
        let note = note?;
        if let Some(found) = &found {
            // A tombstone has the bytes of the version before it.
            if !found.deleted {
                break;
            }
            if let Some(bytes) = chain::body(records, feed, id, note.tick)? {
                return Ok(Then::Version(Box::new((found.clone(), bytes))));
            }
        } else if note.shown <= at {
            let bytes =
                if note.deleted { None } else { chain::body(records, feed, id, note.tick)? };
            if let Some(bytes) = bytes {
                return Ok(Then::Version(Box::new((note, bytes))));
            }
            found = Some(note);
        } else {
            newer.push(note);
        }
    }
    let Some(found) = found else {
        return Ok(match newer.last() {
            Some(first) if first.updates != Count::ONE => Then::Unknown(first.shown),
            _ => Then::Absent,
        });
    };
    // Nothing before it has bytes any more: those of the next version that has any.
    for note in newer.iter().rev() {
        if let Some(bytes) = chain::body(records, feed, id, note.tick)? {
            return Ok(Then::Version(Box::new((found, bytes))));
        }
    }
    let newest = read::item(records, feed, id)?.map(|item| item.shared.winner.data);
    Ok(newest.map_or(Then::Absent, |bytes| Then::Version(Box::new((found, bytes)))))
}

/// What a view showed at `at`.
pub(super) fn past(
    records: &Records,
    feed: &FeedName,
    state: &FeedState,
    select: PastSelect,
    at: Time,
) -> Result<Past, StoreError> {
    let history = chain::history(records, feed)?;
    let (ordered, framed) = (ORDERS.since(&history, state), SKELETONS.since(&history, state));
    let order = ORDERS.at::<Vec<SyncId>>(records, feed, ordered, at)?;
    let skeleton = SKELETONS.at::<Skeleton>(records, feed, framed, at)?;
    let (Some((ordered, order)), Some((framed, skeleton))) = (order, skeleton) else {
        let oldest =
            ORDERS.oldest(records, feed, ordered)?.max(SKELETONS.oldest(records, feed, framed)?);
        return Ok(Past::Unknown { back_to: Some(oldest) });
    };
    // What left the ledger since was shown, in a version that is not kept.
    let left = state.evictions.latest.filter(|left| at < *left);
    let is_lacking = match select {
        PastSelect::Current => false,
        PastSelect::All => true,
        PastSelect::Since(tick) => state.complete_start >= Some(tick),
    };
    if is_lacking && left.is_some() {
        return Ok(Past::Unknown { back_to: left });
    }
    let listed: HashSet<&SyncId> = order.iter().collect();
    let all = match select {
        PastSelect::Current => Vec::new(),
        PastSelect::All | PastSelect::Since(_) => read::ledger(records, feed)?,
    };
    let ids: Box<dyn Iterator<Item = &SyncId>> = match select {
        PastSelect::Current => Box::new(order.iter()),
        PastSelect::All | PastSelect::Since(_) => Box::new(all.iter()),
    };
    let (mut items, mut shown, mut last) = (Vec::new(), ordered.max(framed), None);
    for id in ids {
        let Some(known) = read::known(records, feed, id)? else {
            return Ok(Past::Unknown { back_to: left });
        };
        if !is_told(&known, at) {
            continue;
        }
        match then(records, feed, id, at)? {
            Then::Unknown(back_to) => return Ok(Past::Unknown { back_to: Some(back_to) }),
            Then::Absent => {}
            Then::Version(found) => {
                let (note, bytes) = *found;
                (shown, last) = (shown.max(note.shown), last.max(Some(note.tick)));
                items.push(assemble_past(known, &note, bytes, listed.contains(id)));
            }
        }
    }
    if select != PastSelect::Current {
        items.sort_by(|a, b| (a.tick, &a.shared.winner.id).cmp(&(b.tick, &b.shared.winner.id)));
    }
    let format = skeleton.format;
    let state = FeedState { updated_at: shown, tick: last, format, ..state.clone() };
    Ok(Past::Then(Box::new(View { state, skeleton, items })))
}

/// What is kept of a feed, and what it takes.
pub(super) fn holdings(
    records: &Records,
    feed: &FeedName,
    state: &FeedState,
) -> Result<Holdings, StoreError> {
    let sum = |class: Class| {
        let sizes = records.sizes(class, &keys::feed(feed))?;
        let bytes = sizes.iter().fold(0_u64, |sum, (_, size)| sum.saturating_add(*size));
        Ok::<_, StoreError>((u64::try_from(sizes.len()).unwrap_or(u64::MAX), bytes))
    };
    let ((versions, _), (_, version_bytes)) = (sum(Class::Versions)?, sum(Class::Bodies)?);
    let (orders, order_bytes) = sum(Class::PastOrders)?;
    let (skeletons, skeleton_bytes) = sum(Class::PastSkeletons)?;
    let history = chain::history(records, feed)?;
    let ordered = ORDERS.oldest(records, feed, ORDERS.since(&history, state))?;
    let framed = SKELETONS.oldest(records, feed, SKELETONS.since(&history, state))?;
    Ok(Holdings {
        versions,
        version_bytes,
        documents: orders + skeletons,
        document_bytes: order_bytes.saturating_add(skeleton_bytes),
        back_to: Some(ordered.max(framed)),
    })
}

/// The tick that a version is stored under.
pub(super) fn tick_of(records: &Records, class: Class, key: &[u8]) -> Result<Tick, StoreError> {
    keys::version_tick(key).ok_or_else(|| records.damaged(class, key, "its key has no tick"))
}
