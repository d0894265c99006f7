//! Aggregates: what their sources have becomes theirs.

use super::notes::NoteBoard;
use super::{Operator, OperatorError};
use std::collections::{BTreeMap, HashMap, HashSet};
use tidegate_core::model::{
    FeedName, FeedRecord, FeedStanding, Format, Hold, Revision, SharingOptions, SyncId, Tick,
};
use tidegate_format::render;
use tidegate_judge::record::{self, AggregateSource, Credit, LeftOut};
use tidegate_status::{GatherNote, PollStatus};
use tidegate_store::{CommitError, FeedList, Select, StoreError, View};

/// What an aggregate has seen of its sources: since the start of the process, for whatever is
/// offered twice changes nothing.
#[derive(Debug, Default)]
pub struct Gathered {
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

impl NoteBoard<GatherNote> {
    /// Everything is about to be looked at anew.
    fn begin(&self, name: &FeedName) {
        self.change(name, |note| note.left_out.clear());
    }

    /// Notes what was not taken over of what was offered; says what of it is news.
    pub(crate) fn took(
        &self,
        name: &FeedName,
        offered: &HashSet<(&FeedName, &SyncId)>,
        left_out: Vec<LeftOut>,
    ) -> Vec<LeftOut> {
        self.change(name, |note| {
            note.error = None;
            let before = std::mem::take(&mut note.left_out);
            let news = left_out.iter().filter(|one| !before.contains(one)).cloned().collect();
            let is_offered = |one: &LeftOut| offered.contains(&(&one.source, &one.id));
            note.left_out = before.into_iter().filter(|one| !is_offered(one)).collect();
            note.left_out.extend(left_out);
            let excess = note.left_out.len().saturating_sub(GatherNote::LIMIT);
            note.left_out.drain(..excess);
            news
        })
    }

    /// Notes that there is nothing to take over, and so nothing that failed.
    fn rests(&self, name: &FeedName) {
        self.change(name, |note| note.error = None);
    }

    /// Notes why an aggregate could not be stored. Says whether that is news.
    pub fn failed(&self, name: &FeedName, error: String) -> bool {
        self.change(name, |note| note.error.replace(error.clone()) != Some(error))
    }
}

/// Why nothing new comes from a source to aggregates, where that is so. `held`: why a document of it is held; `None` of
/// one that was never read.
pub(crate) fn source_trouble(
    source: Option<&FeedRecord>,
    failures: u32,
    error: Option<&str>,
    held: Option<Option<&str>>,
) -> Option<String> {
    match source.map_or(FeedStanding::Gone, |record| record.standing) {
        FeedStanding::Gone => Some("there is no such feed any more".to_owned()),
        FeedStanding::Paused => Some("it is paused".to_owned()),
        FeedStanding::Active if failures > 0 => {
            let error = error.unwrap_or_default();
            Some(format!("its polls fail, {failures} in a row: {error}"))
        }
        FeedStanding::Active => match held {
            None => Some("it has nothing yet".to_owned()),
            Some(held) => held.map(|why| format!("a document of it is held: {why}")),
        },
    }
}

impl Operator {
    /// What an aggregate could not gather, by how its sources and their polling stand now; `None` of other feeds.
    pub(super) async fn gathering(
        &self,
        record: &FeedRecord,
        feeds: &FeedList,
        polling: &BTreeMap<FeedName, PollStatus>,
    ) -> Result<Option<GatherNote>, OperatorError> {
        let sharing = &record.options.sharing;
        if !sharing.is_aggregate() {
            return Ok(None);
        }
        let mut note = self.gathered.get(&record.name).unwrap_or_default();
        for source in &sharing.sources {
            let state = self.store.state(source).await?;
            let held = state.map(|state| state.hold.as_ref().map(Hold::describe));
            let polled = polling.get(source);
            let (failures, error) = polled.map_or((0, None), |it| (it.failures, it.error()));
            let (feed, held) = (feeds.get(source), held.as_ref().map(Option::as_deref));
            note.note_trouble(source, source_trouble(feed.map(|it| &**it), failures, error, held));
        }
        Ok(Some(note))
    }

    /// Takes over what is new in the sources of an aggregate.
    pub async fn gather(
        &self,
        record: &FeedRecord,
        feeds: &FeedList,
        gathered: &mut Gathered,
    ) -> Result<(), CommitError> {
        let sources = &record.options.sharing.sources;
        // Where the sources are others than before, or share with others, everything is looked at
        // anew.
        let sharing_of =
            |name: &FeedName| feeds.get(name).map(|record| record.options.sharing.clone());
        let options: Vec<_> = sources.iter().chain([&record.name]).map(sharing_of).collect();
        if gathered.options != options {
            gathered.seen.clear();
            self.gathered.begin(&record.name);
            gathered.options = options;
        }
        let mut found = Vec::new();
        for name in sources {
            found.extend(self.source(name, feeds, gathered.seen.get(name)).await?);
        }
        let is_seen = |(source, state): &(AggregateSource, SourceState)| {
            gathered.seen.get(&source.name).is_some_and(|(seen, _)| seen == state)
        };
        if found.iter().all(is_seen) {
            self.gathered.rests(&record.name);
            return Ok(());
        }
        let (found, states): (Vec<AggregateSource>, Vec<SourceState>) = found.into_iter().unzip();
        let items =
            || found.iter().flat_map(|it| it.items.iter().map(move |item| (&it.name, item)));
        let names = items()
            .flat_map(|(_, item)| [item.shared.winner.id.to_string(), item.published_id.clone()]);
        let names: Vec<String> = names.collect();
        let gathering = self.decide_and_commit(record, &names, |observation| {
            let (verdict, left_out) = record::gather(observation, sources, &found);
            Ok((verdict.change, left_out))
        });
        let left_out = match gathering.await {
            // Others change it at the moment: the next look tries again.
            Err(CommitError::Conflict(_)) => return Ok(()),
            done => done?,
        };
        let offered = items().map(|(source, item)| (source, &item.shared.winner.id)).collect();
        for news in self.gathered.took(&record.name, &offered, left_out) {
            let (feed, source, why) = (&record.name, &news.source, &news.why);
            tracing::warn!(%feed, %source, why, "an item was not taken over");
        }
        let seen = found.into_iter().zip(states);
        gathered.seen.extend(seen.map(|(found, state)| (found.name, (state, found.current))));
        Ok(())
    }

    /// A source as it stands, with what changed since it was seen.
    async fn source(
        &self,
        name: &FeedName,
        feeds: &FeedList,
        seen: Option<&(SourceState, Vec<SyncId>)>,
    ) -> Result<Option<(AggregateSource, SourceState)>, StoreError> {
        let Some(state) = self.store.state(name).await? else { return Ok(None) };
        if let Some((seen, current)) = seen.filter(|(seen, _)| seen.revision == state.revision) {
            let (name, current) = (name.clone(), current.clone());
            return Ok(Some((AggregateSource::unchanged(name, current, seen.format), *seen)));
        }
        let seen = seen.map(|(seen, _)| seen);
        let Some(reader) = self.store.pin(name).await? else { return Ok(None) };
        let shown = reader.view(Select::Current).await?;
        let select = seen.and_then(|seen| seen.tick).map_or(Select::All, Select::After);
        let changed = reader.view(select).await?;
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
        let title = match of(name).and_then(|options| options.title.clone()) {
            Some(title) => title,
            None if skeleton.title.trim().is_empty() => name.to_string(),
            None => skeleton.title,
        };
        let active_config = self.active_config();
        let own = active_config.config.server.public_url.as_deref().unwrap_or_default();
        let address = format!("{}/feeds/{name}", own.trim_end_matches('/'));
        let upstream = feeds.get(name).filter(|record| !record.options.sharing.local);
        let upstream = upstream.filter(|record| record.has_upstream());
        let base = upstream.map(|record| record.shown().base(skeleton.link.as_deref()));
        let source = AggregateSource {
            credit: Credit {
                id: address.clone(),
                title,
                authors,
                base: base.unwrap_or_else(|| address.clone()),
                address,
                page: skeleton.link,
            },
            items,
            may_change: feeds.keys().filter(|other| shares(other)).cloned().collect(),
            ..AggregateSource::unchanged(name.clone(), current, state.format)
        };
        Ok(Some((source.with_ledger(&ledger.known), state)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_again_is_judged_anew() {
        let name = |text: &str| FeedName::new(text).unwrap();
        let (all, one, other) = (name("all"), name("one"), name("other"));
        let ids: Vec<SyncId> = (0..30).map(|n| SyncId::new(&format!("x.{n}")).unwrap()).collect();
        let left = |source: &FeedName, id: &SyncId| LeftOut {
            source: source.clone(),
            id: id.clone(),
            why: format!("the item {id} is another's"),
        };
        let board = NoteBoard::<GatherNote>::default();
        let shown = || {
            let left_out = board.get(&all).unwrap_or_default().left_out;
            left_out.into_iter().map(|left| left.id).collect::<Vec<_>>()
        };
        let both = vec![left(&one, &ids[1]), left(&other, &ids[10])];
        let offered = HashSet::from([(&one, &ids[1]), (&other, &ids[10])]);
        assert_eq!(board.took(&all, &offered, both.clone()), both);
        assert_eq!(shown(), [ids[1].clone(), ids[10].clone()]);
        assert!(board.took(&all, &offered, both).is_empty(), "it is logged once");
        assert_eq!(shown().len(), 2);
        // The one is taken now; nothing is said of the other.
        assert!(board.took(&all, &HashSet::from([(&one, &ids[1])]), Vec::new()).is_empty());
        assert_eq!(shown(), [ids[10].clone()]);
        let many: Vec<LeftOut> = ids.iter().map(|id| left(&one, id)).collect();
        board.took(&all, &HashSet::new(), many);
        assert_eq!(shown().len(), GatherNote::LIMIT);
        assert_eq!(shown().last(), ids.last());
        board.begin(&all);
        assert!(shown().is_empty());

        assert!(board.failed(&all, "full".to_owned()));
        assert!(!board.failed(&all, "full".to_owned()), "it is logged once");
        assert_eq!(board.get(&all).unwrap().error.as_deref(), Some("full"));
        board.rests(&all);
        assert_eq!(board.get(&all), Some(GatherNote::default()));
    }
}
