//! The JSON of what is not written as it is kept: the contract's words, whatever the types are called.

use super::access;
use super::address::shown;
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;
use tidegate_core::model::{
    Backfill, Character, Event, FeedOptions, FeedRecord, FeedState, Hold, LedgerEntry, ListFolder,
    ListPlace, Probe, Probing, shown_text,
};
use tidegate_judge::{self as judge, PendingAbsence};
use tidegate_status::FeedStatus;
use tidegate_store::VersionNote;

/// A value as JSON. Texts, numbers, and lists and objects of them can always be written.
pub(super) fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

/// An object with the members of another added to it.
pub(super) fn with(mut object: Value, more: Value) -> Value {
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}

/// A duration as the configuration writes it: in the largest unit that is exact.
pub(super) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(86_400, "d"), (3600, "h"), (60, "m")];
    let exact = units.iter().find(|(unit, _)| seconds >= *unit && seconds.is_multiple_of(*unit));
    let (unit, suffix) = exact.copied().unwrap_or((1, "s"));
    format!("{}{suffix}", seconds / unit)
}

fn options(options: &FeedOptions) -> Value {
    let sharing = &options.sharing;
    json!({
        "complete": options.complete,
        "deletions": options.deletions,
        "order": options.order.name(),
        "probe": match options.probe {
            Probing::Off => json!(false),
            Probing::All => json!(true),
            Probing::Doubts => json!("doubts"),
        },
        "backfill": options.backfill,
        "secret": options.secret,
        "items": options.items,
        "ignore": super::ignore::written(&options.ignore),
        "min_interval": options.min_interval.map(duration),
        "max_interval": options.max_interval.map(duration),
        "local": sharing.local,
        "title": sharing.title,
        "sources": sharing.sources,
        "shares_with": sharing.shares_with,
        "conflicts": sharing.conflicts.to_string(),
    })
}

/// What the operator says of a feed, as `PUT` takes it back.
pub(super) fn feed_options(status: &FeedStatus) -> Value {
    let options = with(options(&status.options), access::shown(status.access.as_deref()));
    with(options, json!({ "private": status.private, "add_feeds": status.adds_feeds }))
}

/// What is known of a feed without its ledger; `record`: as the list of subscriptions has it; `contested`: how many
/// items are in conflict, where that is known.
pub(super) fn feed(
    status: &FeedStatus,
    record: Option<&FeedRecord>,
    state: Option<&FeedState>,
    contested: Option<u32>,
) -> Value {
    let walk = status.polling.backfill.as_ref();
    let more = json!({
        "options": feed_options(status),
        "backfill": walk.map(|walk| backfill(walk, status.options.secret)),
        "listed": record.map(listed),
        "on_demand": record.and_then(|record| record.on_demand.as_ref()).map(|made| {
            json!({ "site": made.site, "asked": made.asked, "let_go": made.is_let_go })
        }),
        "state": state.map(|state| feed_state(state, status.pending_absences)),
        "conflicts": contested,
        "failing_since": status.polling.failing_since(),
        "last_read": status.polling.last_read,
        "last_error": status.polling.error(),
    });
    with(value(status), more)
}

/// Where the list of subscriptions has a feed, and what it is called there.
fn listed(record: &FeedRecord) -> Value {
    let shown = |text: &str| shown_text(text, record.options.secret);
    let place = |place: &ListPlace| {
        let name = |folder: &ListFolder| {
            folder.label.name().map(|name| shown_text(name, None)).unwrap_or_default()
        };
        let label = record.shown_label(Some(place));
        json!({
            "folder": place.folders.iter().map(name).collect::<Vec<_>>(),
            "text": label.text,
            "title": label.title,
        })
    };
    json!({
        "title": record.enrolment.title.as_deref().map(shown),
        "places": record.enrolment.places.iter().map(place).collect::<Vec<_>>(),
    })
}

/// How far the walk through older documents has come; `secret` is what the operator says of the feed's
/// address.
fn backfill(walk: &Backfill, secret: Option<bool>) -> Value {
    json!({
        "state": walk.standing,
        "layout": walk.trail,
        "documents": walk.documents,
        "items": walk.items,
        "known": walk.known,
        "bytes": walk.bytes,
        "next": walk.next.as_deref().filter(|_| walk.is_walking()).map(|next| shown(next, secret)),
        "failures": walk.failures,
        "started": walk.started,
        "ended": walk.ended,
        "note": walk.note,
    })
}

/// What has been learned of a feed.
pub(super) fn character(character: &Character) -> Value {
    with(value(character), json!({ "words": judge::character_words(character) }))
}

/// A document that is held back.
pub(super) fn hold(hold: &Hold) -> Value {
    let terms = judge::hold_terms(&hold.kind);
    json!({
        "reason": hold.reason,
        "kind": hold.kind,
        "since": hold.since,
        "observations": hold.observations,
        "needed": terms.looks,
        "believed_at": hold.since.plus(terms.least),
        "documents": hold.documents,
        "kept": hold.kept,
        "decision": hold.decision,
        "words": judge::hold_words(hold),
    })
}

/// An item that waits for a conclusion.
pub(super) fn pending(pending: &PendingAbsence) -> Value {
    json!({
        "sync_id": pending.id,
        "native_id": pending.native_id,
        "title": pending.title,
        "evidence": pending.evidence,
        "reason": pending.seen,
        "since": pending.since,
        "observations": pending.observations,
        "needed": pending.needed,
        "decides_at": pending.decides_at,
        "would": pending.would.name(),
        "probe": pending.probe.as_ref().map(probe),
        "words": pending.describe(),
    })
}

/// What a missing item's own address said.
fn probe(probe: &Probe) -> Value {
    json!({
        "asked": probe.asked,
        "last": probe.last,
        "answer": probe.heard.map(|heard| if heard.gone { "gone" } else { "there" }),
        "status": probe.heard.map(|heard| heard.status),
        "since": probe.heard.map(|heard| heard.first),
        "silence": probe.silence,
    })
}

/// How many items of a feed are retired where so many are missing: neither is in the reader view, and both live.
pub(super) const fn retired(state: &FeedState, missing: u32) -> u32 {
    state.living.saturating_sub(state.current).saturating_sub(missing)
}

/// What the store knows of a feed of which so many items are missing.
fn feed_state(state: &FeedState, missing: u32) -> Value {
    let chain = &state.archives;
    json!({
        "revision": state.revision,
        "until": state.tick,
        "window": { "since": state.window_start, "until": state.tick },
        "complete_since": state.complete_start,
        "shown": state.updated_at,
        "format": state.format.name(),
        "says_complete": state.says_complete,
        "counts": {
            "current": state.current,
            "living": state.living,
            "missing": missing,
            "retired": retired(state, missing),
            "tombstones": state.tombstones,
        },
        "evicted": {
            "count": state.evictions.count,
            "since": state.evictions.since,
            "latest": state.evictions.latest,
        },
        "archives": {
            "kept": chain.kept(),
            "dropped": chain.first,
            "bytes": chain.bytes,
            "unsealed": chain.unsealed,
            "sealed_until": chain.sealed,
        },
        "character": character(&state.character),
        "hold": state.hold.as_ref().map(hold),
        "ripens": state.next_decision_at,
    })
}

/// Something that happened to an item; what only some kinds of events have is left out of others.
pub(super) fn event(event: &Event) -> Value {
    let mut event = value(event);
    if let Some(event) = event.as_object_mut() {
        let of_some = |key: &String| matches!(key.as_str(), "old_native_id" | "seen_gone");
        event.retain(|key, value| !(value.is_null() && of_some(key)));
    }
    event
}

/// What the ledger knows of an item beside its versions.
pub(super) fn known(known: &LedgerEntry) -> Value {
    json!({
        "native_id": known.native_shown,
        "former_native_ids": known.aliases,
        "published": known.published,
        "upstream_updated": known.updated,
        "first_seen": known.first_seen,
        "no_news": known.noise.describe(),
    })
}

/// A version of an item.
pub(super) fn version(note: &VersionNote) -> Value {
    json!({
        "updates": note.updates,
        "sequence": note.update.sequence,
        "when": note.update.stamp.when(),
        "by": note.update.stamp.by(),
        "deleted": note.deleted,
        "tick": note.tick,
        "shown": note.shown,
        "size": note.size,
        "title": note.title,
        "reason": note.reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_they_are_read() {
        for (seconds, text) in
            [(0, "0s"), (90, "90s"), (300, "5m"), (7200, "2h"), (86_400, "1d"), (90_000, "25h")]
        {
            assert_eq!(duration(Duration::from_secs(seconds)), text);
            assert_eq!(tidegate_config::duration(text).unwrap(), Duration::from_secs(seconds));
        }
    }
}
