//! Items that were discarded (SSE 1.0 section 4.1.2): in no view any more, and told of here.

use super::html;
use maud::{Markup, html};
use serde_json::{Value, json};
use tidegate_core::model::{FeedName, ItemStatus, LedgerEntry, Snapshot, Time};

/// The most that are listed.
const DISCARDED_SHOWN: usize = 100;

/// What was discarded, what went last first, at most so many; and how many there are.
fn discarded(snapshot: &Snapshot) -> (Vec<(Time, &LedgerEntry)>, usize) {
    let since = |known: &LedgerEntry| match known.standing {
        ItemStatus::Discarded { since } => Some(since),
        _ => None,
    };
    let mut all: Vec<_> = snapshot.known.iter().filter_map(|k| Some((since(k)?, k))).collect();
    all.sort_by_key(|(since, known)| (std::cmp::Reverse(*since), &known.id));
    let count = all.len();
    all.truncate(DISCARDED_SHOWN);
    (all, count)
}

/// For the administration API.
pub(super) fn described(snapshot: Option<&Snapshot>) -> Value {
    let (shown, count) = snapshot.map(discarded).unwrap_or_default();
    let item = |(since, known): &(Time, &LedgerEntry)| {
        json!({
            "sync_id": known.id.as_str(),
            "native_id": known.native_shown,
            "title": known.title,
            "since": *since,
        })
    };
    json!({ "count": count, "items": shown.iter().map(item).collect::<Vec<_>>() })
}

/// For the feed's page; nothing where nothing was discarded.
pub(super) fn part(name: &FeedName, snapshot: Option<&Snapshot>) -> Markup {
    let (shown, count) = snapshot.map(discarded).unwrap_or_default();
    html! {
        @if count > 0 {
            h2 #discarded { "Discarded" }
            p.quiet {
                "Changes of the publisher were missed, and its complete feed does not list these any \
                 more. No view shows them but archives, and nothing says that they were deleted."
            }
            ul { @for (since, known) in &shown {
                li { (html::item(name, &known.id, &known.title)) span.quiet { " since " time { (since) } } }
            } }
            @if count > shown.len() {
                p.quiet { (shown.len()) " of " (count) " are shown." }
            }
        }
    }
}
