//! Aggregates: what their sources have becomes theirs.

use super::AdminService;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tidegate_core::model::{
    FeedName, FeedRecord, Format, Item, LedgerEntry, Origin, Revision, SharingOptions, SyncId, Tick,
};
use tidegate_format::render;
use tidegate_judge::record::{self, AggregateSource, Credit};
use tidegate_poll::MAX_COMMIT_ATTEMPTS;
use tidegate_store::{CommitError, FeedList, Select, StoreError, View};

/// What an aggregate has seen of its sources: since the start of the process, for whatever is
/// offered twice changes nothing.
#[derive(Debug, Default)]
pub(in crate::app) struct Gathered {
    seen: HashMap<FeedName, (SourceState, Vec<SyncId>)>,
    /// What the operator said of sources and aggregate.
    options: Vec<Option<SharingOptions>>,
}

/// A state of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SourceState {
    revision: Revision,
    tick: Option<Tick>,
    render: u64,
    format: Format,
}

/// A source as it stands, and what of it may be news.
struct SourceNews {
    name: FeedName,
    state: SourceState,
    title: String,
    authors: Vec<String>,
    address: String,
    /// The address that its items are relative to.
    base: String,
    /// Of the page of the whole feed.
    page: Option<String>,
    items: Vec<Item>,
    current: Vec<SyncId>,
    minted: HashSet<SyncId>,
    redacted: Vec<SyncId>,
    discarded: Vec<SyncId>,
    may_change: Vec<FeedName>,
}

impl AdminService {
    /// Notes why an aggregate could not be stored; says whether that is news.
    pub(in crate::app) fn gather_failed(&self, name: &FeedName, error: &CommitError) -> bool {
        self.gathered.failed(name, error.to_string())
    }

    /// Forgets what was noted of aggregates that are none any more.
    pub(in crate::app) fn gathers_only(&self, is_there: impl Fn(&FeedName) -> bool) {
        self.gathered.retain(is_there);
    }

    /// Takes over what is new in the sources of an aggregate.
    pub(in crate::app) async fn gather(
        &self,
        record: &FeedRecord,
        feeds: &FeedList,
        gathered: &mut Gathered,
    ) -> Result<(), CommitError> {
        let sources = &record.options.sharing.sources;
        // Where the sources are others than before, or share with others, everything is looked at
        // anew.
        let said = |name: &FeedName| feeds.get(name).map(|record| record.options.sharing.clone());
        let options: Vec<_> = sources.iter().chain([&record.name]).map(said).collect();
        if gathered.options != options {
            gathered.seen.clear();
            self.gathered.begin(&record.name);
            gathered.options = options;
        }
        let decisions = self.poller.decisions();
        for _ in 0..MAX_COMMIT_ATTEMPTS {
            let mut found = Vec::new();
            for name in sources {
                found.extend(self.source(name, feeds, gathered.seen.get(name)).await?);
            }
            let is_news =
                |source: &SourceNews| gathered.seen.get(&source.name).map(|(seen, _)| *seen);
            if found.iter().all(|source| is_news(source) == Some(source.state)) {
                self.gathered.rests(&record.name);
                return Ok(());
            }
            let offered = found.iter().flat_map(|source| &source.items);
            let offered = offered
                .flat_map(|item| [item.shared.winner.id.to_string(), item.published_id.clone()]);
            let offered: Vec<String> = offered.collect();
            let snapshot = decisions.snapshot(&record.name, &offered).await?;
            let round = decisions.observe(record, snapshot.as_ref(), self.clock.now());
            let offered: Vec<AggregateSource<'_>> = found.iter().map(SourceNews::offered).collect();
            let (verdict, left_out) = record::gather(&round, sources, &offered);
            if let Some(change) = verdict.change
                && decisions.commit(change).await?.is_none()
            {
                continue;
            }
            let offered = found.iter().flat_map(|source| {
                source.items.iter().map(|item| (&source.name, &item.shared.winner.id))
            });
            for news in self.gathered.took(&record.name, &offered.collect(), left_out) {
                let (feed, source, why) = (&record.name, &news.source, &news.why);
                tracing::warn!(%feed, %source, why, "an item was not taken over");
            }
            let seen = found.into_iter().map(|found| (found.name, (found.state, found.current)));
            gathered.seen.extend(seen);
            return Ok(());
        }
        Ok(())
    }

    /// A source as it stands, with what changed since it was seen.
    async fn source(
        &self,
        name: &FeedName,
        feeds: &FeedList,
        seen: Option<&(SourceState, Vec<SyncId>)>,
    ) -> Result<Option<SourceNews>, StoreError> {
        let Some(state) = self.store.state(name).await? else { return Ok(None) };
        if let Some((seen, current)) = seen.filter(|(seen, _)| seen.revision == state.revision) {
            return Ok(Some(SourceNews::unchanged(name, *seen, current)));
        }
        let seen = seen.map(|(seen, _)| seen);
        let Some(reader) = self.store.pin(name).await? else { return Ok(None) };
        let shown = Arc::clone(&reader).view(Select::Current).await?;
        let select = seen.and_then(|seen| seen.tick).map_or(Select::All, Select::After);
        let changed = Arc::clone(&reader).view(select).await?;
        let ledger = reader.snapshot().await?;
        let (Some(shown), Some(View { state, skeleton, mut items }), Some(ledger)) =
            (shown, changed, ledger)
        else {
            return Ok(None);
        };
        let state = SourceState {
            revision: state.revision,
            tick: state.tick,
            render: state.render_revision,
            format: state.format,
        };
        let known = ledger.known;
        let is_made =
            |known: &&LedgerEntry| matches!(known.origin, Origin::Observed | Origin::Local);
        let there: HashSet<SyncId> =
            items.iter().map(|item| item.shared.winner.id.clone()).collect();
        let current = shown.items.iter().map(|item| item.shared.winner.id.clone()).collect();
        let since = seen.map_or(0, |seen| seen.render);
        let newer = shown
            .items
            .into_iter()
            .filter(|item| item.touched > since && !there.contains(&item.shared.winner.id));
        items.extend(newer);
        let of = |name: &FeedName| feeds.get(name).map(|record| &record.options.sharing);
        let shares = |other: &FeedName| {
            of(name).is_some_and(|options| options.shares_with.contains(other))
                || of(other).is_some_and(|options| options.shares_with.contains(name))
        };
        let authors = render::authors(&skeleton);
        let skeleton_link = skeleton.link.clone();
        let title = match of(name).and_then(|options| options.title.clone()) {
            Some(title) => title,
            None if skeleton.title.trim().is_empty() => name.to_string(),
            None => skeleton.title,
        };
        let address = format!("{}/feeds/{name}", self.public_url.trim_end_matches('/'));
        let upstream = feeds.get(name).filter(|record| !record.options.sharing.local);
        let upstream = upstream.filter(|record| record.has_upstream());
        let upstream = upstream.map(|record| record.shown().base(skeleton_link.as_deref()));
        Ok(Some(SourceNews {
            state,
            title,
            authors,
            base: upstream.unwrap_or_else(|| address.clone()),
            page: skeleton_link,
            address,
            items,
            current,
            minted: known.iter().filter(is_made).map(|known| known.id.clone()).collect(),
            redacted: known.iter().filter(|k| k.is_redacted()).map(|k| k.id.clone()).collect(),
            discarded: known.iter().filter(|k| k.is_discarded()).map(|k| k.id.clone()).collect(),
            may_change: feeds.keys().filter(|other| shares(other)).cloned().collect(),
            name: name.clone(),
        }))
    }
}

impl SourceNews {
    /// A source of which nothing is news.
    fn unchanged(name: &FeedName, state: SourceState, current: &[SyncId]) -> Self {
        Self {
            name: name.clone(),
            state,
            title: String::new(),
            authors: Vec::new(),
            address: String::new(),
            base: String::new(),
            page: None,
            items: Vec::new(),
            current: current.to_vec(),
            minted: HashSet::new(),
            redacted: Vec::new(),
            discarded: Vec::new(),
            may_change: Vec::new(),
        }
    }

    fn offered(&self) -> AggregateSource<'_> {
        AggregateSource {
            name: &self.name,
            credit: Credit {
                id: &self.address,
                title: &self.title,
                authors: &self.authors,
                address: &self.address,
                base: &self.base,
                page: self.page.as_deref(),
            },
            items: &self.items,
            current: &self.current,
            minted: &self.minted,
            redacted: &self.redacted,
            discarded: &self.discarded,
            may_change: &self.may_change,
            format: self.state.format,
        }
    }
}
