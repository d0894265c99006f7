//! What becomes of each outline of a list: a pure decision.

mod known;
mod layout;
mod members;

use super::{ImportedList, ListLine};
use known::TakenNames;
use layout::{FolderPath, Layout, Positions, own_path, positions};
pub use members::ListRules;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use tidegate_config::Config;
use tidegate_core::model::{
    EndpointId, Enrolment, FeedAccess, FeedName, FeedRecord, FeedSource, ListPlace, OutlineLabel,
    ShownAddress, Time, listed, mask_token,
};
use tidegate_core::terminal::printable;
use tidegate_format::parse::opml::{Outline, OutlineKind, OutlineList};
use url::Url;

/// Outlines of this type are searches that a program makes over its feeds.
const SEARCH: &str = "vfolder";

/// An outline that was not taken, or something of the list that was guessed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedOutline {
    /// The line, counted from 1.
    pub line: usize,
    /// The address as it is written, without credentials; `None` where there is none.
    pub address: Option<String>,
    /// Why, in words.
    pub why: String,
}

impl RefusedOutline {
    fn as_line(&self) -> ListLine {
        let address = self.address.as_ref().map(|it| format!("{it}: ")).unwrap_or_default();
        ListLine { line: self.line, said: format!("{address}{}", self.why) }
    }
}

/// The changes that a list leads to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportPlan {
    /// Feeds to be added, in the order of the list.
    pub new: Vec<FeedRecord>,
    /// Feeds that are there already and have another place in the list of subscriptions now.
    pub placed: Vec<FeedRecord>,
    /// Feeds that are paused or polled again, as the list that added them does not have them any more or
    /// has them again.
    pub switched: Vec<FeedRecord>,
    /// What could not be taken, in the order of the list.
    pub refused: Vec<RefusedOutline>,
    /// The report for the person who imports. Its `known` leaves out feeds that follow the list.
    pub done: ImportedList,
}

impl ImportPlan {
    /// The records that are to be written.
    pub fn changed(&self) -> Vec<FeedRecord> {
        self.new.iter().chain(&self.switched).chain(&self.placed).cloned().collect()
    }
}

/// What there is before a list is taken.
pub struct ExistingFeeds<'a> {
    /// The feeds of the store.
    pub stored: &'a [Arc<FeedRecord>],
    /// The configuration, whose feeds may not be in the store yet.
    pub config: &'a Config,
    /// This gateway's endpoint id.
    pub endpoint: &'a EndpointId,
    /// The time now.
    pub now: Time,
    /// Whether the list says where its feeds stand, also where they have a place.
    pub rearrange: bool,
    /// The feed here whose document the list is, where its feeds follow it.
    pub rules: Option<ListRules>,
}

/// Decides about each outline.
pub fn plan(list: &OutlineList, before: &ExistingFeeds<'_>) -> ImportPlan {
    let rules = before.rules.as_ref();
    let mut planner = Planner {
        list,
        before,
        rules,
        plan: ImportPlan::default(),
        known: TakenNames::new(before),
        layout: match before.rearrange {
            true => Layout::default(),
            false => Layout::from_records(before.stored),
        },
        drafts: Vec::new(),
        by_address: HashMap::new(),
        inner_paths: Vec::with_capacity(list.outlines.len()),
        capacity: rules.map_or(usize::MAX, |rules| rules.capacity(before.stored)),
        parents: list.outlines.iter().filter_map(|outline| outline.parent).collect(),
    };
    for (number, outline) in list.outlines.iter().enumerate() {
        let inner_path = planner.outline(number, outline);
        planner.inner_paths.push(inner_path);
    }
    if before.rearrange {
        planner.place_unlisted();
    }
    if let Some(rules) = rules {
        planner.drop_missing(rules);
    }
    planner.finish()
}

/// A feed that the list has.
struct FeedDraft {
    /// The record as it is to be written, without its places.
    record: FeedRecord,
    /// What the store has of it.
    before: Option<FeedRecord>,
    /// Whether the gateway did not have it.
    is_new: bool,
    /// Whether it keeps the places that it has.
    keeps: bool,
    /// The places that it is given.
    places: Vec<ListPlace>,
    /// The positions of the folders in which the list has it, with the lines.
    seen: HashMap<Positions, usize>,
}

impl FeedDraft {
    fn new(record: FeedRecord, before: Option<FeedRecord>) -> Self {
        let (places, seen) = (Vec::new(), HashMap::new());
        Self { record, before, is_new: false, keeps: false, places, seen }
    }
}

struct Planner<'a> {
    list: &'a OutlineList,
    before: &'a ExistingFeeds<'a>,
    rules: Option<&'a ListRules>,
    plan: ImportPlan,
    known: TakenNames,
    layout: Layout,
    drafts: Vec<FeedDraft>,
    by_address: HashMap<String, usize>,
    /// By the number of each outline, the folder path of what is in it.
    inner_paths: Vec<FolderPath>,
    /// How many feeds more may be added.
    capacity: usize,
    /// The outlines that have others in them.
    parents: HashSet<usize>,
}

impl Planner<'_> {
    /// Decides about an outline; answers where those in it stand.
    fn outline(&mut self, number: usize, outline: &Outline) -> FolderPath {
        let parent = self.parent(outline);
        let label = OutlineLabel::new(|name| outline.attribute(name));
        let address = self.address(number, outline);
        match address.and_then(|written| self.feed(written, outline, &label)) {
            Some(within) => within,
            None if self.parents.contains(&number) => self.layout.folder(&parent, &label),
            None => parent,
        }
    }

    /// Where an outline stands.
    fn parent(&self, outline: &Outline) -> FolderPath {
        outline.parent.and_then(|of| self.inner_paths.get(of)).cloned().unwrap_or_default()
    }

    fn refuse(&mut self, outline: &Outline, address: Option<&str>, why: String) {
        let (line, address) = (outline.line, address.map(shown));
        self.plan.refused.push(RefusedOutline { line, address, why });
    }

    /// The address of the feed that an outline is, if it is one that can be taken.
    fn address<'o>(&mut self, number: usize, outline: &'o Outline) -> Option<&'o str> {
        if outline.is_deleted() {
            self.plan.done.deleted += 1;
            return None;
        }
        let is_torn = self.list.is_torn && number + 1 == self.list.outlines.len();
        let (address, why) = match outline.kind() {
            OutlineKind::Feed(written) if outline.is_comment => (written, "it is commented out"),
            OutlineKind::Feed(written) if is_torn => {
                (written, "the list ends within it, so that its address may be a part of one")
            }
            OutlineKind::Feed(written) => return Some(written),
            OutlineKind::Include(address) => {
                (address, "it leads to another list; import that by itself")
            }
            OutlineKind::Link(address) => (address, "it is a link to a page and no feed"),
            OutlineKind::Text if self.parents.contains(&number) => return None,
            OutlineKind::Text => {
                let is_search = outline.type_name().is_some_and(|t| t.eq_ignore_ascii_case(SEARCH));
                let what = match is_search {
                    true => "is a search",
                    false => "has neither an address nor feeds in it",
                };
                let label = short(outline.text().unwrap_or_default());
                self.refuse(outline, None, format!("the outline {label:?} {what}"));
                return None;
            }
        };
        self.refuse(outline, Some(address), why.to_owned());
        None
    }

    /// Takes a feed; answers where what is in its outline is.
    fn feed(
        &mut self,
        written: &str,
        outline: &Outline,
        label: &OutlineLabel,
    ) -> Option<FolderPath> {
        let parent = self.parent(outline);
        let around = positions(&parent);
        let taken = self.draft(written, outline, &around);
        let at = taken.map_err(|why| self.refuse(outline, Some(written), why)).ok()?;
        let draft = self.drafts.get_mut(at)?;
        let is_again = !draft.seen.is_empty();
        draft.seen.insert(around, outline.line);
        let is_apart = self.rules.is_none() || draft.keeps;
        if !draft.is_new && !is_again && is_apart {
            self.plan.done.known += 1;
        }
        if draft.keeps {
            return own_path(&parent, &draft.record.enrolment.places);
        }
        if is_again {
            self.plan.done.again += 1;
        }
        if self.list.folder(outline).len() > ListPlace::DEPTH {
            self.plan.done.deeper += 1;
        }
        let site = outline.site().and_then(ListPlace::site);
        let (place, within) = self.layout.place(&parent, label.clone(), site);
        draft.places.push(place);
        Some(within)
    }

    /// The feed at an address, by its number; why it is not taken otherwise.
    fn draft(&mut self, written: &str, outline: &Outline, around: &[u32]) -> Result<usize, String> {
        let (url, access) = self.known.address(written)?;
        if let Some(at) = self.by_address.get(url.as_str()).copied() {
            let draft = self.drafts.get(at).ok_or("it cannot be told from another")?;
            if let Some(line) = draft.seen.get(around) {
                return Err(format!("it stands in line {line} already"));
            }
            if !draft.keeps && draft.places.len() >= ListPlace::MOST {
                let most = ListPlace::MOST;
                return Err(format!("it stands in {most} folders already, which is the limit"));
            }
            return Ok(at);
        }
        let (record, before) = match self.known.record(&url)? {
            Some(known) => known,
            None => {
                self.rules.map_or(Ok(()), |rules| rules.check_new(&url, &mut self.capacity))?;
                let record = new(self.known.name(&url)?, (&url, access), outline);
                let record = match self.rules {
                    Some(rules) => rules.own(record),
                    None => record,
                };
                (record, None)
            }
        };
        let is_new = before.is_none() && record.source == FeedSource::Api;
        let keeps = match self.rules {
            Some(rules) => !is_new && !rules.decides(&record),
            None => !self.before.rearrange && !record.enrolment.places.is_empty(),
        };
        let at = self.drafts.len();
        self.by_address.insert(url.to_string(), at);
        self.drafts.push(FeedDraft { is_new, keeps, ..FeedDraft::new(record, before) });
        Ok(at)
    }

    /// Places the feeds that the list does not have behind those that it has, in their old folders.
    fn place_unlisted(&mut self) {
        self.layout.begin_another_list();
        let mentioned: HashSet<FeedName> =
            self.drafts.iter().map(|draft| draft.record.name.clone()).collect();
        let mut moved: HashMap<Positions, FolderPath> = HashMap::new();
        let mut drafts: BTreeMap<&FeedName, FeedDraft> = BTreeMap::new();
        for (record, place) in listed(self.before.stored.iter().map(Arc::as_ref)) {
            let Some(place) = place.filter(|_| !mentioned.contains(&record.name)) else { continue };
            let (mut parent, mut way) = (FolderPath::default(), Positions::new());
            for folder in &place.folders {
                way.push(folder.position);
                parent = match moved.get(&way) {
                    Some(known) => Arc::clone(known),
                    None => self.layout.folder(&parent, &folder.label),
                };
                moved.insert(way.clone(), Arc::clone(&parent));
            }
            let (new, within) = self.layout.place(&parent, place.label.clone(), place.site.clone());
            way.push(place.position);
            moved.insert(way, within);
            let other = || FeedDraft::new(record.clone(), Some(record.clone()));
            let draft = drafts.entry(&record.name).or_insert_with(other);
            draft.places.push(ListPlace { number: place.number, ..new });
        }
        for mut draft in drafts.into_values() {
            // Each keeps the number that it had.
            draft.places.sort_by_key(|place| place.number);
            self.drafts.push(draft);
        }
    }

    fn finish(self) -> ImportPlan {
        let ExistingFeeds { stored, endpoint, now, .. } = *self.before;
        let when = FeedRecord::next_change(stored.iter().map(Arc::as_ref), now);
        let mut plan = self.plan;
        for FeedDraft { mut record, before, is_new, places, .. } in self.drafts {
            // One without a new place stays as it is, unless it is the list's and the list has changed it.
            let is_of_list = self.rules.is_some_and(|rules| record.is_member_of(&rules.list));
            if places.is_empty() && !(is_of_list && before.as_ref() != Some(&record)) {
                continue;
            }
            match self.rules {
                Some(rules) => rules.lay_out(&mut record, places),
                None => record.enrolment.set_places(places),
            }
            if !record.follow(before.as_ref(), when, endpoint) {
                continue;
            }
            let is_switched = before.as_ref().is_some_and(|b| b.standing != record.standing);
            match (is_new, is_switched) {
                (true, _) => plan.new.push(record),
                (false, true) => plan.switched.push(record),
                (false, false) => plan.placed.push(record),
            }
        }
        let done = &mut plan.done;
        done.added = plan.new.iter().map(|record| record.name.clone()).collect();
        (done.placed, done.not_taken) = (plan.placed.len(), plan.refused.len());
        let refused = plan.refused.iter().take(ImportedList::NAMED);
        done.refused = refused.map(RefusedOutline::as_line).collect();
        plan
    }
}

/// A feed that the gateway does not have.
fn new(
    name: FeedName,
    (url, access): (&Url, Option<Box<FeedAccess>>),
    outline: &Outline,
) -> FeedRecord {
    FeedRecord {
        access,
        enrolment: Enrolment {
            title: outline.title().and_then(Enrolment::title),
            ..Enrolment::default()
        },
        ..FeedRecord::new(name, url.as_str(), FeedSource::Api)
    }
}

/// How much of an address or a text is shown, in characters.
const SHOWN: usize = 200;

/// A text as a message shows it: one line without control characters.
fn short(text: &str) -> String {
    printable(text).chars().take(SHOWN).collect()
}

/// An address without user, password and keys.
fn shown(address: &str) -> String {
    let short = short(address);
    match Url::parse(address) {
        Ok(url) if url.cannot_be_a_base() && address.contains('@') => "…".to_owned(),
        Ok(url) if url.cannot_be_a_base() => short,
        Ok(_) => self::short(&mask_token(ShownAddress::new(address, None).text())),
        // What cannot be parsed cannot be cut safely.
        Err(_) if address.contains('@') => "…".to_owned(),
        Err(_) => short,
    }
}

#[cfg(test)]
mod tests;
