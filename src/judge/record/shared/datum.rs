//! Versions in a merge: whose data they have, and what is said of them.

use crate::news;
use tidegate_core::model::{
    EndpointId, Incoming, LedgerEntry, Markup, Shared, SyncExtras, Version,
};
use tidegate_core::sync::{self, By091, Canonical};

/// Whose data a version has.
#[derive(Debug, Clone, Copy)]
pub(super) enum DataOwner<'m> {
    /// The item's newest bytes.
    Ours,
    /// The entry that is offered.
    Entry,
    /// A version that is in conflict with one of the two, where its bytes are known.
    Conflict(Option<&'m Markup>),
}

/// Data where it stands, with a fingerprint to tell equal data by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Datum<'m> {
    pub(super) owner: DataOwner<'m>,
    pub(super) print: [u8; 8],
}

impl<'m> Datum<'m> {
    pub(super) const fn new(owner: DataOwner<'m>, print: u64) -> Self {
        Self { owner, print: print.to_be_bytes() }
    }

    pub(super) fn in_conflict(markup: Option<&'m Markup>) -> Self {
        Self::new(DataOwner::Conflict(markup), markup.map_or(0, news::hash_markup))
    }

    /// Whether it is that of the entry which is offered.
    pub(super) const fn is_of_entry(&self) -> bool {
        matches!(self.owner, DataOwner::Entry)
    }
}

impl Canonical for Datum<'_> {
    fn canonical(&self) -> &[u8] {
        &self.print
    }
}

/// An item without data: what the versions are, and in which relation.
pub(super) fn bare(item: &Shared<Datum<'_>>) -> Shared<()> {
    Shared {
        winner: item.winner.with(()),
        conflicts: item.conflicts.iter().map(|c| c.with(())).collect(),
    }
}

/// Makes the ledger entry bear a version.
pub(super) fn bear<D>(known: &mut LedgerEntry, version: &Version<D>) {
    known.updates = version.updates;
    known.history = version.history.clone();
    known.noconflicts = version.noconflicts;
}

/// Why an item is what it is after a merge.
pub(super) fn reason(
    known: &LedgerEntry,
    before: &Shared<()>,
    merged: &Shared<Datum<'_>>,
) -> String {
    let is_same = merged.winner.with(()) == before.winner;
    let words = match is_same {
        true => format!("version {} stays", known.updates.value()),
        false => history_words(&merged.winner),
    };
    match merged.conflicts.len() {
        0 if is_same => format!("merged: {words}, and nothing is in conflict"),
        0 => format!("merged: {words}"),
        n => format!("merged: {words}, {n} in conflict with it"),
    }
}

/// A version as it is spoken of: its number, and who made it when.
pub(super) fn history_words<D>(version: &Version<D>) -> String {
    let stamp = &version.history.topmost().stamp;
    let mut words = format!("version {}", version.updates.value());
    if let Some(by) = stamp.by() {
        words.push_str(&format!(" by {by}"));
    }
    if let Some(when) = stamp.when() {
        words.push_str(&format!(" of {when}"));
    }
    words
}

/// An item, and its `conflict` attribute where it is known by SSE 0.91 alone.
pub(super) type MergedItem<'m> = (Shared<Datum<'m>>, Option<bool>);

/// Merges by SSE 1.0 section 3.3. If both sides are known by SSE 0.91 only, merges by its section 4.4; an item that
/// only this gateway has updated so far may count as such. The first version that arrives by 1.0 makes it an item of
/// 1.0.
pub(super) fn merged<'m>(
    own: &EndpointId,
    known: &LedgerEntry,
    local: Shared<Datum<'m>>,
    incoming: &Incoming,
    remote: Shared<Datum<'m>>,
) -> Result<MergedItem<'m>, sync::SyncError> {
    let is_made_here = known.history.iter().all(|update| update.stamp.by() == Some(own));
    let ours = known.sse091.or(is_made_here.then_some(false));
    let (Some(ours), Some(theirs)) = (ours, incoming.sse091) else {
        return Ok((sync::merge(local, remote)?, None));
    };
    let local = By091 { item: local, conflict: ours };
    let merged = sync::merge_091(local, By091 { item: remote, conflict: theirs });
    Ok((merged.item, Some(merged.conflict)))
}

/// What an offered `sx:sync` says beyond SSE (section 2.1.8), where it says anything.
pub(in crate::record) fn extras_of(incoming: &Incoming) -> Option<Box<SyncExtras>> {
    Some(&incoming.extras).filter(|extras| !extras.is_empty()).cloned().map(Box::new)
}
