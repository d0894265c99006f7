//! Entries that were seen only in held documents: kept while the hold stands, and what becomes of
//! them when it ends (JUDGEMENT, Brakes).

use super::draft::ChangeDraft;
use super::held::has_moved;
use super::newcomer::newcomer;
use crate::JudgeInput;
use crate::document::OTHER_FEED;
use crate::same_item;
use foldhash::HashSet;
use tidegate_core::model::{Completeness, FeedDocument, Format, HeldEntry, Snapshot, SyncId};

/// An entry that comes out with the document that ends a hold, which does not have it.
pub(super) struct ReleasedEntry {
    pub(super) kept: HeldEntry,
    /// What it calls itself.
    pub(super) native: String,
}

/// Keeps what is new in a held document, but for `news`, the entries that are let in.
pub(super) fn keep(input: &JudgeInput<'_>, draft: &mut ChangeDraft<'_>, news: &[usize]) {
    let foreign = draft.state.hold.as_ref().is_some_and(|hold| hold.kind == OTHER_FEED);
    let before = &input.snapshot.kept;
    let mut kept = before.clone();
    if has_moved(draft) {
        kept.retain(|kept| !kept.foreign);
    }
    let document = input.document;
    let seen = same_item::matching(&ledger(&kept, draft), document, draft.observation.options);
    for pair in &seen.pairs {
        if let (Some(kept), Some(entry)) =
            (kept.get_mut(pair.known), document.entries.get(pair.entry))
        {
            kept.foreign &= foreign;
            kept.entry = entry.detached();
            kept.format = document.format;
        }
    }
    let news: HashSet<usize> = news.iter().copied().collect();
    let let_in = seen.pairs.iter().filter(|pair| news.contains(&pair.entry));
    let let_in: HashSet<usize> = let_in.map(|pair| pair.known).collect();
    let mut at = 0..;
    kept.retain(|_| at.next().is_some_and(|at| !let_in.contains(&at)));
    let mut room = HeldEntry::BYTES_LIMIT.saturating_sub(kept.iter().map(HeldEntry::size).sum());
    // From the last, which mostly is the first to go from the document.
    for at in input.matching.fresh.iter().rev().filter(|at| seen.fresh.contains(at)) {
        let Some(entry) = document.entries.get(*at) else { continue };
        if news.contains(at) || is_damaged(input, *at) {
            continue;
        }
        let new = HeldEntry {
            entry: entry.detached(),
            format: document.format,
            since: input.now,
            foreign,
        };
        let size = new.size();
        if kept.len() < HeldEntry::ENTRIES_LIMIT && size <= room {
            room -= size;
            kept.push(new);
        }
    }
    if let Some(hold) = &mut draft.state.hold {
        hold.kept = u32::try_from(kept.len()).unwrap_or(u32::MAX);
    }
    if kept != *before {
        draft.kept = Some(kept);
    }
}

/// Whether an entry of a broken document has lost its id there, unlike the others.
fn is_damaged(input: &JudgeInput<'_>, at: usize) -> bool {
    let made_up = |native: &String| same_item::is_made_up(native);
    matches!(input.document.completeness, Completeness::Salvaged(_))
        && input.matching.names.get(at).is_some_and(made_up)
        && input.snapshot.known.iter().any(|known| !same_item::is_made_up(&known.native_shown))
}

/// What was kept and comes out with `document`: what is neither in it nor a known item by any rule
/// of identity. `theirs`: what was seen only in documents of another feed comes out as well, since
/// this is that feed now.
pub(super) fn released(
    snapshot: &Snapshot,
    document: &FeedDocument<'_>,
    draft: &ChangeDraft<'_>,
    theirs: bool,
) -> Vec<ReleasedEntry> {
    let mut kept = snapshot.kept.clone();
    kept.retain(|kept| theirs || !kept.foreign);
    if kept.is_empty() {
        return Vec::new();
    }
    let there = same_item::matching(&ledger(&kept, draft), document, draft.observation.options);
    let mut at = 0..;
    kept.retain(|_| at.next().is_some_and(|at| there.missing.contains(&at)));
    // What stays is looked at as if it stood below the document, so that an entry whose item is in
    // the document under another name is not taken for a new one.
    let shown = document.entries.len();
    let mut joined = document.clone();
    joined.entries.extend(kept.iter().map(|kept| kept.entry.clone()));
    let found = same_item::matching(snapshot, &joined, draft.observation.options);
    let is_deleted = |native: &str| document.tombstones.iter().any(|t| t.native_id == native);
    let new = found.fresh.iter().filter_map(|at| {
        let kept = kept.get(at.checked_sub(shown)?)?.clone();
        let native = found.names.get(*at)?.clone();
        (!is_deleted(&native)).then_some(ReleasedEntry { kept, native })
    });
    new.collect()
}

/// What is kept, as if it were items, so that the rules of identity can be asked about it. No order
/// says where they stood: they come from several documents.
fn ledger(kept: &[HeldEntry], draft: &ChangeDraft<'_>) -> Snapshot {
    let names = kept.iter().enumerate().map(|(at, kept)| (format!("kept.{at:05}"), &kept.entry));
    let known = names.filter_map(|(id, entry)| {
        let id = SyncId::new(&id).ok()?;
        let native = same_item::native(entry);
        Some(newcomer(entry, &native, id, |_| false, draft))
    });
    let nothing = Snapshot::untouched(Format::Atom10, draft.observation.now);
    Snapshot { known: known.collect(), ..nothing }
}
