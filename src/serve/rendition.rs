//! A document as it goes out: its bytes in every encoding, packed once, each with its own entity tag.

use super::conditional::{ETag, date_value, response};
use super::negotiate::encoding;
use super::spool::{SpoolingText, WrittenDocument};
use super::{
    AppState, DeltaToken, DocumentForm, Encoding, Problem, ServedFeed, SpooledFile, feeds,
    make_on_thread,
};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::io;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{Deletion, Item, Revision, Tick, Time};
use tidegate_format::render::{Addresses, HistoryPlace, ItemPortions, Page, TextSink, ViewKind};
use tidegate_store::{PinnedFeed, RemainingItems, Select, View};
use tokio::runtime::Handle;

/// What a rendition weighs beside its bytes.
const OVERHEAD: u64 = 512;

/// How many bytes in a file weigh as much as one in memory.
const FILE_BYTES: u64 = 32;

/// Writes a page: `render::write`, or a double of it.
pub(super) type Renderer =
    fn(&Page<'_>, ItemPortions<'_, Problem>, &mut dyn TextSink<Problem>) -> Result<(), Problem>;

/// The bytes of a body, wherever they are.
#[derive(Debug, Clone)]
pub(super) enum BodyContent {
    Memory(Bytes),
    File(Arc<SpooledFile>),
}

impl BodyContent {
    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            Self::File(file) => file.len(),
        }
    }
}

/// One encoding of a document.
#[derive(Debug, Clone)]
pub(super) struct EncodedBody {
    pub(super) content: BodyContent,
    /// Their tag.
    pub(super) etag: ETag,
}

impl EncodedBody {
    /// A body of these bytes; `token` names the state that it shows.
    pub(super) fn new(bytes: impl Into<Bytes>, token: Option<DeltaToken>) -> Self {
        let bytes = bytes.into();
        let etag = ETag::from_bytes(&bytes, token);
        Self { content: BodyContent::Memory(bytes), etag }
    }

    /// The answer that carries it. What is in a file is read from there as it is sent (`observe::count`).
    pub(super) fn answer(&self, status: StatusCode, headers: HeaderMap) -> Response {
        match &self.content {
            BodyContent::Memory(bytes) => response(status, headers, Body::from(bytes.clone())),
            BodyContent::File(file) => {
                let mut response = response(status, headers, Body::empty());
                response.extensions_mut().insert(Arc::clone(file));
                response
            }
        }
    }

    fn weight(&self) -> u64 {
        match &self.content {
            BodyContent::Memory(_) => self.content.len(),
            BodyContent::File(file) => file.len() / FILE_BYTES,
        }
    }
}

/// A rendered document with its encodings.
#[derive(Debug, Clone)]
pub(super) struct Rendition {
    identity: EncodedBody,
    /// `None` of what is sent as it is.
    gzip: Option<EncodedBody>,
    /// `None` also where it is too large for memory.
    zstd: Option<EncodedBody>,
    pub(super) media_type: &'static str,
    /// When what it shows last changed, also as a header's value.
    pub(super) shown: Time,
    pub(super) shown_date: HeaderValue,
    /// The headers that every answer with it has, but for the validators.
    pub(super) head: HeaderMap,
    /// The revision of the feed that it was rendered from.
    pub(super) revision: Revision,
}

/// A document of a feed before it is written.
pub(super) struct UnwrittenDocument {
    pub(super) kind: ViewKind,
    pub(super) form: DocumentForm,
    /// Its items, or the first of them.
    pub(super) view: View,
    /// The items that follow them.
    pub(super) rest: Option<RestOfView>,
    pub(super) deleted: Vec<Deletion>,
    pub(super) addresses: Addresses,
    pub(super) history: HistoryPlace,
    /// `since` and `until`.
    pub(super) bounds: (Option<Tick>, Option<Tick>),
    pub(super) expires: Option<Time>,
    pub(super) window: Option<Duration>,
    /// When what it shows last changed.
    pub(super) shown: Time,
    /// The state that it shows, where deltas can begin with it.
    pub(super) token: Option<DeltaToken>,
    /// The headers of answers with it.
    pub(super) head: HeaderMap,
}

/// The items of a view that were not read yet, and who reads them, at the same revision.
pub(super) struct RestOfView {
    reader: PinnedFeed,
    pub(super) remaining: RemainingItems,
}

impl RestOfView {
    /// Begins to read the selected items.
    pub(super) async fn begin(
        reader: &PinnedFeed,
        select: Select,
    ) -> Result<(View, Self), Problem> {
        let begun = reader.begin_view(select).await?;
        let (view, remaining) = begun.ok_or_else(Problem::unread_feed)?;
        Ok((view, Self { reader: reader.clone(), remaining }))
    }

    /// The next items; `None` behind the last one.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Item>>, Problem> {
        if self.remaining.is_empty() {
            return Ok(None);
        }
        let remaining = std::mem::take(&mut self.remaining);
        let read = self.reader.next_items(remaining).await?;
        let (items, remaining) = read.ok_or_else(Problem::unread_feed)?;
        self.remaining = remaining;
        Ok(Some(items))
    }

    /// Iterates over the remaining portions. Each step blocks.
    fn portions(mut self, runtime: Handle) -> impl Iterator<Item = Result<Vec<Item>, Problem>> {
        std::iter::from_fn(move || runtime.block_on(self.next()).transpose())
    }
}

impl UnwrittenDocument {
    /// A document of a feed that says of no deletion and of no window, and that no delta begins with.
    pub(super) fn new(
        record: &ServedFeed,
        (kind, form): (ViewKind, DocumentForm),
        view: View,
        (addresses, history): (Addresses, HistoryPlace),
    ) -> Self {
        let (container, sup) = (form.container(view.state.format), record.site.sup(&record.name));
        Self {
            head: feeds::head(kind, container, (&addresses, &history), sup.as_deref()),
            kind,
            form,
            addresses,
            history,
            deleted: Vec::new(),
            bounds: (None, None),
            expires: None,
            window: None,
            shown: view.state.updated_at,
            token: None,
            rest: None,
            view,
        }
    }

    /// Writes and packs it. Blocks.
    fn write(
        mut self,
        renderer: Renderer,
        mut out: SpoolingText,
        runtime: Handle,
    ) -> Result<Rendition, Problem> {
        let rest = self.rest.take().map(|rest| rest.portions(runtime));
        let View { state, skeleton, items } = &self.view;
        let container = self.form.container(state.format);
        let page = Page {
            kind: self.kind,
            container,
            dialect: self.form.dialect,
            addresses: &self.addresses,
            state,
            skeleton,
            items,
            deleted: &self.deleted,
            history: &self.history,
            since: self.bounds.0,
            until: self.bounds.1,
            expires: self.expires,
            window: self.window,
        };
        renderer(&page, &mut rest.into_iter().flatten(), &mut out)?;
        let (about, revision) = ((container.media_type(), self.shown), state.revision);
        let written = match out.finish(self.token)? {
            WrittenDocument::InMemory(document) => {
                Rendition::compressed(document, self.token, CACHED_LEVELS, about)?
            }
            WrittenDocument::InFiles { identity, gzip } => {
                Rendition::new(identity, (Some(gzip), None), about)
            }
        };
        Ok(Rendition { head: self.head, revision, ..written })
    }
}

impl AppState {
    /// Writes and packs a document on a thread of its own.
    pub(super) async fn write_document(
        &self,
        document: UnwrittenDocument,
    ) -> Result<Rendition, Problem> {
        let (renderer, out) = (self.renderer, SpoolingText::new(&self.spool));
        let runtime = Handle::current();
        make_on_thread("this document", move || document.write(renderer, out, runtime)).await
    }
}

/// The media type of a document, and when what it shows last changed.
type DocumentFacts = (&'static str, Time);

impl Rendition {
    /// Compresses a document that is made anew all the time, or is mostly ids. Slow: call it where blocking is allowed.
    pub(super) fn build_quickly(
        document: String,
        media_type: &'static str,
        shown: Time,
    ) -> Result<Self, Problem> {
        Self::compressed(document, None, REBUILT_LEVELS, (media_type, shown))
    }

    fn compressed(
        document: String,
        token: Option<DeltaToken>,
        (gzip_level, zstd_level): CompressionLevels,
        about: DocumentFacts,
    ) -> Result<Self, Problem> {
        let not_made = |error| Problem::not_made("this document", error);
        let gzip = gzip(document.as_bytes(), gzip_level).map_err(not_made)?;
        let zstd = zstd::bulk::compress(document.as_bytes(), zstd_level).map_err(not_made)?;
        let [identity, gzip, zstd] =
            [document.into_bytes(), gzip, zstd].map(|bytes| EncodedBody::new(bytes, token));
        Ok(Self::new(identity, (Some(gzip), Some(zstd)), about))
    }

    /// A document that is sent as it is.
    pub(super) fn uncompressed(
        document: impl Into<Bytes>,
        media_type: &'static str,
        shown: Time,
    ) -> Self {
        Self::new(EncodedBody::new(document, None), (None, None), (media_type, shown))
    }

    fn new(
        identity: EncodedBody,
        (gzip, zstd): (Option<EncodedBody>, Option<EncodedBody>),
        (media_type, shown): DocumentFacts,
    ) -> Self {
        let (head, revision) = (HeaderMap::new(), Revision(0));
        let shown_date = date_value(shown);
        Self { identity, gzip, zstd, media_type, shown, shown_date, head, revision }
    }

    /// With more headers of answers.
    pub(super) fn with<const N: usize>(mut self, headers: [(HeaderName, HeaderValue); N]) -> Self {
        self.head.extend(headers);
        self
    }

    /// The encoding that a client gets: of those that there are, the one that it would rather have.
    pub(super) fn encoding(&self, request_headers: &HeaderMap) -> Encoding {
        match self.gzip {
            Some(_) => encoding(request_headers, self.zstd.is_some()),
            None => Encoding::Identity,
        }
    }

    /// The body in an encoding that it has ([`Rendition::encoding`]).
    pub(super) fn body(&self, encoding: Encoding) -> &EncodedBody {
        let compressed = match encoding {
            Encoding::Identity => None,
            Encoding::Gzip => self.gzip.as_ref(),
            Encoding::Zstd => self.zstd.as_ref(),
        };
        compressed.unwrap_or(&self.identity)
    }

    /// Its weight in the document cache: bytes in memory, a part of those in files, and [`OVERHEAD`].
    pub(super) fn weight(&self) -> u32 {
        let all = [Some(&self.identity), self.gzip.as_ref(), self.zstd.as_ref()];
        let bytes: u64 = all.into_iter().flatten().map(EncodedBody::weight).sum();
        u32::try_from(bytes + OVERHEAD).unwrap_or(u32::MAX)
    }
}

/// The gzip level of documents that are too large for memory: twice as fast as that of others, and hardly larger.
pub(crate) const GZIP_LEVEL_LARGE: u32 = 3;
/// The compression levels of gzip and zstd.
type CompressionLevels = (u32, i32);
/// For documents that are cached: higher levels gain little. At these, zstd is smaller and by far faster.
const CACHED_LEVELS: CompressionLevels = (6, 3);
/// For documents that are rebuilt all the time and consist mostly of random ids: higher levels make them no smaller.
const REBUILT_LEVELS: CompressionLevels = (1, 1);

/// Compresses an answer that is made for one request.
pub(crate) fn compress_quickly(bytes: &[u8], encoding: Encoding) -> io::Result<Vec<u8>> {
    match encoding {
        Encoding::Identity => Ok(bytes.to_vec()),
        Encoding::Gzip => gzip(bytes, REBUILT_LEVELS.0),
        Encoding::Zstd => zstd::bulk::compress(bytes, REBUILT_LEVELS.1),
    }
}

/// Packs with gzip.
pub(super) fn gzip(bytes: &[u8], level: u32) -> io::Result<Vec<u8>> {
    // No name and no time in its header: equal bytes give equal tags.
    let level = flate2::Compression::new(level);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes)?;
    encoder.finish()
}
