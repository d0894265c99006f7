//! What becomes of an item that is missing.

use super::draft::{Draft, Said};
use crate::judge::{self, Conclusion};
use crate::model::{Absence, EventKind, Standing};

/// Concludes from an item's absence; false where it is too early.
pub(super) fn conclude(
    draft: &mut Draft<'_>,
    at: usize,
    absence: &Absence,
    observations: u32,
    seen: &str,
) -> bool {
    let now = draft.round.now;
    let conclusion = judge::conclude(absence, observations, draft.round.options.deletions, now);
    let stood = now.since(absence.since).as_secs() / 3600;
    let mut words = if stood > 0 {
        format!("{seen}; so for {stood} hours in {observations} observations")
    } else {
        seen.to_owned()
    };
    if let Some(probe) = &absence.probe {
        let link = draft.item(at).and_then(|item| item.link.as_deref());
        words = format!("{words}; {}", judge::probe::told(probe, link));
    }
    match conclusion {
        Conclusion::Wait => return false,
        Conclusion::Retire => {
            draft.change(at, |item| {
                item.standing = Standing::Retired { since: now };
                item.absence = None;
            });
            draft.event(at, Said::new(EventKind::Retired, words));
        }
        Conclusion::Delete => {
            let said =
                Said { seen_gone: Some(absence.since), ..Said::new(EventKind::Deleted, words) };
            draft.update(at, Standing::Deleted { since: now }, None, said);
        }
    }
    true
}
