//! An entry that becomes an item.

use super::draft::ChangeDraft;
use super::mint;
use super::updates::first_history;
use crate::diff;
use crate::identity::Native;
use tidegate_core::model::{Entry, ItemStatus, LedgerEntry, Noise, SyncId, Tick};

/// The item that an entry becomes (SSE 1.0 section 3.1). `taken`: which published ids are others'.
pub(super) fn newcomer(
    entry: &Entry<'_>,
    native: &Native,
    key: &str,
    id: SyncId,
    taken: impl Fn(&str) -> bool,
    draft: &ChangeDraft<'_>,
) -> LedgerEntry {
    let (updates, history) = first_history(&id, draft.stamp(), draft.before(entry));
    let (now, aged) = (draft.round.now, draft.round.aged);
    let portrait = diff::fingerprint(entry, &draft.round.options.ignore);
    let learned = draft.round.snapshot.map(|snapshot| &snapshot.state.noise);
    let noise = Noise {
        restless: learned.map_or_else(Vec::new, |noise| diff::watch(&portrait, noise, aged)),
        traces: portrait.traces,
        shape: portrait.shape,
        left: portrait.left,
        scheme: diff::SCHEME,
        ..Noise::default()
    };
    let mut known = LedgerEntry {
        native: key.to_owned(),
        native_shown: native.shown.clone(),
        published_id: mint::published_id(entry, &id, taken),
        id,
        aliases: Vec::new(),
        title: String::new(),
        link: None,
        enclosure: None,
        published: None,
        updated: None,
        updates,
        history,
        tick: Tick::at(now),
        noconflicts: None,
        sse091: None,
        extras: None,
        conflicts: 0,
        origin: tidegate_core::model::Origin::default(),
        first_seen: aged,
        came: aged,
        standing: ItemStatus::Current,
        absence: None,
        prints: portrait.prints,
        bytes: diff::bytes_print(entry),
        noise,
        // The commit says.
        touched: 0,
    };
    describe(&mut known, entry);
    known
}

/// Notes what an entry says of itself.
pub(super) fn describe(known: &mut LedgerEntry, entry: &Entry<'_>) {
    known.title = entry.title.as_deref().unwrap_or_default().to_owned();
    known.link = entry.link.as_deref().map(str::to_owned);
    known.enclosure = entry.enclosures.first().map(|e| e.clone().into_owned());
    known.published = entry.published;
    known.updated = entry.updated;
}
