//! The JSON of items and of what differs between their versions.

use super::compare::Differences;
use super::difference::{VersionDifference, name};
use super::text_diff::Fate;
use super::{Subject, standing};
use crate::json;
use serde_json::{Value, json};
use tidegate_core::model::Absence;
use tidegate_store::VersionNote;

/// An item with its versions; `base`: the address of this gateway.
pub(super) fn item(base: &str, subject: &Subject) -> Value {
    let Subject { feed, item, known, versions } = subject;
    let winner = &item.shared.winner;
    let (word, since) = standing(&item.standing);
    let address = format!("{base}{}", subject.address());
    let history = winner.history.iter().map(|update| {
        json!({
            "sequence": update.sequence.value(),
            "when": update.stamp.when(),
            "by": update.stamp.by(),
        })
    });
    // What could lead to a text that was removed is kept, and not shown.
    let shown = Some(known).filter(|known| !known.is_redacted());
    let versions = versions.iter().map(|note| version(&address, subject, note));
    json!({
        "feed": feed,
        "sync_id": winner.id,
        "published_id": item.published_id,
        "native_id": shown.map(|known| &known.native_shown),
        "aliases": shown.map(|known| &known.aliases[..]).unwrap_or_default(),
        "title": winner.data.card.title,
        "link": shown.and_then(|known| known.link.as_deref()),
        "first_seen": known.first_seen,
        "standing": word,
        "standing_since": since,
        "pending": known.absence.as_ref().map(pending),
        "redacted": known.is_redacted(),
        "kept_out": known.is_redacted(),
        "updates": winner.updates,
        "deleted": winner.deleted,
        "tick": item.tick,
        "history": history.collect::<Vec<_>>(),
        "conflicts": item.shared.conflicts.len(),
        "versions": versions.collect::<Vec<_>>(),
    })
}

/// Why an item is missing with nothing concluded yet.
fn pending(absence: &Absence) -> Value {
    json!({
        "evidence": absence.evidence,
        "since": absence.since,
        "observations": absence.observations,
    })
}

fn version(address: &str, subject: &Subject, note: &VersionNote) -> Value {
    let number = note.updates.value();
    let has_bytes = subject.has_bytes(note);
    let bytes = has_bytes.then(|| format!("{address}?version={number}"));
    let before = subject.before(note).filter(|_| has_bytes);
    let diff = before.map(|old| format!("{address}?diff={}..{number}", old.updates.value()));
    json::with(json::version(note), json!({ "bytes": bytes, "diff": diff }))
}

/// What differs between two versions.
pub(super) fn difference(subject: &Subject, difference: &VersionDifference) -> Value {
    let differences = difference.differences.as_ref();
    json!({
        "feed": subject.feed,
        "sync_id": subject.known.id,
        "old": name(difference.old.as_ref()),
        "new": name(difference.new.as_ref()),
        "fields": differences.map(fields),
        "same_fields": differences.map(|differences| differences.same),
        "more_fields": differences.map(|differences| differences.more),
    })
}

/// What differs, field by field.
pub(crate) fn fields(differences: &Differences) -> Vec<Value> {
    let fields = differences.fields.iter().map(|field| {
        let pieces = field.compared.pieces.iter().map(|piece| match piece.fate {
            Fate::Same => json!({ "same": piece.text }),
            Fate::Gone => json!({ "deleted": piece.text }),
            Fate::New => json!({ "inserted": piece.text }),
            Fate::Skipped(words) => json!({ "skipped_words": words }),
        });
        json!({
            "name": field.name,
            "path": field.path,
            "is_markup": field.is_markup,
            "limit": field.compared.limit,
            "pieces": pieces.collect::<Vec<_>>(),
        })
    });
    fields.collect()
}
