//! Pieces to a file.

use super::frame::{FORMAT, FrameKind, MAGIC, PortableError};
use super::{CarriedItem, ExportRecord};
use crate::model::{Archive, ArchiveNote, EndpointId, FeedName, SupIdBasis, Time};
use crate::store::limits::BLOCK;
use crate::store::record::{
    ArchiveRecord, FloorRecord, Record, SegmentRecord, StateRecord, SubscriptionRecord,
    encode_plain,
};
use std::io::Write;
use xxhash_rust::xxh3::Xxh3Default;

/// The zstd level: written once, and read seldom.
const LEVEL: i32 = 9;

/// What was written or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExportTotals {
    /// Records of feeds.
    pub feeds: u64,
    /// Items, tombstones included.
    pub items: u64,
}

impl ExportTotals {
    pub(super) fn note(&mut self, piece: &ExportRecord) {
        self.feeds += u64::from(matches!(piece, ExportRecord::Feed(_)));
        self.items += u64::from(matches!(piece, ExportRecord::Item(..)));
    }
}

/// Writes the state of a gateway.
pub struct ExportWriter<W: Write> {
    to: zstd::stream::write::Encoder<'static, W>,
    digest: Xxh3Default,
    frames: u64,
    feed: Option<FeedName>,
    totals: ExportTotals,
}

impl<W: Write> ExportWriter<W> {
    /// Begins a file with the state of the gateway `endpoint`.
    pub fn new(
        mut to: W,
        endpoint: &EndpointId,
        sup_ids: SupIdBasis,
    ) -> Result<Self, PortableError> {
        to.write_all(MAGIC)?;
        let to = zstd::stream::write::Encoder::new(to, LEVEL)?;
        let (digest, totals) = (Xxh3Default::new(), ExportTotals::default());
        let mut writer = Self { to, digest, frames: 0, feed: None, totals };
        let basis = match sup_ids {
            SupIdBasis::Endpoint => 0,
            SupIdBasis::Name => 1,
        };
        let head =
            [FORMAT.to_le_bytes().as_slice(), &[basis], endpoint.as_str().as_bytes()].concat();
        writer.frame(FrameKind::Head, &head)?;
        Ok(writer)
    }

    fn frame(&mut self, kind: FrameKind, payload: &[u8]) -> Result<(), PortableError> {
        let length = u32::try_from(payload.len())
            .map_err(|error| PortableError::Unwritable(error.to_string()))?;
        let head = [length.to_le_bytes().as_slice(), &[kind as u8]].concat();
        for bytes in [head.as_slice(), payload] {
            self.digest.update(bytes);
            self.to.write_all(bytes)?;
        }
        self.frames += 1;
        Ok(())
    }

    fn record<T: Record>(&mut self, kind: FrameKind, record: &T) -> Result<(), PortableError> {
        self.named(kind, &[], record)
    }

    fn named<T: Record>(
        &mut self,
        kind: FrameKind,
        name: &[u8],
        record: &T,
    ) -> Result<(), PortableError> {
        let record = encode_plain(record).map_err(|error| PortableError::unwritable(&error))?;
        self.frame(kind, &[name, record.as_slice()].concat())
    }

    /// Writes a piece.
    pub fn put(&mut self, piece: &ExportRecord) -> Result<(), PortableError> {
        self.totals.note(piece);
        if let Some(feed) = piece.feed()
            && self.feed.as_ref() != Some(feed)
        {
            self.frame(FrameKind::Inside, feed.as_str().as_bytes())?;
            self.feed = Some(feed.clone());
        }
        let at = |time: Time| time.unix().to_le_bytes();
        match piece {
            ExportRecord::Feed(record) => self.record(FrameKind::Feed, &**record),
            ExportRecord::Poll(state) => self.record(FrameKind::Poll, &**state),
            ExportRecord::Subscription(subscription) => {
                self.record(FrameKind::Subscription, &SubscriptionRecord::from(&**subscription))
            }
            ExportRecord::Floor(name, floor) => {
                let name = [name.as_str().as_bytes(), &[0]].concat();
                self.named(FrameKind::Floor, &name, &FloorRecord { floor: *floor, sweeping: false })
            }
            ExportRecord::Log(sealed) => sealed.changes.iter().try_for_each(|announced| {
                let record = (sealed.at, announced.clone());
                self.named(FrameKind::Log, &sealed.epoch.0.to_le_bytes(), &record)
            }),
            ExportRecord::Skeleton(_, since, skeleton) => {
                self.named(FrameKind::Skeleton, &at(*since), &**skeleton)
            }
            ExportRecord::Order(_, since, order) => {
                self.named(FrameKind::Order, &at(*since), order)
            }
            ExportRecord::Held(_, kept) => self.record(FrameKind::Held, kept),
            ExportRecord::Item(_, item) => self.item(item),
            ExportRecord::Event(_, event) => self.record(FrameKind::Event, &**event),
            ExportRecord::Archive(_, note, archive) => self.archive(note, archive.as_deref()),
            ExportRecord::State(_, state) => {
                self.feed = None;
                self.record(
                    FrameKind::State,
                    &StateRecord { state: (**state).clone(), next_event: 0 },
                )
            }
        }
    }

    fn item(&mut self, item: &CarriedItem) -> Result<(), PortableError> {
        self.record(FrameKind::Known, &item.known)?;
        self.record(FrameKind::Newest, &item.newest)?;
        if !item.conflicts.is_empty() {
            self.record(FrameKind::Conflicts, &item.conflicts)?;
        }
        for version in &item.versions {
            self.record(FrameKind::Version, &version.note)?;
            if let Some(markup) = &version.markup {
                self.record(FrameKind::Body, markup)?;
            }
        }
        Ok(())
    }

    fn archive(
        &mut self,
        note: &ArchiveNote,
        archive: Option<&Archive>,
    ) -> Result<(), PortableError> {
        let blocks = archive.map(|archive| SegmentRecord::blocks(archive, BLOCK));
        let blocks = blocks.unwrap_or_default();
        let count = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
        self.record(FrameKind::Archive, &ArchiveRecord { note: note.clone(), blocks: count })?;
        blocks.iter().try_for_each(|block| self.record(FrameKind::Segment, block))
    }

    /// Ends the file; answers what stands in it and where it was written to.
    pub fn finish(mut self) -> Result<(ExportTotals, W), PortableError> {
        let mut end = self.frames.to_le_bytes().to_vec();
        end.extend_from_slice(&self.digest.digest128().to_le_bytes());
        self.frame(FrameKind::End, &end)?;
        let mut to = self.to.finish()?;
        to.flush()?;
        Ok((self.totals, to))
    }
}
