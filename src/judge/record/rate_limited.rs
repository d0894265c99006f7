//! Changes that wait for their version: the cap on versions a day, and what was masked.

use super::draft::{ChangeDraft, EventDetails};
use crate::DAY;
use tidegate_core::model::{
    DayVersions, EventKind, Noise, Snapshot, Time, WaitCause, WaitingChange,
};

/// Counts a version that is being made; whatever waited comes out with it.
pub(super) fn made(noise: &mut Noise, now: Time) {
    noise.made = Some(count(noise.made, now));
    noise.unseen = None;
    noise.waiting = None;
    noise.held = false;
}

/// The day's versions with one more. A day begins with the first update in it.
pub(super) fn count(made: Option<DayVersions>, now: Time) -> DayVersions {
    let day = made.filter(|made| now.since(made.since) < DAY);
    let day = day.unwrap_or(DayVersions { since: now, versions: 0 });
    DayVersions { versions: day.versions.saturating_add(1), ..day }
}

/// Whether the day may have one more.
pub(super) fn admits(made: Option<DayVersions>, now: Time, limit: u32) -> bool {
    made.is_none_or(|made| now.since(made.since) >= DAY || made.versions < limit)
}

/// What is said of an item's change where it may make a version. Where the day has had as many as
/// it may, the change waits for the day's end, which is said once.
pub(super) fn admit(
    draft: &mut ChangeDraft<'_>,
    index: usize,
    changes: String,
) -> Option<EventDetails> {
    let (now, limit) = (draft.observation.running_now, draft.observation.versions_per_day);
    let noise = &draft.item(index)?.noise;
    let day = noise.made.filter(|made| !admits(Some(*made), now, limit));
    let Some(day) = day else {
        return Some(EventDetails::new(EventKind::Updated, format!("changed: {changes}")));
    };
    let before = noise.waiting.as_ref().filter(|waiting| waiting.cause == WaitCause::Cap);
    let (is_new, since) = (before.is_none(), before.map_or(now, |waiting| waiting.since));
    let due = day.since.plus(DAY);
    if is_new {
        let reason = format!(
            "changed: {changes}; it made {} versions since {}, as many as a day may have, so that \
             what it is at {due} comes out then as one",
            day.versions, day.since
        );
        draft.event(index, EventDetails::new(EventKind::Updated, reason));
    }
    draft.change(index, |item| {
        let cause = WaitCause::Cap;
        item.noise.waiting = Some(WaitingChange { cause, since, due, fields: changes });
    });
    None
}

/// Returns the update event of an item whose waiting change is published now: once it is due. `leaves`: the item leaves
/// the document, so a change that waits for the daily cap is published at once, and a masked one not at all.
pub(super) fn due(draft: &ChangeDraft<'_>, index: usize, leaves: bool) -> Option<EventDetails> {
    let waiting = draft.item(index)?.noise.waiting.as_ref()?;
    let WaitingChange { cause, since, due, fields } = waiting;
    let why = match cause {
        WaitCause::Cap if leaves => "before it left the document",
        WaitCause::Cap => "when it had made as many versions as a day may have",
        WaitCause::Mask => "in what never rested until now",
    };
    let comes_out =
        if leaves { *cause == WaitCause::Cap } else { *due <= draft.observation.running_now };
    let reason = format!("changed since {since}, {why}: {fields}");
    comes_out.then(|| EventDetails::new(EventKind::Updated, reason))
}

/// Lets come out what waited long enough, of items that are in no document at hand.
pub(super) fn publish_waiting(draft: &mut ChangeDraft<'_>, snapshot: &Snapshot) {
    for (index, known) in snapshot.known.iter().enumerate() {
        if known.noise.waiting.is_none() {
            continue;
        }
        if let Some(details) = due(draft, index, false) {
            draft.publish_waiting(index, details);
        }
    }
}
