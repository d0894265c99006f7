//! Everything that a store in memory keeps, handed over and taken in.

use super::MemoryContent;
use super::feed_table::{FeedTable, Unfinished};
use crate::model::FeedName;
use crate::store::portable::{ExportRecord, Fit};
use crate::store::{Epoch, StoreError};
use std::collections::BTreeMap;

impl MemoryContent {
    /// All of it, in the order that [`ExportRecord`] asks for.
    pub(super) fn pieces(&self) -> Vec<ExportRecord> {
        let mut pieces = Vec::new();
        pieces
            .extend(self.feeds.values().map(|record| ExportRecord::Feed(Box::new(record.clone()))));
        pieces.extend(self.polls.values().map(|state| ExportRecord::Poll(Box::new(state.clone()))));
        let subscriptions = self.subscriptions.values();
        pieces.extend(subscriptions.map(|one| ExportRecord::Subscription(Box::new(one.clone()))));
        let floors = self.floors.iter();
        pieces.extend(floors.map(|(feed, floor)| ExportRecord::Floor(feed.clone(), *floor)));
        pieces.extend(self.log.iter().map(|sealed| ExportRecord::Log(sealed.clone())));
        for (feed, shelf) in &self.shelves {
            shelf.pieces(feed, &mut pieces);
        }
        pieces
    }

    fn is_empty(&self) -> bool {
        self.feeds.is_empty()
            && self.polls.is_empty()
            && self.shelves.is_empty()
            && self.floors.is_empty()
            && self.subscriptions.is_empty()
            && self.log.is_empty()
    }
}

/// What came so far.
#[derive(Default)]
pub(super) struct Arrived {
    fit: Fit,
    content: MemoryContent,
    open: BTreeMap<FeedName, Unfinished>,
}

impl Arrived {
    /// Takes a piece.
    pub(super) fn take(&mut self, piece: ExportRecord) -> Result<(), StoreError> {
        self.fit.check(&piece)?;
        let content = &mut self.content;
        match piece {
            ExportRecord::Feed(record) => drop(content.feeds.insert(record.name.clone(), *record)),
            ExportRecord::Poll(state) => drop(content.polls.insert(state.feed.clone(), *state)),
            ExportRecord::Subscription(one) => drop(content.subscriptions.insert(one.id(), *one)),
            ExportRecord::Floor(feed, floor) => drop(content.floors.insert(feed, floor)),
            ExportRecord::Log(sealed) => content.log.push(sealed),
            ExportRecord::State(feed, state) => {
                let unfinished = self.open.remove(&feed).unwrap_or_default();
                content.shelves.insert(feed, FeedTable::whole(*state, unfinished));
            }
            other => {
                if let Some(feed) = other.feed() {
                    self.open.entry(feed.clone()).or_default().take(other);
                }
            }
        }
        Ok(())
    }

    /// Puts everything into a store that is empty; answers its newest epoch.
    pub(super) fn move_into(self, content: &mut MemoryContent) -> Result<Epoch, StoreError> {
        self.fit.end()?;
        if !content.is_empty() {
            return Err(StoreError::Occupied { path: "in memory".to_owned() });
        }
        let fence = content.fence;
        *content = MemoryContent { fence, ..self.content };
        Ok(content.log.last().map_or(Epoch(0), |last| last.epoch))
    }
}
