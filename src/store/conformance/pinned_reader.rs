//! A reader that pins a feed while it is written to.

use crate::*;
use tidegate_core::model::*;

/// A pinned feed, with its content as first read; none once it was purged.
pub(super) struct PinnedReader {
    pub(super) feed: FeedName,
    reader: PinnedFeed,
    pub(super) seen: [Option<View>; 2],
    pub(super) ledger: Option<Snapshot>,
}

impl PinnedReader {
    pub(super) async fn new(store: &Store, feed: FeedName) -> Option<Self> {
        let reader = store.pin(&feed).await.unwrap()?;
        let (seen, ledger) = Self::read(&reader).await;
        assert_eq!(Some(reader.state()), store.state(&feed).await.unwrap().as_ref());
        Some(Self { feed, reader, seen, ledger })
    }

    async fn read(reader: &PinnedFeed) -> ([Option<View>; 2], Option<Snapshot>) {
        let all = reader.view(Select::All).await.unwrap();
        let current = reader.view(Select::Current).await.unwrap();
        ([all, current], reader.snapshot().await.unwrap())
    }

    /// Later commits are not seen: the content is the same, or outdated.
    pub(super) async fn sees_the_same(&self) {
        let outdated = |error: StoreError| assert!(matches!(error, StoreError::Outdated));
        for (select, seen) in [Select::All, Select::Current].into_iter().zip(&self.seen) {
            match self.reader.view(select).await {
                Ok(view) => assert_eq!(&view, seen),
                Err(error) => outdated(error),
            }
        }
        match self.reader.snapshot().await {
            Ok(ledger) => assert_eq!(ledger, self.ledger),
            Err(error) => outdated(error),
        }
    }
}
