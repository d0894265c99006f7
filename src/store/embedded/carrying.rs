//! How a store is handed over, and taken in.

use super::request::Touches;
use super::transfer::ExportAbandoned;
use super::{Store, read, transfer};
use crate::portable::{ExportRecord, ImportMessage};
use crate::{CommitError, Epoch, StoreError};
use tidegate_core::model::FeedName;
use tokio::sync::mpsc;

/// The bytes of a feed, about, that are kept in memory until it was read, and handed over after that.
const HANDED_LATER: usize = 16 << 20;

impl Store {
    /// Hands over everything that is kept, piece by piece: what stands by itself, then each feed at
    /// one revision ([`ExportRecord`]). Ends early where nobody takes the pieces any more.
    pub async fn export(&self, to: mpsc::Sender<ExportRecord>) -> Result<(), StoreError> {
        // Known before any feed is read, so that the log is never ahead of one.
        let newest = *self.inner.shared.sealed.borrow();
        let start = self.inner.of_all(move |records| transfer::start(records, newest)).await?;
        let (pieces, names) = start;
        for piece in pieces {
            if to.send(piece).await.is_err() {
                return Ok(());
            }
        }
        let mut after = Epoch(0);
        loop {
            let read =
                move |records: &_| read::epochs_after(records, after, newest, transfer::EPOCHS);
            let epochs = self.inner.of_all(read).await?;
            let Some(last) = epochs.last() else { break };
            after = last.epoch;
            for closed in epochs {
                if to.send(ExportRecord::Log(closed)).await.is_err() {
                    return Ok(());
                }
            }
        }
        for name in names {
            if !self.export_feed(&name, &to).await? {
                break;
            }
        }
        Ok(())
    }

    /// Takes in what another store of the same endpoint handed over, to its end: where the channel is
    /// closed before that was said, it is not whole ([`StoreError::PartlyImported`]). Only into a store
    /// that nothing was ever put into ([`StoreError::Occupied`]); after an error it is of no use.
    /// Durable on return.
    pub async fn import(&self, mut from: mpsc::Receiver<ImportMessage>) -> Result<(), CommitError> {
        loop {
            let (mut pieces, mut bytes) = (Vec::new(), 0_usize);
            let last = loop {
                match from.recv().await {
                    Some(ImportMessage::Record(piece)) => {
                        bytes = bytes.saturating_add(piece.size());
                        pieces.push(piece);
                    }
                    last => break Some(last),
                }
                if pieces.len() >= transfer::AT_ONCE || bytes >= transfer::BYTES_AT_ONCE {
                    break None;
                }
            };
            if !pieces.is_empty() {
                if let Some(space) = &self.space {
                    space.measure();
                }
                self.condition().check_intake()?;
                self.take_in(pieces, false).await?;
            }
            match last {
                None => {}
                Some(Some(_)) => {
                    self.take_in(Vec::new(), true).await?;
                    if let Some(database) = self.inner.database() {
                        database.analyze();
                    }
                    return Ok(());
                }
                Some(None) => {
                    let path = self.inner.opened()?.records.engine().path().to_owned();
                    return Err(StoreError::PartlyImported { path }.into());
                }
            }
        }
    }

    /// Hands a feed over at one revision; whether its pieces are still taken. An error where it was purged, since
    /// what was handed over of it lacks its end.
    async fn export_feed(
        &self,
        name: &FeedName,
        to: &mpsc::Sender<ExportRecord>,
    ) -> Result<bool, StoreError> {
        let (taker, blocks) = (to.clone(), self.inner.blocks);
        let feed = name.clone();
        let handed = self.inner.read_feed(name, move |records, head| {
            let (mut waiting, mut bytes) = (Vec::new(), 0_usize);
            let told = transfer::feed(records, &feed, &head.state, &mut |piece| {
                // Changes of the feed wait for whoever takes it only where it is large. Nobody blocks the thread of
                // others.
                bytes = bytes.saturating_add(piece.size());
                waiting.push(piece);
                if !blocks || bytes < HANDED_LATER {
                    return Ok(());
                }
                bytes = 0;
                let mut pieces = waiting.drain(..);
                pieces.try_for_each(|piece| taker.blocking_send(piece)).map_err(|_| ExportAbandoned)
            })?;
            Ok((waiting, told.is_err()))
        });
        let handed = handed.await?;
        let (waiting, mut is_abandoned) = handed.ok_or_else(|| transfer::purged(name))?;
        for piece in waiting {
            is_abandoned |= to.send(piece).await.is_err();
        }
        Ok(!is_abandoned)
    }

    /// Takes in pieces of another store; `is_end`: there are no more.
    async fn take_in(&self, pieces: Vec<ExportRecord>, is_end: bool) -> Result<(), CommitError> {
        self.inner
            .ask(Touches::Identity, move |committer, group| {
                committer.import(&pieces, is_end, group)
            })
            .await
    }
}
