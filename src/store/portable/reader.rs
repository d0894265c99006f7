//! A file to pieces. Whatever the bytes are, it answers and takes bounded memory.

use super::frame::{
    FORMAT, FRAME_LIMIT, FrameKind, ITEM_LIMIT, MAGIC, PortableError, UNRELEASED_MAGIC,
};
use super::{CarriedItem, ExportRecord, ExportTotals};
use crate::model::{
    Archive, ArchiveNote, EndpointId, Event, FeedName, FeedRecord, HeldEntry, LedgerEntry, Markup,
    PollState, Skeleton, SupIdBasis, SyncId, Time, Version,
};
use crate::store::limits::VERSIONS_LIMIT;
use crate::store::record::{
    ArchiveRecord, FloorRecord, Record, RecordError, SegmentRecord, StateRecord,
    SubscriptionRecord, decode,
};
use crate::store::{ClosedEpoch, Epoch, KeptVersion, LoggedChange, VersionNote};
use std::io::{BufReader, Read};
use xxhash_rust::xxh3::Xxh3Default;

/// A frame.
type ExportFrame = (FrameKind, Vec<u8>);

/// Reads the state of a gateway.
pub struct ExportReader<R: Read> {
    from: zstd::stream::read::Decoder<'static, BufReader<R>>,
    endpoint: EndpointId,
    sup_ids: SupIdBasis,
    digest: Xxh3Default,
    frames: u64,
    /// The frame that was read and belongs to the next piece.
    next: Option<ExportFrame>,
    feed: Option<FeedName>,
    totals: ExportTotals,
    ended: bool,
}

fn damaged(what: &str) -> PortableError {
    PortableError::Damaged(what.to_owned())
}

fn read<T: Record>(payload: &[u8]) -> Result<T, PortableError> {
    decode(payload).map_err(|error| PortableError::record(&error))
}

/// What stands in front of a record, and the record.
fn front<const N: usize>(bytes: &[u8]) -> Result<([u8; N], &[u8]), PortableError> {
    let (front, rest) =
        bytes.split_first_chunk().ok_or_else(|| damaged("a record is too short"))?;
    Ok((*front, rest))
}

impl<R: Read> ExportReader<R> {
    /// Reads the beginning of a file.
    pub fn open(mut from: R) -> Result<Self, PortableError> {
        let mut magic = Vec::new();
        from.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic)?;
        if magic.starts_with(UNRELEASED_MAGIC) {
            return Err(PortableError::Unreleased);
        }
        if magic != MAGIC {
            return Err(PortableError::Other);
        }
        let from = zstd::stream::read::Decoder::new(from)?.single_frame();
        let endpoint = EndpointId::own("unknown").map_err(|error| damaged(&error.to_string()))?;
        let (digest, totals) = (Xxh3Default::new(), ExportTotals::default());
        let mut reader = Self {
            from,
            endpoint,
            sup_ids: SupIdBasis::Endpoint,
            digest,
            frames: 0,
            next: None,
            feed: None,
            totals,
            ended: false,
        };
        let (kind, head) = reader.frame()?;
        if kind != FrameKind::Head {
            return Err(damaged("it does not begin with its head"));
        }
        let (format, endpoint) = front::<4>(&head)?;
        let found = u32::from_le_bytes(format);
        if found > FORMAT {
            return Err(PortableError::Newer { found, known: FORMAT });
        }
        let ([basis], endpoint) = front::<1>(endpoint)?;
        reader.sup_ids = match basis {
            0 => SupIdBasis::Endpoint,
            1 => SupIdBasis::Name,
            _ => return Err(damaged("what SUP ids are made of is unknown")),
        };
        let endpoint = std::str::from_utf8(endpoint).map_err(|e| damaged(&e.to_string()))?;
        reader.endpoint = EndpointId::own(endpoint).map_err(|e| damaged(&e.to_string()))?;
        Ok(reader)
    }

    /// Whose state it is.
    pub const fn endpoint(&self) -> &EndpointId {
        &self.endpoint
    }

    /// What the SUP ids of its feeds are made of.
    pub const fn sup_ids(&self) -> SupIdBasis {
        self.sup_ids
    }

    /// What was read so far.
    pub const fn totals(&self) -> ExportTotals {
        self.totals
    }

    /// Fills a buffer. A file that ends too early is damaged, and so is one that zstd cannot open.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), PortableError> {
        self.from.read_exact(buffer).map_err(|error| PortableError::Damaged(error.to_string()))
    }

    fn frame(&mut self) -> Result<ExportFrame, PortableError> {
        if let Some(frame) = self.next.take() {
            return Ok(frame);
        }
        let mut head = [0; 5];
        self.fill(&mut head)?;
        let [a, b, c, d, number] = head;
        let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        let kind =
            FrameKind::of(number).ok_or_else(|| damaged("a record is of an unknown kind"))?;
        if length > FRAME_LIMIT {
            return Err(damaged("a record is longer than any that is written"));
        }
        // Made as it is read, so that a length that lies costs nothing.
        let mut payload = Vec::new();
        let most = u64::try_from(length).unwrap_or(u64::MAX);
        let read = self.from.by_ref().take(most).read_to_end(&mut payload);
        let read = read.map_err(|error| PortableError::Damaged(error.to_string()))?;
        if read != length {
            return Err(damaged("it ends within a record"));
        }
        if kind == FrameKind::End {
            return self.end(&payload).map(|()| (kind, payload));
        }
        self.digest.update(&head);
        self.digest.update(&payload);
        self.frames += 1;
        Ok((kind, payload))
    }

    /// Checks the end.
    fn end(&mut self, payload: &[u8]) -> Result<(), PortableError> {
        let (frames, digest) = front::<8>(payload)?;
        let (digest, rest) = front::<16>(digest)?;
        let whole = u64::from_le_bytes(frames) == self.frames
            && u128::from_le_bytes(digest) == self.digest.digest128()
            && rest.is_empty();
        if !whole {
            return Err(damaged("its fingerprint is that of something else"));
        }
        // Reading on makes zstd check the end of its stream.
        let mut more = [0; 1];
        let left = self.from.read(&mut more).map_err(|e| PortableError::Damaged(e.to_string()))?;
        let behind = if left == 0 { self.from.get_mut().read(&mut more)? } else { left };
        if behind != 0 {
            return Err(damaged("something stands behind its end"));
        }
        self.ended = true;
        Ok(())
    }

    /// The frame that comes next, where it is of this kind.
    fn follows(&mut self, kind: FrameKind) -> Result<Option<Vec<u8>>, PortableError> {
        let (found, payload) = self.frame()?;
        if found == kind {
            return Ok(Some(payload));
        }
        self.next = Some((found, payload));
        Ok(None)
    }

    fn feed(&self) -> Result<FeedName, PortableError> {
        self.feed.clone().ok_or_else(|| damaged("a record belongs to no feed"))
    }

    /// The next piece; `None` once all were read and the file proved whole.
    pub fn next_piece(&mut self) -> Result<Option<ExportRecord>, PortableError> {
        if self.ended && self.next.is_none() {
            return Ok(None);
        }
        let (kind, payload) = match self.frame()? {
            (FrameKind::Inside, name) => {
                let name = std::str::from_utf8(&name).map_err(|e| damaged(&e.to_string()))?;
                let name = FeedName::new(name).map_err(|e| damaged(&e.to_string()))?;
                self.feed = Some(name);
                self.frame()?
            }
            other => other,
        };
        let at = |bytes: [u8; 8]| Time::from_unix(i64::from_le_bytes(bytes));
        let record = |error: RecordError| PortableError::record(&error);
        let piece = match kind {
            FrameKind::End => return Ok(None),
            FrameKind::Feed => ExportRecord::Feed(Box::new(read::<FeedRecord>(&payload)?)),
            FrameKind::Poll => ExportRecord::Poll(Box::new(read::<PollState>(&payload)?)),
            FrameKind::Subscription => {
                let stored = read::<SubscriptionRecord>(&payload)?;
                ExportRecord::Subscription(Box::new(stored.try_into().map_err(record)?))
            }
            FrameKind::Floor => {
                let end =
                    memchr::memchr(0, &payload).ok_or_else(|| damaged("a name has no end"))?;
                let (name, floor) = payload.split_at_checked(end).unwrap_or_default();
                let name = std::str::from_utf8(name).map_err(|e| damaged(&e.to_string()))?;
                let name = FeedName::new(name).map_err(|e| damaged(&e.to_string()))?;
                let floor = decode::<FloorRecord>(floor.get(1..).unwrap_or_default());
                ExportRecord::Floor(name, floor.map_err(record)?.floor)
            }
            FrameKind::Log => ExportRecord::Log(self.epoch(&payload)?),
            FrameKind::Skeleton => {
                let (since, skeleton) = front::<8>(&payload)?;
                let skeleton = Box::new(read::<Skeleton>(skeleton)?);
                ExportRecord::Skeleton(self.feed()?, at(since), skeleton)
            }
            FrameKind::Order => {
                let (since, order) = front::<8>(&payload)?;
                ExportRecord::Order(self.feed()?, at(since), read::<Vec<SyncId>>(order)?)
            }
            FrameKind::Held => ExportRecord::Held(self.feed()?, read::<Vec<HeldEntry>>(&payload)?),
            FrameKind::Known => ExportRecord::Item(self.feed()?, Box::new(self.item(&payload)?)),
            FrameKind::Event => {
                ExportRecord::Event(self.feed()?, Box::new(read::<Event>(&payload)?))
            }
            FrameKind::Archive => {
                let (note, archive) = self.archive(&payload)?;
                ExportRecord::Archive(self.feed()?, Box::new(note), archive.map(Box::new))
            }
            FrameKind::State => {
                let state = Box::new(read::<StateRecord>(&payload)?.state);
                let feed = self.feed.take().ok_or_else(|| damaged("a state belongs to no feed"))?;
                ExportRecord::State(feed, state)
            }
            FrameKind::Head
            | FrameKind::Inside
            | FrameKind::Newest
            | FrameKind::Conflicts
            | FrameKind::Version
            | FrameKind::Body => {
                return Err(damaged("a record stands where none of its kind may"));
            }
            FrameKind::Segment => return Err(damaged("a segment belongs to no archive")),
        };
        self.totals.note(&piece);
        Ok(Some(piece))
    }

    /// An epoch from the first of its changes.
    fn epoch(&mut self, first: &[u8]) -> Result<ClosedEpoch, PortableError> {
        let one = |payload: &[u8]| {
            let (epoch, record) = front::<8>(payload)?;
            let (at, announced) = read::<(Time, LoggedChange)>(record)?;
            Ok::<_, PortableError>((Epoch(u64::from_le_bytes(epoch)), at, announced))
        };
        let (epoch, at, announced) = one(first)?;
        let mut sealed = ClosedEpoch { epoch, at, changes: vec![announced] };
        while let Some(payload) = self.follows(FrameKind::Log)? {
            let (epoch, _, announced) = one(&payload)?;
            if epoch != sealed.epoch {
                self.next = Some((FrameKind::Log, payload));
                break;
            }
            sealed.changes.push(announced);
        }
        Ok(sealed)
    }

    fn item(&mut self, known: &[u8]) -> Result<CarriedItem, PortableError> {
        let known = read::<LedgerEntry>(known)?;
        let newest =
            self.follows(FrameKind::Newest)?.ok_or_else(|| damaged("an item has no bytes"))?;
        let mut taken = newest.len();
        let newest = read::<Markup>(&newest)?;
        let conflicts = self.follows(FrameKind::Conflicts)?;
        let conflicts = conflicts.map(|bytes| read::<Vec<Version<Markup>>>(&bytes));
        let conflicts = conflicts.transpose()?.unwrap_or_default();
        let mut versions = Vec::new();
        while let Some(note) = self.follows(FrameKind::Version)? {
            let note = read::<VersionNote>(&note)?;
            let body = self.follows(FrameKind::Body)?;
            taken = taken.saturating_add(body.as_ref().map_or(0, Vec::len));
            if versions.len() >= VERSIONS_LIMIT || taken > ITEM_LIMIT {
                return Err(damaged("an item has more versions than are kept"));
            }
            let markup = body.map(|body| read::<Markup>(&body)).transpose()?;
            versions.push(KeptVersion { note, markup });
        }
        Ok(CarriedItem { known, newest, conflicts, versions })
    }

    fn archive(&mut self, note: &[u8]) -> Result<(ArchiveNote, Option<Archive>), PortableError> {
        let ArchiveRecord { note, blocks: count } = read::<ArchiveRecord>(note)?;
        let (mut blocks, mut taken) = (Vec::new(), 0_usize);
        for _ in 0..count {
            let block = self.follows(FrameKind::Segment)?;
            let block = block.ok_or_else(|| damaged("an archive lacks a segment"))?;
            taken = taken.saturating_add(block.len());
            if taken > ITEM_LIMIT {
                return Err(damaged("an archive is longer than any that is written"));
            }
            blocks.push(read(&block)?);
        }
        if count == 0 {
            return Ok((note, None));
        }
        let archive = SegmentRecord::join(blocks).map_err(|error| PortableError::record(&error))?;
        Ok((note, Some(archive)))
    }
}
