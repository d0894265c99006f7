//! What differs between two versions of an item.

use super::compare::{self, Differences};
use super::query::VersionChoice;
use super::text_diff::CompareBudget;
use super::{Subject, aside, bytes_of, turn};
use crate::AppState;
use crate::problem::Problem;
use tidegate_store::VersionNote;

/// Two versions and what differs between them.
pub(super) struct VersionDifference {
    /// The older; `None`: the newest bytes, which are no version's.
    pub(super) old: Option<VersionNote>,
    /// The newer, likewise.
    pub(super) new: Option<VersionNote>,
    /// What differs; `None` where one of the two cannot be read.
    pub(super) differences: Option<Differences>,
}

/// Compares two versions. Room for it is taken before anything of them is read.
pub(super) async fn compare_versions(
    room: &AppState,
    subject: &Subject,
    old: VersionChoice,
    new: VersionChoice,
) -> Result<VersionDifference, Problem> {
    let cost = compare::cost(subject.size(old), subject.size(new));
    let turn = turn(room, cost).await?;
    let (old_note, old) = bytes_of(room, subject, old).await?;
    let (new_note, new) = bytes_of(room, subject, new).await?;
    if let Some(tombstone) = [&old_note, &new_note].into_iter().flatten().find(|n| n.deleted) {
        let said = format!(
            "version {} is a tombstone: the item was deleted, and no text of it is left to compare",
            tombstone.updates.value()
        );
        return Err(Problem::not_found(said));
    }
    let differences =
        aside(turn, move || compare::versions(&old, &new, &mut CompareBudget::whole())).await?;
    Ok(VersionDifference { old: old_note, new: new_note, differences })
}

/// What one of the two is called.
pub(super) fn name(note: Option<&VersionNote>) -> String {
    note.map_or_else(|| "newest".to_owned(), |note| note.updates.value().to_string())
}
