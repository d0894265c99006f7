//! Reconstructing a feed from its archives (Feed History draft-05 section 6, as READINGS 3 row 3
//! reads it): the documents are walked from the newest to the oldest, and of what they say of one
//! entry the newest counts.
//!
//! An archive that cannot be read leaves a gap, below which nothing can be reached. Each later walk
//! asks for it again, and then what stands there comes under what is known from above it, and over
//! what is known from below.

use super::document::{Document, ReplicaHead};
use super::item::ReplicaItem;
use super::state::{ArchiveGap, ReplicaBasis};
use crate::parse::collection::ITEM_LIMIT;
use std::collections::{HashMap, HashSet};
use url::Url;

/// The most archives that are remembered as missing.
const GAPS_LIMIT: usize = 100;
/// The most deleted entries that are remembered while archives are missing.
const DELETED_LIMIT: usize = 100_000;

/// What documents say of entries, in order of first mention: the item, or that it is gone. Who speaks first is
/// believed.
#[derive(Default)]
struct Layer {
    said: Vec<(String, Option<ReplicaItem>)>,
    mentioned: HashSet<String>,
}

impl Layer {
    fn add(&mut self, items: Vec<ReplicaItem>, deleted: HashSet<String>) {
        let there = items.into_iter().map(|item| (item.key().to_owned(), Some(item)));
        // An entry that stands beside its tombstone is there again.
        for (id, said) in there.chain(deleted.into_iter().map(|id| (id, None))) {
            if self.mentioned.insert(id.clone()) {
                self.said.push((id, said));
            }
        }
    }

    fn gone(&self) -> impl Iterator<Item = &String> {
        self.said.iter().filter(|(_, said)| said.is_none()).map(|(id, _)| id)
    }
}

/// A run of archives, and what this walk reads of it. The first one leads from the document that is subscribed
/// to down to the last known archive; the others are gaps of earlier walks.
struct ArchivePart {
    gap: ArchiveGap,
    layer: Layer,
    /// Where reading on stopped.
    stopped: Option<String>,
    is_tried: bool,
}

impl ArchivePart {
    fn new(gap: ArchiveGap, is_tried: bool) -> Self {
        Self { gap, layer: Layer::default(), stopped: None, is_tried }
    }
}

struct HistoryStep {
    url: Url,
    /// The number of the part that it belongs to.
    part: usize,
}

/// A walk through the archives of a feed.
pub(super) struct HistoryWalk {
    parts: Vec<ArchivePart>,
    /// What goes around the replica.
    head: ReplicaHead,
    /// The newest archive that was read.
    newest: Option<String>,
    /// Entries that were said to be deleted while there were gaps.
    deleted: HashSet<String>,
    /// The items that the replica will have, and the bytes of their newest states.
    weighed: HashSet<String>,
    size: usize,
    asking: Option<HistoryStep>,
    seen: HashSet<String>,
    /// Nothing is asked for any more.
    is_over: bool,
}

/// What a walk comes to.
pub(super) struct Reconstructed {
    pub(super) items: Vec<ReplicaItem>,
    pub(super) head: ReplicaHead,
    pub(super) kept: ReplicaBasis,
    /// Entries that were said to be deleted.
    pub(super) deleted: HashSet<String>,
}

impl HistoryWalk {
    /// A walk that asks only for what was missing before: the document that is subscribed to has
    /// not changed. `kept`: how far earlier walks came; `before`: what they brought.
    pub(super) fn again(head: ReplicaHead, kept: &ReplicaBasis, before: &[ReplicaItem]) -> Self {
        let mut walk = Self::new(head, kept);
        walk.weigh(before);
        walk
    }

    /// A walk that begins at the document that is subscribed to.
    pub(super) fn begin(document: Document, kept: &ReplicaBasis, before: &[ReplicaItem]) -> Self {
        let Document { head, history, items, .. } = document;
        let mut walk = Self::new(head, kept);
        walk.weigh(&items);
        walk.weigh(before);
        walk.seen.extend(history.own.as_ref().map(Url::to_string));
        walk.add(0, items, history.deleted);
        // Nothing was read yet that it could lead back to.
        let _ = walk.lead(history.older, 0);
        walk
    }

    fn new(head: ReplicaHead, kept: &ReplicaBasis) -> Self {
        let (known, gaps, deleted) = match kept {
            ReplicaBasis::History { archive, gaps, deleted } => {
                (archive.clone(), &gaps[..], &deleted[..])
            }
            ReplicaBasis::Sse { .. } => (None, &[][..], &[][..]),
        };
        let newer = ArchiveGap { url: head.url.to_string(), until: known, above: Some(Vec::new()) };
        let gaps = gaps.iter().map(|gap| ArchivePart::new(gap.clone(), false));
        Self {
            parts: std::iter::once(ArchivePart::new(newer, true)).chain(gaps).collect(),
            seen: HashSet::from([head.url.to_string()]),
            head,
            newest: None,
            deleted: deleted.iter().cloned().collect(),
            weighed: HashSet::new(),
            size: 0,
            asking: None,
            is_over: false,
        }
    }

    /// The bytes of the replica, and how many items it has, with the states of items that come under those that
    /// are weighed already.
    fn weight_with(&self, items: &[ReplicaItem]) -> (usize, usize) {
        let fresh = items.iter().filter(|item| !self.weighed.contains(item.key()));
        let mut seen = HashSet::new();
        let sizes = fresh.filter(|item| seen.insert(item.key())).map(|i| i.data().markup.xml.len());
        let size = sizes.fold(self.size, usize::saturating_add);
        (size, self.weighed.len() + seen.len())
    }

    fn weigh(&mut self, items: &[ReplicaItem]) {
        (self.size, _) = self.weight_with(items);
        self.weighed.extend(items.iter().map(|item| item.key().to_owned()));
    }

    /// Why the replica would be too large with a document, where it would. `most`: bytes of items.
    pub(super) fn refuses(&self, document: &Document, most: usize) -> Option<String> {
        let (bytes, items) = self.weight_with(&document.items);
        let (found, what, limit) = if bytes > most {
            (bytes, "bytes of items", most)
        } else if items > ITEM_LIMIT {
            (items, "items", ITEM_LIMIT)
        } else {
            return None;
        };
        Some(format!("the replica would have {found} {what}, which is above the limit, {limit}"))
    }

    /// The next archive to ask for; `None` at the end.
    pub(super) fn asks(&mut self) -> Option<&Url> {
        // Each turn tries one gap.
        while self.asking.is_none() && !self.is_over {
            let mut parts = self.parts.iter_mut().enumerate();
            let (number, part) = parts.find(|(_, part)| !part.is_tried)?;
            part.is_tried = true;
            if let Ok(url) = Url::parse(&part.gap.url)
                && !self.seen.contains(url.as_str())
            {
                self.asking = Some(HistoryStep { url, part: number });
            }
        }
        self.asking.as_ref().map(|step| &step.url)
    }

    /// Takes in the archive that was asked for; a warning where it leads back to a known one.
    pub(super) fn takes(&mut self, document: Document) -> Option<String> {
        let step = self.asking.take()?;
        if document.sharing.is_some() {
            return Some(self.misses(&step, "it has sync markup, which the feed has not"));
        }
        let Document { history, items, .. } = document;
        self.seen.insert(step.url.to_string());
        // "The value of the self link relation, if present, SHOULD be used as the URI of the feed
        // document it occurs in" (section 6).
        let own = history.own.as_ref().unwrap_or(&step.url).to_string();
        self.seen.insert(own.clone());
        if step.part == 0 {
            if self.known() == Some(&own) {
                return None;
            }
            self.newest.get_or_insert(own);
        }
        self.weigh(&items);
        self.add(step.part, items, history.deleted);
        self.lead(history.older, step.part)
    }

    /// The last archive of an earlier walk.
    fn known(&self) -> Option<&String> {
        self.parts.first().and_then(|newer| newer.gap.until.as_ref())
    }

    fn add(&mut self, part: usize, items: Vec<ReplicaItem>, deleted: HashSet<String>) {
        if let Some(part) = self.parts.get_mut(part) {
            part.layer.add(items, deleted);
        }
    }

    /// The archive that was asked for cannot be had.
    pub(super) fn lacks(&mut self, why: &str) -> Option<String> {
        let step = self.asking.take()?;
        Some(self.misses(&step, why))
    }

    /// What is still to be asked for is left for another time.
    pub(super) fn stops(&mut self, why: &str) -> Option<String> {
        let warning = self.lacks(why);
        self.is_over = true;
        warning
    }

    fn misses(&mut self, step: &HistoryStep, why: &str) -> String {
        self.seen.insert(step.url.to_string());
        let url = step.url.to_string();
        let warning = format!(
            "the archive {url} was not read: {why}; what is only there or in older ones is missing"
        );
        if let Some(part) = self.parts.get_mut(step.part) {
            part.stopped = Some(url);
        }
        warning
    }

    /// Goes on to the next older archive, where there is one that is not known.
    fn lead(&mut self, older: Option<Url>, part: usize) -> Option<String> {
        let url = older?;
        // A part ends where the next one begins: what stands there comes under other entries.
        let mut parts = self.parts.iter().skip(part);
        let end = parts.next().and_then(|part| part.gap.until.as_ref());
        if end.into_iter().chain(parts.map(|below| &below.gap.url)).any(|end| *end == url.as_str())
        {
            return None;
        }
        if self.seen.contains(url.as_str()) {
            return Some(format!("the archives lead back to {url}, which was read already"));
        }
        self.asking = Some(HistoryStep { url, part });
        None
    }

    /// The feed as all documents have it, over what is kept of it already.
    pub(super) fn ends(self, before: Vec<ReplicaItem>) -> Reconstructed {
        let known = self.known().cloned();
        let Self { parts, head, newest, mut deleted, seen, .. } = self;
        // Where nothing was kept before, and nothing comes out of gaps below this one, all that is
        // kept now is above it.
        let is_first = before.is_empty() && parts.len() == 1;
        let newer = parts.first().map(|newer| &newer.layer);
        let said: HashSet<String> = newer.into_iter().flat_map(Layer::gone).cloned().collect();
        let mentioned = newer.into_iter().flat_map(|newer| &newer.said);
        let mut order: Vec<String> = mentioned.map(|(id, _)| id.clone()).collect();
        order.extend(before.iter().map(|item| item.key().to_owned()));
        let keyed = before.into_iter().map(|item| (item.key().to_owned(), item));
        let mut replica: HashMap<String, ReplicaItem> = keyed.collect();
        // What the parts above speak of; each part adds to those below it.
        let (mut gaps, mut spoken) = (Vec::new(), HashSet::new());
        for ArchivePart { mut gap, layer, stopped, .. } in parts {
            let is_lowest = gap.above.is_none();
            spoken.extend(gap.above.iter_mut().flat_map(|above| above.drain(..)));
            deleted.extend(layer.gone().cloned());
            for (id, said) in layer.said {
                // Where it stood below everything, only what nothing else speaks of comes out of it.
                let is_above = match is_lowest {
                    true => replica.contains_key(&id) || deleted.contains(&id),
                    false => spoken.contains(&id),
                };
                match said {
                    _ if is_above => {}
                    Some(item) => {
                        order.push(id.clone());
                        replica.insert(id, item);
                    }
                    None => drop(replica.remove(&id)),
                }
            }
            spoken.extend(layer.mentioned);
            if stopped.is_some() || !seen.contains(&gap.url) {
                gap.url = stopped.unwrap_or(gap.url);
                gap.above =
                    gap.above.filter(|_| !is_first).map(|_| spoken.iter().cloned().collect());
                gaps.push(gap);
            }
        }
        gaps.truncate(GAPS_LIMIT);
        // An entry stands where it was mentioned first.
        let items: Vec<_> = order.into_iter().filter_map(|id| replica.remove(&id)).collect();
        let deleted = remembered(deleted, &items, &gaps);
        let archive = newest.or(known);
        Reconstructed {
            items,
            head,
            kept: ReplicaBasis::History { archive, gaps, deleted },
            deleted: said,
        }
    }
}

/// The deleted entries to remember: none where nothing is missing.
fn remembered(deleted: HashSet<String>, items: &[ReplicaItem], gaps: &[ArchiveGap]) -> Vec<String> {
    if gaps.is_empty() {
        return Vec::new();
    }
    let there: HashSet<&str> = items.iter().map(ReplicaItem::key).collect();
    let mut ids: Vec<String> =
        deleted.into_iter().filter(|id| !there.contains(id.as_str())).collect();
    ids.sort();
    ids.truncate(DELETED_LIMIT);
    ids
}
