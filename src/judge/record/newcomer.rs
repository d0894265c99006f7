//! An entry that becomes an item.

use super::draft::ChangeDraft;
use super::updates::first_history;
use super::{Observation, mint};
use crate::news;
use tidegate_core::model::{Entry, ItemStatus, LedgerEntry, Markup, Noise, SyncId, Tick};

/// The item that an entry becomes (SSE 1.0 section 3.1). `taken`: which published ids are others'.
pub(super) fn newcomer(
    entry: &Entry<'_>,
    native: &str,
    id: SyncId,
    taken: impl Fn(&str) -> bool,
    draft: &ChangeDraft<'_>,
) -> LedgerEntry {
    let (updates, history) = first_history(&id, draft.stamp(), draft.max_earlier_updates(entry));
    let (now, running_now) = (draft.observation.now, draft.observation.running_now);
    let mut known = LedgerEntry {
        native_shown: native.to_owned(),
        published_id: mint::published_id(entry, &id, taken),
        id,
        aliases: Vec::new(),
        title: String::new(),
        link: None,
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
        first_seen: running_now,
        came: running_now,
        standing: ItemStatus::Current,
        absence: None,
        prints: Vec::new(),
        bytes: news::hash_entry(entry),
        noise: Noise::default(),
        // The commit says.
        touched: 0,
    };
    resemble(&mut known, entry, draft.observation);
    known
}

/// Notes what an entry says of itself and how it looks, but for its bytes.
pub(super) fn resemble(known: &mut LedgerEntry, entry: &Entry<'_>, observation: &Observation<'_>) {
    describe(known, entry);
    news::fingerprint(entry, &observation.options.ignore).store_in(known);
}

/// Notes what a version says that was in conflict.
pub(super) fn quote(known: &mut LedgerEntry, markup: &Markup) {
    known.title.clone_from(&markup.card.title);
    known.link.clone_from(&markup.card.link);
    (known.published, known.updated) = (markup.card.published, markup.card.updated);
    if known.origin.is_shared() {
        known.prints.clear();
        known.bytes = news::hash_markup(markup);
    }
}

/// Notes what an entry says of itself.
pub(super) fn describe(known: &mut LedgerEntry, entry: &Entry<'_>) {
    known.title = entry.title.as_deref().unwrap_or_default().to_owned();
    known.link = entry.link.as_deref().map(str::to_owned);
    known.published = entry.published;
    known.updated = entry.updated;
}
