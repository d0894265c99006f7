//! What operators are told of aggregates: what was not taken over, and which sources bring nothing.

use super::notes::NoteBoard;
use super::{Operator, OperatorError};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use tidegate_core::model::{FeedName, FeedRecord, FeedStanding, Hold, SharingOptions, SyncId};
use tidegate_judge::record::LeftOut;
use tidegate_status::{FeedStatus, GatherNote, SourceTrouble};
use tidegate_store::FeedList;

/// Why nothing new comes from an active source, in words, where that is so; `held`: why a document of it is held, `None`
/// of a source that was never read.
pub(crate) fn source_trouble(
    failing: Option<String>,
    held: Option<Option<&str>>,
) -> Option<String> {
    failing.or_else(|| match held {
        None => Some("it has nothing yet".to_owned()),
        Some(held) => held.map(|why| format!("a document of it is held: {why}")),
    })
}

/// Why nothing new comes from a source whose polls fail.
pub(crate) fn failure_words(failures: u32, error: Option<&str>) -> String {
    format!("its polls fail, {failures} in a row: {}", error.unwrap_or_default())
}

/// What was noted of an aggregate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Noted {
    /// The newest last.
    left_out: Vec<LeftOut>,
    /// Why it could not be stored when that was tried last.
    error: Option<String>,
}

impl NoteBoard<Noted> {
    /// Everything is about to be looked at anew.
    pub(super) fn begin(&self, name: &FeedName) {
        self.change(name, |noted| noted.left_out.clear());
    }

    /// Notes what was not taken over of what was offered; says what of it is news.
    pub(crate) fn took(
        &self,
        name: &FeedName,
        offered: &HashSet<(&FeedName, &SyncId)>,
        left_out: Vec<LeftOut>,
    ) -> Vec<LeftOut> {
        self.change(name, |noted| {
            noted.error = None;
            let before = std::mem::take(&mut noted.left_out);
            let news = left_out.iter().filter(|one| !before.contains(one)).cloned().collect();
            let is_offered = |one: &LeftOut| offered.contains(&(&one.source, &one.id));
            noted.left_out = before.into_iter().filter(|one| !is_offered(one)).collect();
            noted.left_out.extend(left_out);
            let excess = noted.left_out.len().saturating_sub(GatherNote::LIMIT);
            noted.left_out.drain(..excess);
            news
        })
    }

    /// Notes that there is nothing to take over, and so nothing that failed.
    pub(super) fn rests(&self, name: &FeedName) {
        self.change(name, |noted| noted.error = None);
    }

    /// Notes why an aggregate could not be stored. Says whether that is news.
    pub fn failed(&self, name: &FeedName, error: String) -> bool {
        self.change(name, |noted| noted.error.replace(error.clone()) != Some(error))
    }

    fn note(&self, name: &FeedName) -> GatherNote {
        let Noted { left_out, error } = self.get(name).unwrap_or_default();
        GatherNote { left_out, error, ..GatherNote::default() }
    }
}

impl Operator {
    /// Says of those that are aggregates what they could not gather. `feeds`: all that there are.
    pub(super) async fn tell_of_gathering(
        &self,
        all: &mut [FeedStatus],
        feeds: &FeedList,
    ) -> Result<(), OperatorError> {
        if !all.iter().any(|status| status.options.sharing.is_aggregate()) {
            return Ok(());
        }
        let aggregates = all.iter().filter(|status| status.options.sharing.is_aggregate());
        let sources = aggregates.flat_map(|status| &status.options.sharing.sources).collect();
        let troubles = self.troubles_of(sources, feeds).await?;
        for status in all.iter_mut().filter(|status| status.options.sharing.is_aggregate()) {
            let trouble = |source: &FeedName| troubles.get(source).cloned();
            status.gathered =
                Some(self.gathering(&status.name, &status.options.sharing, feeds, trouble));
        }
        Ok(())
    }

    /// Why nothing new comes from those of these feeds of which that is so, should they be active.
    async fn troubles_of(
        &self,
        names: BTreeSet<&FeedName>,
        feeds: &FeedList,
    ) -> Result<BTreeMap<FeedName, String>, OperatorError> {
        let records = names.iter().filter_map(|name| feeds.get(*name).cloned());
        let records: Vec<Arc<FeedRecord>> = records.collect();
        let polling = self.polling_of(&records).await?.into_iter();
        let mut failing: BTreeMap<FeedName, String> = polling
            .filter(|(_, polling)| polling.failures > 0)
            .map(|(name, polling)| (name, failure_words(polling.failures, polling.error())))
            .collect();
        let mut troubles = BTreeMap::new();
        for name in names {
            let state = self.store.state(name).await?;
            let held = state.map(|state| state.hold.as_ref().map(Hold::describe));
            let held = held.as_ref().map(Option::as_deref);
            let trouble = source_trouble(failing.remove(name), held);
            troubles.extend(trouble.map(|why| (name.clone(), why)));
        }
        Ok(troubles)
    }

    /// What an aggregate could not gather. `trouble`: why nothing new comes from an active source.
    pub(crate) fn gathering(
        &self,
        aggregate: &FeedName,
        sharing: &SharingOptions,
        feeds: &FeedList,
        trouble: impl Fn(&FeedName) -> Option<String>,
    ) -> GatherNote {
        let mut note = self.gathered.note(aggregate);
        for source in &sharing.sources {
            let why = match feeds.get(source).map(|record| record.standing) {
                None | Some(FeedStanding::Gone) => {
                    Some("there is no such feed any more".to_owned())
                }
                Some(FeedStanding::Paused) => Some("it is paused".to_owned()),
                Some(FeedStanding::Active) => trouble(source),
            };
            let Some(why) = why else { continue };
            note.troubled += 1;
            if note.troubles.len() < GatherNote::LIMIT {
                note.troubles.push(SourceTrouble { source: source.clone(), why });
            }
        }
        note
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
        let board = NoteBoard::<Noted>::default();
        let shown =
            || board.note(&all).left_out.into_iter().map(|left| left.id).collect::<Vec<_>>();
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
        assert_eq!(board.note(&all).error.as_deref(), Some("full"));
        board.rests(&all);
        assert_eq!(board.note(&all), GatherNote::default());
    }
}
