//! What a feed in memory said at some time, and how much of that is kept.

use super::FeedTable;
use crate::model::{Count, FeedState, Markup, SyncId, Tick, Time};
use crate::store::assemble::{assemble_past, is_told};
use crate::store::retention::{Succession, Thing, surplus};
use crate::store::{Holdings, Past, PastSelect, Pruned, Retention, VersionNote, View};
use std::collections::{HashSet, VecDeque};

/// Something that can go.
enum Removable {
    Version(SyncId),
    Order,
    Skeleton,
}

/// What was in force at `at`, of things that took each other's place, oldest first.
fn in_force<T>(things: &VecDeque<(Time, T)>, at: Time) -> Option<&(Time, T)> {
    things.iter().rev().find(|(from, _)| *from <= at)
}

impl FeedTable {
    /// What a view showed at `at`.
    pub(in crate::store::memory) fn past(&self, select: PastSelect, at: Time) -> Past {
        let oldest = self.orders.front().map(|(from, _)| *from);
        let unknown = |back_to: Option<Time>| Past::Unknown { back_to };
        let (Some((ordered, order)), Some((framed, skeleton))) =
            (in_force(&self.orders, at), in_force(&self.skeletons, at))
        else {
            return unknown(oldest.max(self.skeletons.front().map(|(from, _)| *from)));
        };
        let listed: HashSet<&SyncId> = order.iter().collect();
        let ids: Vec<&SyncId> = match select {
            PastSelect::Current => order.iter().collect(),
            PastSelect::All => self.items.keys().collect(),
        };
        let mut items = Vec::with_capacity(ids.len());
        let mut shown = (*ordered).max(*framed);
        let mut last: Option<Tick> = None;
        for id in ids {
            let Some(kept) = self.items.get(id).filter(|kept| is_told(&kept.known, at)) else {
                continue;
            };
            let Some(place) = kept.versions.iter().position(|v| v.note.shown <= at) else {
                match kept.versions.back() {
                    Some(first) if first.note.updates != Count::ONE => {
                        return unknown(Some(first.note.shown));
                    }
                    _ => continue,
                }
            };
            let Some(version) = kept.versions.get(place) else { continue };
            let note = &version.note;
            (shown, last) = (shown.max(note.shown), last.max(Some(note.tick)));
            let bytes = self.bytes_of(id, place);
            let Some(bytes) = bytes else { continue };
            let known = kept.known.clone();
            items.push(assemble_past(known, note, bytes, listed.contains(id)));
        }
        if select == PastSelect::All {
            items.sort_by(|a, b| (a.tick, &a.shared.winner.id).cmp(&(b.tick, &b.shared.winner.id)));
        }
        let format = skeleton.format;
        let state = FeedState { updated_at: shown, tick: last, format, ..self.state.clone() };
        Past::Then(Box::new(View { state, skeleton: skeleton.clone(), items }))
    }

    /// The bytes of a version: its own; a tombstone's are those of the version before it, else of
    /// the next one that has any.
    fn bytes_of(&self, id: &SyncId, place: usize) -> Option<Markup> {
        let kept = self.items.get(id)?;
        let before = kept.versions.iter().skip(place).find_map(|v| v.markup.as_ref());
        let after = || kept.versions.iter().take(place).rev().find_map(|v| v.markup.as_ref());
        before.or_else(after).or(Some(&kept.newest)).cloned()
    }

    /// What is kept.
    pub(in crate::store::memory) fn holdings(&self) -> Holdings {
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let versions = || self.items.values().flat_map(|kept| &kept.versions);
        let documents = self.orders.len() + self.skeletons.len();
        Holdings {
            versions: count(versions().count()),
            version_bytes: versions().map(|version| size(&version.note)).sum(),
            documents: count(documents.saturating_sub(2)),
            document_bytes: self
                .lines_of_documents()
                .iter()
                .flat_map(|l| &l.things)
                .map(|thing| thing.size)
                .sum(),
            back_to: self
                .orders
                .front()
                .map(|(from, _)| *from)
                .max(self.skeletons.front().map(|(from, _)| *from)),
        }
    }

    /// Orders and skeletons that are not in force any more.
    fn lines_of_documents(&self) -> [Succession<Removable>; 2] {
        let orders = self.orders.iter().map(|(from, order)| {
            let bytes = order.iter().map(|id| id.as_str().len()).sum();
            (*from, bytes)
        });
        let skeletons = self.skeletons.iter().map(|(from, skeleton)| (*from, skeleton.text.len()));
        [line(orders, || Removable::Order), line(skeletons, || Removable::Skeleton)]
    }

    /// Takes out what is not to be kept.
    pub(in crate::store::memory) fn prune(&mut self, retention: &Retention, now: Time) -> Pruned {
        let mut lines: Vec<Succession<Removable>> = Vec::from(self.lines_of_documents());
        for (id, kept) in &self.items {
            let things = kept.versions.iter().rev().map(|version| Thing {
                key: Removable::Version(id.clone()),
                from: version.note.shown,
                size: size(&version.note),
            });
            lines.push(Succession::of_versions(things.collect(), retention));
        }
        let (gone, more) = surplus(lines, retention, now);
        let mut pruned = Pruned { more, ..Pruned::default() };
        for gone in gone {
            match gone {
                Removable::Version(id) => {
                    pruned.versions += 1;
                    self.items.get_mut(&id).and_then(|kept| kept.versions.pop_back());
                }
                Removable::Order => {
                    pruned.documents += 1;
                    self.orders.pop_front();
                }
                Removable::Skeleton => {
                    pruned.documents += 1;
                    self.skeletons.pop_front();
                }
            }
        }
        pruned
    }
}

fn size(note: &VersionNote) -> u64 {
    note.size
}

/// A line of documents without the one in force.
fn line(
    documents: impl DoubleEndedIterator<Item = (Time, usize)> + ExactSizeIterator,
    key: impl Fn() -> Removable,
) -> Succession<Removable> {
    let mut things: Vec<Thing<Removable>> = documents
        .map(|(from, bytes)| Thing {
            key: key(),
            from,
            size: u64::try_from(bytes).unwrap_or(u64::MAX),
        })
        .collect();
    let ended = things.pop().map(|present| present.from);
    Succession { things, ended, most: usize::MAX }
}
