//! The archives in a change.

use super::{ChangePlanner, load};
use crate::StoreError;
use crate::limits::DROPPED_REMEMBERED;
use crate::record::assemble;
use std::collections::HashMap;
use std::time::Duration;
use tidegate_core::model::{
    Archive, ArchiveNote, FeedState, Item, LedgerEntry, Markup, Seal, SyncId, Tick, Time,
};

impl ChangePlanner<'_> {
    /// Plans the archives with redacted text, the sealed ones and the dropped ones. Answers the total bytes of
    /// archives afterwards.
    pub(super) fn archives(&mut self) -> Result<u64, StoreError> {
        let change = self.change;
        let mut bytes = self.before.map_or(0, |head| head.state.archives.bytes);
        let archives = std::mem::take(&mut self.loaded.archives);
        let mut published = std::mem::take(&mut self.loaded.published);
        if !archives.is_empty() {
            let lives =
                |known: &&LedgerEntry| !known.is_deleted() && !change.redacted.contains(&known.id);
            let living = change.known.iter().filter(lives);
            published.extend(living.map(|known| known.published_id.clone()));
        }
        let shown = change.state.updated_at;
        for (old, blocks) in archives {
            let mut archive = self.writer.codec.archive(self.writer.name, &old, &blocks)?;
            for id in &change.redacted {
                archive.redact(id, shown, &published);
            }
            let note = |bytes| redacted_note(&old.note, &archive, shown, bytes);
            let new = self.writer.put_archive(&archive, Some(&old), note)?;
            bytes = bytes.saturating_sub(old.note.bytes).saturating_add(new);
        }
        bytes = bytes.saturating_add(self.seals()?);
        for number in load::dropped(change, self.before) {
            if let Some(old) = self.loaded.feed.archive_record(number)? {
                bytes = bytes.saturating_sub(self.writer.drop_archive(old)?);
            }
            // An archive that was dropped long ago is forgotten: its address need not be remembered.
            if let Some(oldest) = number.checked_sub(DROPPED_REMEMBERED)
                && let Some(old) = self.loaded.feed.archive_record(oldest)?
            {
                self.writer.forget_archive(&old.note);
            }
        }
        Ok(bytes)
    }

    /// Plans sealed archives. Answers their bytes.
    fn seals(&mut self) -> Result<u64, StoreError> {
        let change = self.change;
        if change.seals.is_empty() {
            return Ok(0);
        }
        let stored = self.frame.as_ref().and_then(|frame| frame.skeleton.as_ref());
        let Some(skeleton) = change.skeleton.as_ref().or(stored).cloned() else { return Ok(0) };
        let known: HashMap<&SyncId, &LedgerEntry> =
            change.known.iter().map(|known| (&known.id, known)).collect();
        let versions = change.versions.iter();
        let versions = versions.filter_map(|version| Some((&version.id, version.markup.as_ref()?)));
        let latest = change.latest.iter().map(|(id, markup)| (id, markup));
        let changed: HashMap<&SyncId, &Markup> = versions.chain(latest).collect();
        let mut bytes = 0_u64;
        for seal in &change.seals {
            let item = |id: &SyncId| match (known.get(id).copied(), changed.get(id).copied()) {
                (None, _) => self.loaded.feed.whole_item(id),
                (Some(known), Some(new)) => Ok(Some(as_sealed(known, new.clone()))),
                (Some(known), None) => {
                    let newest = self.loaded.feed.item(id)?.map(|item| self.loaded.newest(&item));
                    Ok(newest.transpose()?.map(|newest| as_sealed(known, newest)))
                }
            };
            let items = seal.items.iter().map(item).filter_map(Result::transpose);
            let items = items.collect::<Result<Vec<_>, _>>()?;
            let archive = Archive::new(seal.upstream.clone(), skeleton.clone(), items);
            let old = self.loaded.feed.archive_record(seal.number)?;
            let note = |bytes| seal_note(seal, &archive, &change.state, bytes);
            bytes = bytes.saturating_add(self.writer.put_archive(&archive, old.as_ref(), note)?);
        }
        Ok(bytes)
    }
}

/// An item as an archive has it.
fn as_sealed(known: &LedgerEntry, markup: Markup) -> Item {
    assemble(known.clone(), markup, Vec::new())
}

/// The note of a segment that a change seals and that has `bytes`.
fn seal_note(seal: &Seal, archive: &Archive, state: &FeedState, bytes: u64) -> ArchiveNote {
    // Each archive is sealed a second before the next, and the last one before the feed was updated.
    let behind = Duration::from_secs(state.archives.next.saturating_sub(seal.number));
    ArchiveNote {
        number: seal.number,
        id: seal.id.clone(),
        previous: seal.previous.clone(),
        sealed: state.updated_at.minus(behind),
        until: state.archives.sealed.unwrap_or(Tick::at(Time::MIN)),
        entries: count(archive.items.len()),
        deletions: count(archive.deleted.len()),
        bytes,
        redacted: None,
        dropped: false,
    }
}

/// The note of an archive whose text was redacted at `when`, and that has `bytes` now.
fn redacted_note(old: &ArchiveNote, archive: &Archive, when: Time, bytes: u64) -> ArchiveNote {
    ArchiveNote {
        entries: count(archive.items.len()),
        deletions: count(archive.deleted.len()),
        bytes,
        redacted: Some(when),
        ..old.clone()
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
