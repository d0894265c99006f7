//! The JSON of this module, spelled out by hand: the contract's words, whatever the types are called.

use super::address::shown;
use super::operator::{
    Counts, DocumentNote, FeedStatus, GatherNote, HubNote, NextPoll, PollNote, PollReport,
    ProbeNote,
};
use crate::judge::{self, PendingAbsence, Quiet};
use crate::model::{
    ArchiveLayout, Backfill, Chain, Character, Decision, Deletions, Event, FeedName, FeedOptions,
    FeedRecord, FeedSource, FeedStanding, FeedState, Hold, LedgerEntry, ListFolder, ListPlace,
    Probe, SyncId, Tick, Time, shown_text,
};
use crate::store::VersionNote;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// A time or its absence.
pub(super) fn time(time: Option<Time>) -> Value {
    time.map_or(Value::Null, |time| time.to_string().into())
}

/// A tick or its absence.
pub(super) fn tick(tick: Option<Tick>) -> Value {
    time(tick.map(Tick::time))
}

/// The word for who added a feed.
pub(super) const fn source(source: FeedSource) -> &'static str {
    match source {
        FeedSource::File => "file",
        FeedSource::CommandLine => "command_line",
        FeedSource::Api => "api",
    }
}

/// The word for whether a feed is polled and served.
pub(super) const fn standing(standing: FeedStanding) -> &'static str {
    match standing {
        FeedStanding::Active => "active",
        FeedStanding::Paused => "paused",
        FeedStanding::Gone => "gone",
    }
}

/// A duration as the configuration writes it: in the largest unit that is exact.
pub(super) fn duration(duration: Option<Duration>) -> Value {
    let Some(duration) = duration else { return Value::Null };
    let seconds = duration.as_secs();
    let units = [(86_400, "d"), (3600, "h"), (60, "m")];
    let exact = units.iter().find(|(unit, _)| seconds >= *unit && seconds % unit == 0);
    let (unit, suffix) = exact.copied().unwrap_or((1, "s"));
    format!("{}{suffix}", seconds / unit).into()
}

fn options(options: &FeedOptions) -> Value {
    json!({
        "complete": options.complete,
        "deletions": match options.deletions {
            Deletions::Safe => "safe",
            Deletions::Eager => "eager",
            Deletions::Off => "off",
        },
        "order": options.order.name(),
        "probe": options.probe,
        "backfill": options.backfill,
        "secret": options.secret,
        "ignore": super::ignore::written(&options.ignore),
        "min_interval": duration(options.min_interval),
        "max_interval": duration(options.max_interval),
        "local": options.sharing.local,
        "title": options.sharing.title,
        "sources": names(&options.sharing.sources),
        "shares_with": names(&options.sharing.shares_with),
        "conflicts": options.sharing.conflicts.to_string(),
    })
}

fn names(names: &[FeedName]) -> Vec<&str> {
    names.iter().map(FeedName::as_str).collect()
}

fn counts(counts: &Counts) -> Map<String, Value> {
    let pairs = [
        ("created", counts.created),
        ("updated", counts.updated),
        ("deleted", counts.deleted),
        ("undeleted", counts.undeleted),
        ("retired", counts.retired),
        ("returned", counts.returned),
        ("rekeyed", counts.rekeyed),
    ];
    pairs.into_iter().map(|(name, number)| (name.to_owned(), number.into())).collect()
}

/// What a poll on request answers (CONTRACT, Administration API).
pub(super) fn report(report: &PollReport) -> Value {
    let mut object = counts(&report.counts);
    object.insert("outcome".to_owned(), report.outcome.name().into());
    object.insert("held".to_owned(), json!(report.held));
    object.insert("until".to_owned(), tick(report.until));
    object.insert("error".to_owned(), json!(report.error));
    Value::Object(object)
}

fn poll(note: &PollNote) -> Value {
    let mut object = counts(&note.counts);
    object.insert("at".to_owned(), time(Some(note.at)));
    object.insert("outcome".to_owned(), note.outcome.name().into());
    object.insert("error".to_owned(), json!(note.error));
    object.insert("blame".to_owned(), json!(note.blame.map(super::Blame::name)));
    object.insert("status".to_owned(), json!(note.status));
    let milliseconds = u64::try_from(note.duration.as_millis()).unwrap_or(u64::MAX);
    object.insert("duration_ms".to_owned(), milliseconds.into());
    object.insert("bytes".to_owned(), note.bytes.into());
    object.insert("rewritten".to_owned(), note.rewritten.into());
    object.insert("entries".to_owned(), json!(note.entries));
    object.insert("notes".to_owned(), json!(note.notes));
    Value::Object(object)
}

fn probe_note(note: &ProbeNote) -> Value {
    let mut object = counts(&note.counts);
    object.insert("at".to_owned(), time(Some(note.at)));
    object.insert("requests".to_owned(), note.requests.into());
    object.insert("said".to_owned(), json!(note.said));
    Value::Object(object)
}

fn next_poll(next: &NextPoll) -> Value {
    json!({ "at": time(Some(next.at)), "why": next.why })
}

/// What polling knows of a feed.
pub(super) fn status(status: &FeedStatus) -> Map<String, Value> {
    let polls: Vec<Value> = status.last_polls.iter().map(poll).collect();
    let probes: Vec<Value> = status.last_probes.iter().map(probe_note).collect();
    let object = json!({
        "name": status.name.as_str(),
        "url": Some(&status.url).filter(|url| !url.is_empty()),
        "source": source(status.source),
        "standing": standing(status.standing),
        "options": options(&status.options),
        "last_polls": polls,
        "probing": status.probing,
        "last_probes": probes,
        "next_poll": status.next_poll.as_ref().map(next_poll),
        "failures": status.failures,
        "moved_to": status.moved_to,
        "held": status.held,
        "pending_absences": status.pending_absences,
        "backfill": status.backfill.as_ref().map(|walk| backfill(walk, status.options.secret)),
        "hub": status.hub.as_ref().map(|note| hub(note, status.options.secret)),
        "gathered": status.gathered.as_ref().map(gathered),
    });
    match object {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// Where the list of subscriptions has a feed, and what it is called there.
pub(super) fn listed(record: &FeedRecord) -> Value {
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
        "title": record.enrolment.title.as_deref().map(|title| shown_text(title, record.options.secret)),
        "places": record.enrolment.places.iter().map(place).collect::<Vec<_>>(),
    })
}

/// What an aggregate does not have of its sources.
fn gathered(note: &GatherNote) -> Value {
    let trouble =
        |(source, why): &(FeedName, String)| json!({ "source": source.as_str(), "why": why });
    let left_out = |(source, id, why): &(FeedName, SyncId, String)| json!({ "source": source.as_str(), "sync_id": id.as_str(), "why": why });
    json!({
        "troubles": note.troubles.iter().map(trouble).collect::<Vec<_>>(),
        "troubled_sources": note.troubled,
        "left_out": note.left_out.iter().map(left_out).collect::<Vec<_>>(),
        "error": note.error,
    })
}

/// The subscription to the hub that the upstream names; `secret` is what the operator says of its
/// address.
fn hub(note: &HubNote, secret: Option<bool>) -> Value {
    let others: Vec<String> = note.others.iter().map(|hub| shown(hub, None)).collect();
    let last = note.last_disbelieved.as_ref();
    json!({
        "state": note.state,
        "words": note.words,
        "hub": shown(&note.hub, None),
        "others": others,
        "topic": shown(&note.topic, secret),
        "lease_until": time(note.until),
        "next_request": time(Some(note.next)),
        "trust": note.trust.name(),
        "heard_in_a_row": note.heard,
        "silent_in_a_row": note.silent,
        "pushes": note.pushes,
        "last_push": time(note.last_push),
        "disbelieved_pushes": note.disbelieved,
        "last_disbelieved": last.map(|(at, why)| json!({ "at": time(Some(*at)), "why": why })),
    })
}

/// How far the walk through older documents has come; `secret` is what the operator says of the feed's
/// address.
fn backfill(walk: &Backfill, secret: Option<bool>) -> Value {
    json!({
        "state": walk.standing.name(),
        "layout": walk.trail.map(ArchiveLayout::name),
        "documents": walk.documents,
        "items": walk.items,
        "known": walk.known,
        "bytes": walk.bytes,
        "next": walk.next.as_deref().filter(|_| walk.is_walking()).map(|next| shown(next, secret)),
        "failures": walk.failures,
        "started": time(Some(walk.started)),
        "ended": time(walk.ended),
        "note": walk.note,
    })
}

/// What has been learned of a feed.
pub(super) fn character(character: &Character) -> Value {
    json!({
        "words": judge::character_words(character),
        "documents": character.documents,
        "largest": character.largest,
        "kept_order": character.kept_order,
        "reordered": character.reordered,
        "grew_above": character.grew_above,
        "grew_below": character.grew_below,
        "holes_returned": character.holes_returned,
        "left_middle": character.left_middle,
        "left_end": character.left_end,
        "came_alone": character.came_alone,
        "came_sliding": character.came_sliding,
        "came_swapping": character.came_swapping,
        "went_alone": character.went_alone,
    })
}

/// The feed's archives.
fn archives(chain: &Chain) -> Value {
    json!({
        "kept": chain.kept(),
        "dropped": chain.first,
        "bytes": chain.bytes,
        "unsealed": chain.unsealed,
        "sealed_until": tick(chain.sealed),
    })
}

/// A document that is held back.
pub(super) fn hold(hold: &Hold) -> Value {
    let terms = judge::hold_terms(&hold.kind);
    json!({
        "reason": hold.reason,
        "kind": hold.kind,
        "since": time(Some(hold.since)),
        "observations": hold.observations,
        "needed": terms.looks,
        "believed_at": time(Some(hold.since.plus(terms.least))),
        "documents": hold.documents,
        "kept": hold.kept,
        "decision": hold.decision.map(|decision| match decision {
            Decision::Release => "release",
            Decision::Drop => "drop",
        }),
        "words": judge::hold_words(hold),
    })
}

/// An item that waits for a conclusion.
pub(super) fn pending(pending: &PendingAbsence) -> Value {
    json!({
        "sync_id": pending.id.as_str(),
        "native_id": pending.native_id,
        "title": pending.title,
        "evidence": pending.evidence.name(),
        "reason": pending.seen,
        "since": time(Some(pending.since)),
        "observations": pending.observations,
        "needed": pending.needed,
        "decides_at": time(Some(pending.decides_at)),
        "would": pending.would.name(),
        "probe": pending.probe.as_ref().map(probe),
        "words": pending.describe(),
    })
}

/// What a missing item's own address said.
fn probe(probe: &Probe) -> Value {
    json!({
        "asked": probe.asked,
        "last": time(Some(probe.last)),
        "answer": probe.heard.map(|heard| if heard.gone { "gone" } else { "there" }),
        "status": probe.heard.map(|heard| heard.status),
        "since": time(probe.heard.map(|heard| heard.first)),
        "silence": probe.silence,
    })
}

/// An item that changed without making a version.
pub(super) fn quiet(quiet: &Quiet) -> Value {
    json!({
        "sync_id": quiet.id.as_str(),
        "native_id": quiet.native_id,
        "title": quiet.title,
        "words": quiet.words,
    })
}

/// A document that was looked at.
pub(super) fn document(note: &DocumentNote) -> Value {
    json!({
        "at": time(Some(note.at)),
        "entries": note.entries,
        "partial": note.partial,
        "warnings": note.warnings,
    })
}

/// What the store knows of a feed.
pub(super) fn state(state: &FeedState) -> Value {
    json!({
        "revision": state.revision.0,
        "until": tick(state.tick),
        "window": { "since": tick(state.window_start), "until": tick(state.tick) },
        "complete_since": tick(state.complete_start),
        "shown": time(Some(state.updated_at)),
        "format": state.format.name(),
        "says_complete": state.says_complete,
        "counts": {
            "current": state.current,
            "living": state.living,
            "retired": state.living.saturating_sub(state.current),
            "tombstones": state.tombstones,
        },
        "archives": archives(&state.archives),
        "character": character(&state.character),
        "hold": state.hold.as_ref().map(hold),
        "ripens": time(state.next_decision_at),
    })
}

/// Something that happened to an item.
pub(super) fn event(event: &Event) -> Value {
    let mut object = json!({
        "kind": event.kind.name(),
        "sync_id": event.id.as_str(),
        "native_id": event.native_id,
        "title": event.title,
        "tick": tick(event.tick),
        "reason": event.reason,
        "at": time(Some(event.at)),
    });
    if let Some(object) = object.as_object_mut() {
        if let Some(old) = &event.old_native_id {
            object.insert("old_native_id".to_owned(), old.as_str().into());
        }
        if event.seen_gone.is_some() {
            object.insert("seen_gone".to_owned(), time(event.seen_gone));
        }
    }
    object
}

/// What the ledger knows of an item beside its versions.
pub(super) fn known(known: &LedgerEntry) -> Map<String, Value> {
    let object = json!({
        "native_id": known.native_shown,
        "former_native_ids": known.aliases,
        "published": time(known.published),
        "upstream_updated": time(known.updated),
        "first_seen": time(Some(known.first_seen)),
        "no_news": known.noise.describe(),
    });
    match object {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// A version of an item.
pub(super) fn version(note: &VersionNote) -> Value {
    json!({
        "updates": note.updates.value(),
        "sequence": note.update.sequence.value(),
        "when": time(note.update.stamp.when()),
        "by": note.update.stamp.by().map(crate::model::EndpointId::as_str),
        "deleted": note.deleted,
        "tick": tick(Some(note.tick)),
        "shown": time(Some(note.shown)),
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
            assert_eq!(duration(Some(Duration::from_secs(seconds))), text);
            assert_eq!(super::super::put::duration(text).unwrap(), Duration::from_secs(seconds));
        }
    }
}
