//! An item with its versions, as data.

use super::{Subject, standing};
use crate::answers::{EventAnswer, PendingItem};
use serde::Serialize;
use tidegate_core::model::{Count, EndpointId, FeedName, SyncId, Tick, Time, Update};
use tidegate_judge::PendingAbsence;
use tidegate_store::VersionNote;
use utoipa::ToSchema;

/// What everybody may know of an item with its versions.
#[derive(Serialize, ToSchema)]
pub(super) struct ItemFacts {
    feed: FeedName,
    sync_id: SyncId,
    published_id: String,
    aliases: Vec<String>,
    title: String,
    link: Option<String>,
    first_seen: Time,
    standing: &'static str,
    standing_since: Option<Time>,
    redacted: bool,
    kept_out: bool,
    #[schema(value_type = u32)]
    updates: Count,
    deleted: bool,
    tick: Tick,
    history: Vec<HistoryEntry>,
    conflicts: usize,
    versions: Vec<ItemVersion>,
}

/// An update of an item's history (SSE 1.0 section 2.5).
#[derive(Serialize, ToSchema)]
struct HistoryEntry {
    #[schema(value_type = u32)]
    sequence: Count,
    when: Option<Time>,
    #[schema(value_type = Option<String>)]
    by: Option<EndpointId>,
}

impl From<&Update> for HistoryEntry {
    fn from(update: &Update) -> Self {
        let (when, by) = (update.stamp.when(), update.stamp.by().cloned());
        Self { sequence: update.sequence, when, by }
    }
}

/// All that is known of an item.
#[derive(Serialize, ToSchema)]
#[schema(as = Item)]
pub(crate) struct ItemDetail {
    #[serde(flatten)]
    facts: ItemFacts,
    native_id: String,
    former_native_ids: Vec<String>,
    published: Option<Time>,
    upstream_updated: Option<Time>,
    no_news: Vec<String>,
    pending: Option<PendingItem>,
    events: Vec<EventAnswer>,
}

/// A version of an item.
#[derive(Serialize, ToSchema)]
struct ItemVersion {
    #[schema(value_type = u32)]
    updates: Count,
    #[serde(flatten)]
    update: HistoryEntry,
    deleted: bool,
    tick: Tick,
    shown: Time,
    size: u64,
    title: String,
    reason: String,
    /// The address of its bytes.
    bytes: Option<String>,
    /// The address of what differs from the version before.
    diff: Option<String>,
}

impl ItemFacts {
    /// An item with its versions; `base`: the address of this gateway.
    pub(super) fn new(base: &str, subject: &Subject) -> Self {
        let Subject { feed, item, known, versions } = subject;
        let winner = &item.shared.winner;
        let (standing, standing_since) = standing(&item.standing);
        let address = format!("{base}{}", subject.address());
        // What could lead to a text that was removed is kept, and not shown.
        let shown = Some(known).filter(|known| !known.is_redacted());
        let version = |note| ItemVersion::new(&address, subject, note);
        Self {
            feed: feed.clone(),
            sync_id: winner.id.clone(),
            published_id: item.published_id.clone(),
            aliases: shown.map(|known| known.aliases.clone()).unwrap_or_default(),
            title: winner.data.card.title.clone(),
            link: shown.and_then(|known| known.link.clone()),
            first_seen: known.first_seen,
            standing,
            standing_since,
            redacted: known.is_redacted(),
            kept_out: known.is_redacted(),
            updates: winner.updates,
            deleted: winner.deleted,
            tick: item.tick,
            history: winner.history.iter().map(HistoryEntry::from).collect(),
            conflicts: item.shared.conflicts.len(),
            versions: versions.iter().map(version).collect(),
        }
    }
}

impl ItemDetail {
    /// All that is known of an item; `base`: the address of this gateway.
    pub(super) fn new(
        base: &str,
        subject: &Subject,
        pending: Option<&PendingAbsence>,
        events: Vec<EventAnswer>,
    ) -> Self {
        let known = &subject.known;
        Self {
            facts: ItemFacts::new(base, subject),
            native_id: known.native_shown.clone(),
            former_native_ids: known.aliases.clone(),
            published: known.published,
            upstream_updated: known.updated,
            no_news: known.noise.describe(),
            pending: pending.map(PendingItem::from),
            events,
        }
    }
}

impl ItemVersion {
    fn new(address: &str, subject: &Subject, note: &VersionNote) -> Self {
        let number = note.updates.value();
        let has_bytes = subject.has_bytes(note);
        let before = subject.before(note).filter(|_| has_bytes);
        Self {
            updates: note.updates,
            update: (&note.update).into(),
            deleted: note.deleted,
            tick: note.tick,
            shown: note.shown,
            size: note.size,
            title: note.title.clone(),
            reason: note.reason.clone(),
            bytes: has_bytes.then(|| format!("{address}?version={number}")),
            diff: before.map(|old| format!("{address}?diff={}..{number}", old.updates.value())),
        }
    }
}
