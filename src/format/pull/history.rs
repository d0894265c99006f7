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

/// What a document says of an entry.
enum EntryClaim {
    There(Box<ReplicaItem>),
    Gone,
}

/// What documents say of entries, in order of first mention; who speaks first is believed.
#[derive(Default)]
struct Layer {
    order: Vec<String>,
    said: HashMap<String, EntryClaim>,
}

impl Layer {
    fn add(&mut self, items: Vec<ReplicaItem>, deleted: HashSet<String>) {
        for item in items {
            self.say(item.key().to_owned(), EntryClaim::There(Box::new(item)));
        }
        // An entry that stands beside its tombstone is there again.
        for id in deleted {
            self.say(id, EntryClaim::Gone);
        }
    }

    fn say(&mut self, id: String, said: EntryClaim) {
        if !self.said.contains_key(&id) {
            self.order.push(id.clone());
            self.said.insert(id, said);
        }
    }

    fn gone(&self) -> impl Iterator<Item = &String> {
        self.said.iter().filter(|(_, said)| matches!(said, EntryClaim::Gone)).map(|(id, _)| id)
    }

    /// What is said, in order.
    fn take(mut self) -> impl Iterator<Item = (String, EntryClaim)> {
        let order = std::mem::take(&mut self.order);
        order.into_iter().filter_map(move |id| self.said.remove(&id).map(|said| (id, said)))
    }
}

/// A gap of an earlier walk, and what is read of it in this one.
struct Fill {
    gap: ArchiveGap,
    layer: Layer,
    /// Where reading on stopped again.
    stopped: Option<String>,
    is_tried: bool,
}

/// Which part of the archives a step belongs to.
#[derive(Clone, Copy)]
enum ArchivePart {
    /// Those above the last known one.
    Newer,
    /// Those of a gap.
    Gap(usize),
}

struct HistoryStep {
    url: Url,
    part: ArchivePart,
}

/// A walk through the archives of a feed.
pub(super) struct HistoryWalk {
    newer: Layer,
    /// The archive that could not be read among the newer ones.
    missing: Option<String>,
    fills: Vec<Fill>,
    /// What goes around the replica.
    head: ReplicaHead,
    /// The last archive of an earlier walk, and the newest of this one.
    known: Option<String>,
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
        walk.newer.add(items, history.deleted);
        // Nothing was read yet that it could lead back to.
        let _ = walk.lead(history.older, ArchivePart::Newer);
        walk
    }

    fn new(head: ReplicaHead, kept: &ReplicaBasis) -> Self {
        let (known, gaps, deleted) = match kept {
            ReplicaBasis::History { archive, gaps, deleted } => {
                (archive.clone(), &gaps[..], &deleted[..])
            }
            ReplicaBasis::Sse { .. } => (None, &[][..], &[][..]),
        };
        let fill = |gap: &ArchiveGap| Fill {
            gap: gap.clone(),
            layer: Layer::default(),
            stopped: None,
            is_tried: false,
        };
        Self {
            newer: Layer::default(),
            missing: None,
            fills: gaps.iter().map(fill).collect(),
            seen: HashSet::from([head.url.to_string()]),
            head,
            known,
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
            let next = self.fills.iter().position(|fill| !fill.is_tried);
            let (number, fill) = next.and_then(|n| Some((n, self.fills.get_mut(n)?)))?;
            fill.is_tried = true;
            if let Ok(url) = Url::parse(&fill.gap.url)
                && !self.seen.contains(url.as_str())
            {
                self.asking = Some(HistoryStep { url, part: ArchivePart::Gap(number) });
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
        match step.part {
            ArchivePart::Newer if self.known.as_deref() == Some(own.as_str()) => return None,
            _ => {}
        }
        self.weigh(&items);
        match step.part {
            ArchivePart::Newer => {
                self.newest.get_or_insert(own);
                self.newer.add(items, history.deleted);
            }
            ArchivePart::Gap(number) => {
                if let Some(fill) = self.fills.get_mut(number) {
                    fill.layer.add(items, history.deleted);
                }
            }
        }
        self.lead(history.older, step.part)
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
        match step.part {
            ArchivePart::Newer => self.missing = Some(url),
            ArchivePart::Gap(number) => {
                if let Some(fill) = self.fills.get_mut(number) {
                    fill.stopped = Some(url);
                }
            }
        }
        warning
    }

    /// Goes on to the next older archive, where there is one that is not known.
    fn lead(&mut self, older: Option<Url>, part: ArchivePart) -> Option<String> {
        let url = older?;
        // A part ends where the next one begins: what stands there comes under other entries.
        let (end, below) = match part {
            ArchivePart::Newer => (self.known.as_ref(), 0),
            ArchivePart::Gap(number) => {
                let gap = self.fills.get(number).map(|fill| &fill.gap);
                (gap.and_then(|gap| gap.until.as_ref()), number + 1)
            }
        };
        let gaps = self.fills.iter().skip(below).map(|fill| &fill.gap.url);
        if end.into_iter().chain(gaps).any(|end| *end == url.as_str()) {
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
        let Self { newer, missing, fills, head, known, newest, mut deleted, seen, .. } = self;
        let said: HashSet<String> = newer.gone().cloned().collect();
        deleted.extend(said.iter().cloned());
        let above: HashSet<String> = newer.said.keys().cloned().collect();
        // Where nothing was kept before, and nothing comes out of gaps below this one, all that is
        // kept now is above it.
        let is_first = before.is_empty() && fills.is_empty();
        let mut replica = Local::over(newer, before);
        let mut gaps = Vec::new();
        if let Some(url) = missing {
            let above = (!is_first).then(|| above.iter().cloned().collect());
            gaps.push(ArchiveGap { url, until: known.clone(), above });
        }
        // What the parts above a gap speak of; each part adds to those below it.
        let mut spoken = above;
        for fill in fills {
            let Fill { mut gap, layer, stopped, .. } = fill;
            if let Some(above) = &mut gap.above {
                spoken.extend(above.drain(..));
            }
            deleted.extend(layer.gone().cloned());
            let mentioned: Vec<String> = layer.said.keys().cloned().collect();
            // Where it stood below everything, only what nothing else speaks of comes out of it.
            let all = gap.above.is_none();
            replica.put(layer, |replica, id| {
                if all {
                    replica.items.contains_key(id) || deleted.contains(id)
                } else {
                    spoken.contains(id)
                }
            });
            spoken.extend(mentioned);
            let was_read = seen.contains(&gap.url) && stopped.is_none();
            if !was_read {
                gap.url = stopped.unwrap_or(gap.url);
                gap.above = gap.above.map(|_| spoken.iter().cloned().collect());
                gaps.push(gap);
            }
        }
        gaps.truncate(GAPS_LIMIT);
        let items = replica.items();
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

/// The replica while it is put together.
struct Local {
    order: Vec<String>,
    items: HashMap<String, ReplicaItem>,
}

impl Local {
    /// What the newest documents say, over what there is.
    fn over(newer: Layer, before: Vec<ReplicaItem>) -> Self {
        let mut local = Self { order: Vec::new(), items: HashMap::new() };
        let mut gone = HashSet::new();
        for (id, said) in newer.take() {
            match said {
                EntryClaim::There(item) => local.add(id, *item),
                EntryClaim::Gone => drop(gone.insert(id)),
            }
        }
        for item in before {
            let id = item.key().to_owned();
            if !gone.contains(&id) && !local.items.contains_key(&id) {
                local.add(id, item);
            }
        }
        local
    }

    fn add(&mut self, id: String, item: ReplicaItem) {
        if self.items.insert(id.clone(), item).is_none() {
            self.order.push(id);
        }
    }

    /// What stood below `above` and over the rest.
    fn put(&mut self, layer: Layer, is_above: impl Fn(&Self, &String) -> bool) {
        for (id, said) in layer.take() {
            match said {
                _ if is_above(self, &id) => {}
                EntryClaim::There(item) => self.add(id, *item),
                EntryClaim::Gone => drop(self.items.remove(&id)),
            }
        }
    }

    fn items(mut self) -> Vec<ReplicaItem> {
        let order = std::mem::take(&mut self.order);
        order.into_iter().filter_map(|id| self.items.remove(&id)).collect()
    }
}
