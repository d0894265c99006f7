//! Reconstructing a feed from its archives (Feed History draft-05 section 6, as READINGS 3 row 3
//! reads it): the documents are walked from the newest to the oldest, and of what they say of one
//! entry the newest counts.
//!
//! An archive that cannot be read leaves a gap, below which nothing can be reached. Each later walk
//! asks for it again, and then what stands there comes under what is known from above it, and over
//! what is known from below.

use super::document::{Document, HistoryHead, ReplicaHead};
use super::item::ReplicaItem;
use super::{ArchiveGap, ReplicaBasis};
use crate::parse::collection::ITEM_LIMIT;
use std::collections::{HashMap, HashSet};
use url::Url;

/// The most archives that are remembered as missing.
const GAPS_LIMIT: usize = 100;
/// The most deleted entries that are remembered while archives are missing.
const DELETED_LIMIT: usize = 100_000;

/// What documents say of entries, in order of first mention: the item, or that it is gone. Who
/// speaks first is believed.
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

/// A run of archives, and what this walk reads of it. The first one leads from the document that is
/// subscribed to down to the last known archive; the others are gaps of earlier walks.
struct ArchivePart {
    gap: ArchiveGap,
    layer: Layer,
    /// Where reading on stopped.
    stopped: Option<String>,
}

/// A walk through the archives of a feed.
pub struct HistoryWalk {
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
    seen: HashSet<String>,
}

/// What a walk comes to.
pub struct Reconstructed {
    pub items: Vec<ReplicaItem>,
    pub head: ReplicaHead,
    pub kept: ReplicaBasis,
    /// Entries that were said to be deleted.
    pub deleted: HashSet<String>,
}

impl HistoryWalk {
    /// A walk that asks only for what was missing before. `kept`: how far earlier walks came;
    /// `items` and
    /// `before`: what the document that is subscribed to has, where it has changed, and what they
    /// brought.
    pub fn new(
        head: ReplicaHead,
        kept: &ReplicaBasis,
        items: &[ReplicaItem],
        before: &[ReplicaItem],
    ) -> Self {
        let (known, gaps, deleted) = match kept {
            ReplicaBasis::History { archive, gaps, deleted } => {
                (archive.clone(), &gaps[..], &deleted[..])
            }
            ReplicaBasis::Sse { .. } => (None, &[][..], &[][..]),
        };
        let newer = ArchiveGap { url: head.url.to_string(), until: known, above: Some(Vec::new()) };
        let gaps = std::iter::once(newer).chain(gaps.iter().cloned());
        let part = |gap| ArchivePart { gap, layer: Layer::default(), stopped: None };
        let mut walk = Self {
            parts: gaps.map(part).collect(),
            seen: HashSet::from([head.url.to_string()]),
            head,
            newest: None,
            deleted: deleted.iter().cloned().collect(),
            weighed: HashSet::new(),
            size: 0,
        };
        walk.weigh(items);
        walk.weigh(before);
        walk
    }

    /// Begins at the document that is subscribed to; answers the first archive to ask for.
    pub fn begin(&mut self, items: Vec<ReplicaItem>, history: HistoryHead) -> Option<Url> {
        self.seen.extend(history.own.as_ref().map(Url::to_string));
        self.add(0, items, history.deleted);
        // Nothing was read yet that it could lead back to.
        self.lead(history.older, 0).unwrap_or_default()
    }

    /// How many parts it has.
    pub const fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Where a part begins that was missing before.
    pub fn gap(&self, part: usize) -> Option<Url> {
        let url = Url::parse(&self.parts.get(part)?.gap.url).ok()?;
        (!self.seen.contains(url.as_str())).then_some(url)
    }

    /// The bytes of the replica, and how many items it has, with the states of items that come
    /// under those that are weighed already.
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
    pub fn refuses(&self, document: &Document, most: usize) -> Option<String> {
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

    /// Takes in an archive, and answers the next older one that is not known; a warning where it
    /// leads back to a known one.
    pub fn take(
        &mut self,
        url: &Url,
        document: Document,
        part: usize,
    ) -> Result<Option<Url>, String> {
        if document.sharing.is_some() {
            return Err(self.miss(url, "it has sync markup, which the feed has not", part));
        }
        let Document { history, items, .. } = document;
        self.seen.insert(url.to_string());
        // "The value of the self link relation, if present, SHOULD be used as the URI of the feed
        // document it occurs in" (section 6).
        let own = history.own.as_ref().unwrap_or(url).to_string();
        self.seen.insert(own.clone());
        if part == 0 {
            if self.known() == Some(&own) {
                return Ok(None);
            }
            self.newest.get_or_insert(own);
        }
        self.weigh(&items);
        self.add(part, items, history.deleted);
        self.lead(history.older, part)
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

    /// An archive cannot be had: its part ends there. Answers a warning.
    pub fn miss(&mut self, url: &Url, why: &str, part: usize) -> String {
        self.seen.insert(url.to_string());
        if let Some(part) = self.parts.get_mut(part) {
            part.stopped = Some(url.to_string());
        }
        format!(
            "the archive {url} was not read: {why}; what is only there or in older ones is missing"
        )
    }

    /// The next older archive, where there is one that is not known.
    fn lead(&self, older: Option<Url>, part: usize) -> Result<Option<Url>, String> {
        let Some(url) = older else { return Ok(None) };
        // A part ends where the next one begins: what stands there comes under other entries.
        let mut parts = self.parts.iter().skip(part);
        let end = parts.next().and_then(|part| part.gap.until.as_ref());
        if end.into_iter().chain(parts.map(|below| &below.gap.url)).any(|end| *end == url.as_str())
        {
            return Ok(None);
        }
        if self.seen.contains(url.as_str()) {
            return Err(format!("the archives lead back to {url}, which was read already"));
        }
        Ok(Some(url))
    }

    /// The feed as all documents have it, over what is kept of it already.
    pub fn ends(self, before: Vec<ReplicaItem>) -> Reconstructed {
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
                // Where it stood below everything, only what nothing else speaks of comes out of
                // it.
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
