//! The JSON of conflicts.

use super::{Contest, Contests, LOSERS_SHOWN};
use crate::address::item_page;
use crate::items;
use crate::json::with;
use serde_json::{Value, json};
use tidegate_core::model::{Markup, Version};
use tidegate_core::xml::address::percent_encoded;

/// Items in conflict; `base`: the address of this gateway.
pub(super) fn contests(base: &str, contests: &Contests) -> Value {
    let feed = &contests.feed;
    let items: Vec<Value> = contests.shown.iter().map(|one| contest(base, contests, one)).collect();
    let more = contests
        .more
        .as_ref()
        .map(|id| format!("{base}/feeds/{feed}/conflicts?after={}", percent_encoded(id.as_str())));
    json!({ "feed": feed.as_str(), "count": contests.all, "conflicts": items, "next": more })
}

fn contest(base: &str, contests: &Contests, contest: &Contest) -> Value {
    let shared = &contest.item.shared;
    let losers = shared.conflicts.iter().take(LOSERS_SHOWN).enumerate().map(|(number, loser)| {
        let differences = contest.differences.get(number).and_then(Option::as_ref);
        with(version(loser), json!({ "n": number, "differences": differences.map(items::told) }))
    });
    let id = &shared.winner.id;
    json!({
        "sync_id": id.as_str(),
        "published_id": contest.item.published_id,
        "page": format!("{base}{}", item_page(&contests.feed, id)),
        "etag": contest.tag,
        "noconflicts": shared.winner.noconflicts,
        "winner": version(&shared.winner),
        "count": shared.conflicts.len(),
        "conflicts": losers.collect::<Vec<_>>(),
    })
}

/// A version with its bytes.
fn version(version: &Version<Markup>) -> Value {
    let topmost = version.history.topmost();
    let card = &version.data.card;
    json!({
        "updates": version.updates.value(),
        "sequence": topmost.sequence.value(),
        "when": topmost.stamp.when(),
        "by": topmost.stamp.by(),
        "deleted": version.deleted,
        "title": card.title,
        "link": card.link,
        "author": card.author,
        "published": card.published,
        "updated": card.updated,
        "format": version.data.format.name(),
        "markup": version.data.xml,
    })
}
