//! What is known of each feed wherever many are looked at: pages, lists, searches and counts. One index is kept up by
//! what changes. Whoever asks for it has those feeds looked at whose record, state or polling is another one since.

use super::operator::source_trouble;
use super::{AppState, Audience, Listing, Problem, explain, shown};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{
    FeedName, FeedRecord, FeedStanding, FeedState, Format, ListPlace, Tick, Time, listed,
    shown_text,
};
use tidegate_status::{FeedSummary, GatherNote};
use tidegate_store::FeedList;
use tokio::sync::Mutex;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

/// How many feeds are looked at before the task yields.
const FEEDS_PER_YIELD: usize = 500;
/// How long the poll states that other gateways stored are used before they are read again: this many times as long as
/// reading them took, within the two bounds. So reading takes at most a twentieth of the time.
const STORED_AGE_FACTOR: u32 = 20;
const STORED_AGE_MIN: Duration = Duration::from_secs(1);
const STORED_AGE_MAX: Duration = Duration::from_secs(30);
/// How long reading them may take; after that the ones read before are used.
const STORED_READ_TIME: Duration = Duration::from_secs(2);

/// A feed as it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct IndexedFeed {
    pub(super) record: Arc<FeedRecord>,
    /// Whether only readers with a token may read it.
    pub(super) is_private: bool,
    /// What is searched, in lower case, each on a line: title, name, address, and the folder that it is in first.
    pub(super) text: Box<str>,
    pub(super) figures: StateFigures,
    /// How its polling stands, as this gateway or another one has it.
    pub(super) polling: FeedSummary,
    /// Whether this gateway knows that by itself.
    pub(super) is_polled_here: bool,
    /// What an aggregate could not gather; `None` of other feeds.
    pub(super) gathered: Option<GatherNote>,
}

/// What the store knows of a feed, in short.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct StateFigures {
    /// Whether it was ever read.
    is_read: bool,
    /// Why a document is held back, if one is: the evidence, and the rule with it.
    pub(super) held: Option<Box<str>>,
    held_by: Option<Box<str>>,
    /// How many items are in conflict.
    pub(super) contested: u32,
    /// When its last versions were taken in.
    pub(super) changed: Option<Tick>,
    /// When something that is pending is decided.
    pub(super) decides: Option<Time>,
    pub(super) current: u32,
    pub(super) living: u32,
    pub(super) tombstones: u32,
    /// Fingerprint of what the list of subscriptions tells of its document.
    subscription: u64,
}

impl From<&FeedState> for StateFigures {
    fn from(state: &FeedState) -> Self {
        let mut subscription = DefaultHasher::new();
        (&state.site, state.format == Format::Opml).hash(&mut subscription);
        Self {
            is_read: true,
            held: state.hold.as_ref().map(|hold| hold.reason.as_str().into()),
            held_by: state.hold.as_ref().map(|hold| hold.describe().into()),
            contested: state.contested,
            changed: state.tick,
            decides: state.next_decision_at,
            current: state.current,
            living: state.living,
            tombstones: state.tombstones,
            subscription: subscription.finish(),
        }
    }
}

impl IndexedFeed {
    /// A feed of which nothing is known but its record.
    pub(super) fn new(record: &Arc<FeedRecord>, is_private: bool) -> Self {
        let mut feed = Self {
            record: Arc::clone(record),
            is_private,
            text: Box::default(),
            figures: StateFigures::default(),
            polling: FeedSummary::default(),
            is_polled_here: false,
            gathered: None,
        };
        let folder = feed.folders().next().unwrap_or_default();
        let texts = [&feed.title(), feed.name().as_str(), &feed.address(), &folder];
        feed.text = texts.join("\n").to_lowercase().into();
        feed
    }

    pub(super) fn name(&self) -> &FeedName {
        &self.record.name
    }

    /// What it is called: in the reader's list, by its publisher, else its name here.
    pub(super) fn title(&self) -> String {
        let label = self.record.shown_label(self.places().first().copied());
        label.text.unwrap_or_else(|| self.name().to_string())
    }

    /// Where the reader's list has it, what comes first there first.
    fn places(&self) -> Vec<&ListPlace> {
        let mut places: Vec<&ListPlace> = self.record.enrolment.places.iter().collect();
        places.sort_by(|one, other| one.path().cmp(other.path()));
        places
    }

    /// The upstream's address as it may be shown; empty where it has none.
    pub(super) fn address(&self) -> String {
        match self.record.has_upstream() {
            true => self.record.shown().text().to_owned(),
            false => String::new(),
        }
    }

    /// Where permanent redirects lead, as it may be shown.
    pub(super) fn moved_to(&self) -> Option<String> {
        let address = self.polling.moved_to.as_ref();
        address.map(|address| shown(address, self.record.options.secret))
    }

    /// The folders that it is in, as a page shows them; empty for none.
    pub(super) fn folders(&self) -> impl Iterator<Item = String> {
        self.places().into_iter().map(folder_path)
    }

    /// Whether it is there for readers: its addresses do not answer 410.
    pub(super) fn is_served(&self) -> bool {
        self.record.standing != FeedStanding::Gone
    }

    /// Whether its polls fail.
    pub(super) fn is_failing(&self) -> bool {
        self.polling.is_failing(&self.record)
    }

    /// Whether somebody should look at it.
    pub(super) fn has_problem(&self, now: Time) -> bool {
        self.is_failing()
            || self.figures.held.is_some()
            || self.figures.contested > 0
            || self.polling.gaps.lately(now).is_some()
            || self.polling.is_hub_distrusted
            || !self.ungathered().is_empty()
    }

    /// What an aggregate could not gather, in words; empty where that is nothing.
    pub(super) fn ungathered(&self) -> Vec<String> {
        self.gathered.as_ref().map(explain::ungathered).unwrap_or_default()
    }

    /// Why nothing new comes from it to aggregates, where that is so.
    fn trouble(&self) -> Option<String> {
        let held = self.figures.is_read.then_some(self.figures.held_by.as_deref());
        let FeedSummary { failures, error, .. } = &self.polling;
        source_trouble(Some(&self.record), *failures, error.as_deref(), held)
    }

    /// Whether another gateway may know how its polling stands, and this one does not.
    fn may_be_polled_elsewhere(&self) -> bool {
        !self.is_polled_here && self.record.has_upstream() && self.is_served()
    }
}

/// The folders around a place, as a page shows them.
fn folder_path(place: &ListPlace) -> String {
    let names = place.folders.iter().map(|folder| {
        let name = folder.label.heading().map(|name| shown_text(name, None));
        name.unwrap_or_else(|| "(no name)".to_owned())
    });
    names.collect::<Vec<_>>().join(" / ")
}

/// All feeds as they stood when it was asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct FeedIndex {
    /// In the order of the reader's own list; feeds in no folder of it behind the others, by name.
    feeds: Vec<Arc<IndexedFeed>>,
    positions: Arc<HashMap<FeedName, usize>>,
    /// Rises whenever anything in the index changes.
    pub(super) revision: u64,
    /// Rises whenever anything changes that the list of subscriptions (OPML) shows.
    pub(super) list_revision: u64,
}

impl FeedIndex {
    pub(super) fn get(&self, name: &FeedName) -> Option<&Arc<IndexedFeed>> {
        self.feeds.get(*self.positions.get(name)?)
    }

    pub(super) fn feeds(&self) -> impl Iterator<Item = &IndexedFeed> {
        self.feeds.iter().map(|feed| &**feed)
    }

    /// Those that an audience sees.
    pub(super) fn seen_by(&self, audience: &Audience) -> impl Iterator<Item = &IndexedFeed> {
        self.feeds().filter(|feed| audience.sees(feed.name(), feed.is_private))
    }

    /// The same of another list of feeds. Those whose records are the same stay; the others are to be looked at.
    fn arranged(&self, listing: &Listing) -> Self {
        let (mut feeds, mut positions) = (Vec::with_capacity(listing.len()), HashMap::new());
        for (FeedRecord { name, .. }, _) in listed(listing.values().map(|record| &**record)) {
            // One that is in several folders is there once.
            let Some(record) = listing.get(name).filter(|_| !positions.contains_key(name)) else {
                continue;
            };
            let is_private = listing.private.contains(name);
            let is_same = |feed: &&Arc<IndexedFeed>| {
                Arc::ptr_eq(&feed.record, record) && feed.is_private == is_private
            };
            let same = self.get(name).filter(is_same).map(Arc::clone);
            positions.insert(name.clone(), feeds.len());
            feeds.push(same.unwrap_or_else(|| Arc::new(IndexedFeed::new(record, is_private))));
        }
        let (revision, list_revision) = (self.revision + 1, self.list_revision + 1);
        Self { feeds, positions: Arc::new(positions), revision, list_revision }
    }

    /// Takes in how feeds stand now.
    fn update(&mut self, feeds: Vec<IndexedFeed>) {
        for feed in feeds {
            let Some(at) = self.positions.get(feed.name()) else { continue };
            let Some(before) = self.feeds.get_mut(*at) else { continue };
            if before.figures.subscription != feed.figures.subscription {
                self.list_revision += 1;
            }
            *before = Arc::new(feed);
        }
        self.revision += 1;
    }
}

/// The index, and what it is kept up by.
#[derive(Default)]
pub(super) struct IndexUpkeep {
    /// One has it kept up at a time; the others wait for that.
    kept: Mutex<KeptIndex>,
    /// One reads at a time what other gateways stored. Who needs nothing of that waits for nobody.
    reading: Mutex<()>,
}

#[derive(Default)]
struct KeptIndex {
    index: Arc<FeedIndex>,
    /// The list of feeds that it is of, and those in it that are aggregates.
    list: Arc<FeedList>,
    aggregates: Vec<FeedName>,
    /// The numbers of the newest changes to states and to polling that are noted here.
    seen: (u64, u64),
    /// The feeds that are to be looked at, by those changes: who goes away meanwhile leaves the rest to the next.
    due: BTreeSet<FeedName>,
    /// What other gateways stored of the polls of feeds, and until when that is believed.
    stored: BTreeMap<FeedName, FeedSummary>,
    stored_until: Option<Instant>,
    /// Whether `stored` lacks a feed that another gateway may poll.
    is_unread: bool,
    /// The revisions of the index and of the notes at which [`Self::gather`] last ran.
    gathered: Option<(u64, u64)>,
}

impl AppState {
    /// All feeds as they stand; the polls of other gateways as they were known last.
    pub(super) async fn index(&self) -> Result<Arc<FeedIndex>, Problem> {
        let mut kept = self.index.kept.lock().await;
        kept.keep_up(self).await?;
        Ok(Arc::clone(&kept.index))
    }

    /// The same, with the polls of other gateways as they stored them, and with what aggregates could not gather.
    pub(super) async fn whole_index(&self) -> Result<Arc<FeedIndex>, Problem> {
        let _reading = self.index.reading.lock().await;
        let mut kept = self.index.kept.lock().await;
        kept.keep_up(self).await?;
        if self.store.gateways().is_some()
            && let Some(records) = kept.unread()
        {
            drop(kept);
            let begun = Instant::now();
            let read = timeout(STORED_READ_TIME, self.operator.stored_summaries(&records)).await;
            kept = self.index.kept.lock().await;
            match read {
                Ok(Ok(stored)) => kept.stored = stored,
                failed => tracing::debug!(
                    ?failed,
                    "polls of other gateways are told as they were known last"
                ),
            }
            kept.take_in_stored(records, begun);
            kept.keep_up(self).await?;
        }
        kept.gather(self).await;
        Ok(Arc::clone(&kept.index))
    }
}

impl KeptIndex {
    /// Looks at what has changed. What was looked at is taken in in portions.
    async fn keep_up(&mut self, app: &AppState) -> Result<(), Problem> {
        let listing = app.directory.listing().await?;
        // Before anything is read: what changes meanwhile is looked at the next time.
        let (states, changed_states) = app.store.changed_states().after(self.seen.0);
        let (polls, changed_polls) = app.operator.poller.changed().after(self.seen.1);
        match changed_states.zip(changed_polls) {
            Some((states, polls)) => self.due.extend(states.into_iter().chain(polls)),
            None => self.due.extend(listing.keys().cloned()),
        }
        self.seen = (states, polls);
        if !Arc::ptr_eq(&self.list, &listing.feeds) {
            let arranged = self.index.arranged(&listing);
            let is_new = |feed: &&Arc<IndexedFeed>| {
                self.index.get(feed.name()).is_none_or(|before| !Arc::ptr_eq(before, feed))
            };
            let new = arranged.feeds.iter().filter(is_new);
            self.due.extend(new.map(|feed| feed.name().clone()));
            self.index = Arc::new(arranged);
            self.list = Arc::clone(&listing.feeds);
            let aggregates = listing.values().filter(|it| it.options.sharing.is_aggregate());
            self.aggregates = aggregates.map(|record| record.name.clone()).collect();
        }
        while !self.due.is_empty() {
            let portion: Vec<FeedName> = self.due.iter().take(FEEDS_PER_YIELD).cloned().collect();
            let mut changed = Vec::new();
            for name in &portion {
                changed.extend(self.look_at(name, app).await?);
            }
            for name in &portion {
                self.due.remove(name);
            }
            self.take_in(changed);
            if !self.due.is_empty() {
                yield_now().await;
            }
        }
        Ok(())
    }

    /// A feed as it stands now, where that is another than before.
    async fn look_at(
        &mut self,
        name: &FeedName,
        app: &AppState,
    ) -> Result<Option<IndexedFeed>, Problem> {
        let Some(before) = self.index.get(name) else { return Ok(None) };
        let mut feed = IndexedFeed::clone(before);
        let state = app.store.state(name).await?;
        feed.figures = state.as_ref().map(StateFigures::from).unwrap_or_default();
        let own = app.operator.poller.summary(name);
        feed.is_polled_here = own.is_some();
        let known = own.or_else(|| self.stored.get(name).cloned());
        self.is_unread |= known.is_none() && feed.may_be_polled_elsewhere();
        feed.polling = known.unwrap_or_default();
        Ok((feed != **before).then_some(feed))
    }

    fn take_in(&mut self, changed: Vec<IndexedFeed>) {
        if !changed.is_empty() {
            Arc::make_mut(&mut self.index).update(changed);
        }
    }

    /// The feeds whose poll states have to be read from the store; `None`: they were read a moment ago.
    fn unread(&mut self) -> Option<Vec<Arc<FeedRecord>>> {
        let is_believed = self.stored_until.is_some_and(|until| Instant::now() < until);
        if is_believed && !self.is_unread {
            return None;
        }
        self.is_unread = false;
        let elsewhere = self.index.feeds().filter(|feed| feed.may_be_polled_elsewhere());
        Some(elsewhere.map(|feed| Arc::clone(&feed.record)).collect())
    }

    /// Takes in what is known now of these feeds, which was begun to be read then.
    fn take_in_stored(&mut self, records: Vec<Arc<FeedRecord>>, begun: Instant) {
        let age = begun.elapsed().saturating_mul(STORED_AGE_FACTOR);
        self.stored_until = Some(Instant::now() + age.clamp(STORED_AGE_MIN, STORED_AGE_MAX));
        let mut changed = Vec::new();
        for record in records {
            let (Some(before), Some(polling)) =
                (self.index.get(&record.name), self.stored.get(&record.name))
            else {
                continue;
            };
            // It may be polled here meanwhile.
            if before.may_be_polled_elsewhere() && before.polling != *polling {
                changed.push(IndexedFeed { polling: polling.clone(), ..(**before).clone() });
            }
        }
        self.take_in(changed);
    }

    /// Looks what aggregates could not gather, unless nothing has changed since.
    async fn gather(&mut self, app: &AppState) {
        let notes = app.operator.gathered.revision();
        if self.gathered == Some((self.index.revision, notes)) {
            return;
        }
        let (mut changed, mut looked_at) = (Vec::new(), 0_usize);
        for name in &self.aggregates {
            let Some(before) = self.index.get(name) else { continue };
            let sharing = &before.record.options.sharing;
            looked_at += sharing.sources.len();
            if looked_at > FEEDS_PER_YIELD {
                looked_at = 0;
                yield_now().await;
            }
            let mut note = app.operator.gathered.get(name).unwrap_or_default();
            for source in &sharing.sources {
                let gone = || source_trouble(None, 0, None, None);
                let why = self.index.get(source).map_or_else(gone, |feed| feed.trouble());
                note.note_trouble(source, why);
            }
            let gathered = Some(note);
            if before.gathered != gathered {
                changed.push(IndexedFeed { gathered, ..(**before).clone() });
            }
        }
        self.take_in(changed);
        self.gathered = Some((self.index.revision, notes));
    }
}
