//! What a change does to archives.

use super::ChangePlanner;
use crate::embedded::feed::FeedRecords;
use crate::{StoreError, assemble, seals};
use std::collections::{HashMap, HashSet};
use tidegate_core::model::{Archive, Change, Item, LedgerEntry, Markup, SyncId};

impl ChangePlanner<'_> {
    /// Archives that text is taken out of, those that are sealed, and those that are dropped. Answers how many bytes are
    /// kept afterwards.
    pub(super) fn archives(&mut self) -> Result<u64, StoreError> {
        let (change, feed) = (self.change, self.loaded.feed.clone());
        let before = self.before.map(|head| &head.state);
        let mut bytes = before.map_or(0, |state| state.archives.bytes);
        if let Some(state) = before.filter(|_| !change.redacted.is_empty()) {
            let published = self.published_ids()?;
            let shown = change.state.updated_at;
            for number in state.archives.first..state.archives.next {
                let Some(old) = feed.archive_record(number)? else { continue };
                let mut archive = feed.content(&old)?;
                let mut hit = false;
                for id in &change.redacted {
                    hit |= archive.redact(id, shown, &published);
                }
                if hit {
                    let note = |bytes| seals::redacted(&old.note, &archive, shown, bytes);
                    let new = feed.put_archive(&archive, Some(&old), note, &mut self.writes)?;
                    bytes = bytes.saturating_sub(old.note.bytes).saturating_add(new);
                }
            }
        }
        let changed = ChangedItems::of(change);
        for seal in &change.seals {
            let stored = self.loaded.frame.as_ref().and_then(|frame| frame.skeleton.as_ref());
            let Some(skeleton) = change.skeleton.as_ref().or(stored).cloned() else { continue };
            let mut items = Vec::with_capacity(seal.items.len());
            for id in &seal.items {
                items.extend(changed.item(&feed, id)?);
            }
            let archive = Archive::new(seal.upstream.clone(), skeleton, items);
            let old = feed.archive_record(seal.number)?;
            let note = |bytes| seals::note(seal, &archive, &change.state, bytes);
            let new = feed.put_archive(&archive, old.as_ref(), note, &mut self.writes)?;
            bytes = bytes.saturating_add(new);
        }
        let first = change.state.archives.first;
        for number in before.map_or(first, |state| state.archives.first)..first {
            bytes = bytes.saturating_sub(feed.drop_archive(number, &mut self.writes)?);
        }
        Ok(bytes)
    }

    /// The published ids of the items that live when the change is made, but for those that it redacts.
    fn published_ids(&self) -> Result<HashSet<String>, StoreError> {
        let mut ids = HashSet::new();
        let changed: HashSet<&SyncId> = self.change.known.iter().map(|known| &known.id).collect();
        let mut note = |known: &LedgerEntry| {
            if !known.is_deleted() && !self.change.redacted.contains(&known.id) {
                ids.insert(known.published_id.clone());
            }
        };
        self.change.known.iter().for_each(&mut note);
        for item in self.loaded.feed.items() {
            let known = item?.known;
            if !changed.contains(&known.id) {
                note(&known);
            }
        }
        Ok(ids)
    }
}

/// What a change sets of items, by id.
struct ChangedItems<'a> {
    known: HashMap<&'a SyncId, &'a LedgerEntry>,
    markup: HashMap<&'a SyncId, &'a Markup>,
}

impl<'a> ChangedItems<'a> {
    fn of(change: &'a Change) -> Self {
        let versions = change.versions.iter();
        let versions = versions.filter_map(|version| Some((&version.id, version.markup.as_ref()?)));
        let latest = change.latest.iter().map(|(id, markup)| (id, markup));
        let known = change.known.iter().map(|known| (&known.id, known));
        Self { known: known.collect(), markup: versions.chain(latest).collect() }
    }

    /// An item as the change leaves it.
    fn item(&self, feed: &FeedRecords, id: &SyncId) -> Result<Option<Item>, StoreError> {
        let Some(known) = self.known.get(id).copied().cloned() else { return feed.whole_item(id) };
        let markup = match self.markup.get(id).copied().cloned() {
            Some(markup) => Some(markup),
            None => feed.item(id)?.map(|item| feed.newest(&item)).transpose()?,
        };
        Ok(markup.map(|markup| assemble(known, markup, Vec::new())))
    }
}
