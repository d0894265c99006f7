//! Items that were discarded (SSE 1.0 section 4.1.2): in no view any more, and told of here.

use super::html;
use maud::{Markup, html};
use serde::Serialize;
use tidegate_core::model::{FeedName, ItemStatus, LedgerEntry, Snapshot, SyncId, Time};
use utoipa::ToSchema;

/// The most that are listed.
const DISCARDED_SHOWN: usize = 100;

/// What was discarded of a feed.
#[derive(Default, Serialize, ToSchema)]
pub(super) struct Discarded {
    /// How many there are.
    count: usize,
    /// What went last first, at most 100.
    items: Vec<DiscardedItem>,
}

#[derive(Serialize, ToSchema)]
struct DiscardedItem {
    sync_id: SyncId,
    native_id: String,
    title: String,
    since: Time,
}

impl Discarded {
    /// What a feed of which this is kept discarded.
    pub(super) fn new(snapshot: Option<&Snapshot>) -> Self {
        let since = |known: &LedgerEntry| match known.standing {
            ItemStatus::Discarded { since } => Some(since),
            _ => None,
        };
        let known = snapshot.into_iter().flat_map(|snapshot| snapshot.known.iter());
        let mut all: Vec<_> = known.filter_map(|known| Some((since(known)?, known))).collect();
        all.sort_by_key(|(since, known)| (std::cmp::Reverse(*since), &known.id));
        let item = |(since, known): &(Time, &LedgerEntry)| DiscardedItem {
            sync_id: known.id.clone(),
            native_id: known.native_shown.clone(),
            title: known.title.clone(),
            since: *since,
        };
        Self { count: all.len(), items: all.iter().take(DISCARDED_SHOWN).map(item).collect() }
    }

    /// The part of the page about the feed; nothing where nothing was discarded.
    pub(super) fn part(&self, name: &FeedName) -> Markup {
        html! {
            @if self.count > 0 {
                h2 #discarded { "Discarded" }
                p.quiet {
                    "Changes of the publisher were missed, and its complete feed does not list these any \
                     more. No view shows them but archives, and nothing says that they were deleted."
                }
                ul { @for item in &self.items {
                    li { (html::item(name, &item.sync_id, &item.title)) span.quiet { " since " time { (item.since) } } }
                } }
                @if self.count > self.items.len() {
                    p.quiet { (self.items.len()) " of " (self.count) " are shown." }
                }
            }
        }
    }
}
