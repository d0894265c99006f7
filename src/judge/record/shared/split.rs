//! Splits a document and its ledger into a shared and a plain part.

use crate::same_item;
use foldhash::{HashMap, HashSet, HashSetExt as _};
use tidegate_core::model::{
    EntrySync, FeedDocument, LedgerEntry, Snapshot, SyncId, SyncMarkupError,
};

/// What an entry of the whole document is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::record) enum EntryOwner {
    /// An entry of the plain part, by its number there.
    Plain(usize),
    /// One of this shared item, or with broken sync markup that says nothing new of it.
    Item(SyncId),
}

/// What an item of the ledger is beside a document.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LedgerPart {
    /// It is compared with the plain entries.
    Judged,
    /// It was compared until now and is shared under another id from now on.
    Replaced,
    /// It is merged.
    Shared,
}

/// A document and its ledger, split into shared and plain items.
#[derive(Debug)]
pub(in crate::record) struct SharedSplit<'a> {
    /// Everything that is known; what is judged comes first, in order of sync id.
    pub(in crate::record) whole: Snapshot,
    /// Of the shared items among it, where they stand.
    pub(in crate::record) shared: HashMap<SyncId, usize>,
    /// What is judged.
    pub(in crate::record) plain: Snapshot,
    /// The document with the plain entries alone.
    pub(in crate::record) document: FeedDocument<'a>,
    /// What each entry of the whole document is.
    pub(in crate::record) slots: Vec<EntryOwner>,
    /// Items that were compared until now and are shared under another id from now on: where they
    /// stand, by their native ids.
    pub(in crate::record) replaced: HashMap<String, usize>,
}

impl SharedSplit<'_> {
    /// Whether there is nothing to judge.
    pub(in crate::record) fn is_all_shared(&self) -> bool {
        self.document.entries.is_empty() && self.plain.order.is_empty()
    }
}

/// The document in which the sync markup of these items counts for none.
pub(in crate::record) fn without<'a>(
    document: &FeedDocument<'a>,
    refused: &HashSet<SyncId>,
) -> FeedDocument<'a> {
    let mut document = document.clone();
    for entry in &mut document.entries {
        if entry.shared().is_some_and(|incoming| refused.contains(incoming.id())) {
            let (at, fault) = (entry.span.start, "its history is not believed".to_owned());
            let error = SyncMarkupError { at, fault, repeats: None };
            entry.sync = Some(EntrySync::Invalid(Box::new(error)));
        }
    }
    document
}

/// Splits a document and the ledger; `None` if neither has shared items.
pub(in crate::record) fn split_document<'a>(
    snapshot: &Snapshot,
    document: &FeedDocument<'a>,
    complete: Option<&FeedDocument<'_>>,
) -> Option<SharedSplit<'a>> {
    let is_shared = |known: &LedgerEntry| known.origin.is_shared();
    let all = document.entries.iter().chain(complete.into_iter().flat_map(|c| &c.entries));
    if !all.clone().any(|entry| entry.sync.is_some()) && !snapshot.known.iter().any(is_shared) {
        return None;
    }
    let ids: HashMap<&SyncId, &LedgerEntry> = snapshot.known.iter().map(|k| (&k.id, k)).collect();
    let shared = snapshot.known.iter().filter(|known| is_shared(known));
    let natives: HashMap<&str, &LedgerEntry> =
        shared.map(|known| (known.native_shown.as_str(), known)).collect();

    // What the entries are.
    let mut slots = Vec::with_capacity(document.entries.len());
    let mut entries = Vec::new();
    let mut shared_now: HashSet<&SyncId> = HashSet::new();
    let (mut plain_names, mut claimed) = (HashSet::new(), HashSet::new());
    // Shared items whose entries are plain in this document: they are compared this time.
    let mut compared: HashSet<&SyncId> = HashSet::new();
    for entry in &document.entries {
        let shown = same_item::native(entry);
        let shared = natives.get(shown.as_str());
        match (&entry.sync, shared) {
            (Some(EntrySync::Valid(incoming)), _) => {
                slots.push(EntryOwner::Item(incoming.id().clone()))
            }
            (Some(EntrySync::Invalid(_)), Some(known)) => {
                slots.push(EntryOwner::Item(known.id.clone()));
            }
            (_, known) => {
                compared.extend(known.map(|known| &known.id));
                slots.push(EntryOwner::Plain(entries.len()));
                entries.push(entry.clone());
                plain_names.insert(shown);
            }
        }
    }
    for entry in all {
        if let Some(incoming) = entry.shared() {
            shared_now.extend(ids.get(incoming.id()).map(|known| &known.id));
            claimed.insert(same_item::native(entry));
        }
    }
    // Where a plain entry bears the name as well, the item that was compared until now is that one.
    claimed.retain(|name| !plain_names.contains(name));
    compared.retain(|id| !shared_now.contains(id));

    // What is known, each part in order of sync id.
    let part = |known: &LedgerEntry| {
        if shared_now.contains(&known.id) || is_shared(known) && !compared.contains(&known.id) {
            LedgerPart::Shared
        } else if !is_shared(known) && !known.is_deleted() && claimed.contains(&known.native_shown)
        {
            LedgerPart::Replaced
        } else {
            LedgerPart::Judged
        }
    };
    let mut known = snapshot.known.clone();
    known.sort_by_key(part);
    let those =
        |of: LedgerPart| known.iter().enumerate().filter(move |(_, known)| part(known) == of);
    let shared = those(LedgerPart::Shared).map(|(at, known)| (known.id.clone(), at)).collect();
    let replaced = those(LedgerPart::Replaced);
    let replaced = replaced.map(|(at, known)| (known.native_shown.clone(), at)).collect();
    let judged = those(LedgerPart::Judged).map(|(_, known)| known.clone());
    let judged: Vec<LedgerEntry> = judged.collect();
    let plain_ids: HashSet<&SyncId> = judged.iter().map(|known| &known.id).collect();
    let order = snapshot.order.iter().filter(|id| plain_ids.contains(id)).cloned().collect();
    let plain = snapshot.with_items(judged, order);
    let whole = snapshot.with_items(known, snapshot.order.clone());
    let document = document.with_entries(entries);
    Some(SharedSplit { whole, shared, plain, document, slots, replaced })
}
