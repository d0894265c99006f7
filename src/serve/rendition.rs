//! A document as it goes out: its bytes in every encoding, each with its own entity tag.

use super::address::DocumentForm;
use super::admission::Overloaded;
use super::conditional::{ETag, Representation};
use super::delta::DeltaToken;
use super::negotiate::{Encoding, encoding};
use super::problem::{Problem, RETRY_SOON};
use crate::model::{Deletion, FeedName, Revision, Tick, Time};
use crate::render::{Addresses, Dialect, HistoryPlace, Page, ViewKind};
use crate::store::{StoreError, View};
use bytes::Bytes;
use http::HeaderMap;
use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

/// gzip level: about the knee of its curve.
const GZIP_LEVEL: u32 = 6;
/// Brotli quality: smaller than gzip at about its speed.
const BROTLI_QUALITY: i32 = 5;
/// Level and quality of what is made anew all the time and is mostly chance: slower ones make it
/// no smaller.
const QUICK: (u32, i32) = (1, 1);
/// Brotli window, as a power of two: 4 MiB.
const BROTLI_WINDOW: i32 = 22;
/// The buffer that Brotli reads through, in bytes.
const BROTLI_BUFFER: usize = 16 * 1024;
/// What a rendition weighs beside its bytes.
const OVERHEAD: usize = 512;

/// Renders a page: `render::document`, or a double of it.
pub(super) type Renderer = fn(&Page<'_>) -> String;

/// One encoding of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EncodedBody {
    pub(super) bytes: Bytes,
    /// Their tag.
    pub(super) etag: ETag,
}

impl EncodedBody {
    /// A body of these bytes; `token` names the state that it shows.
    pub(super) fn new(bytes: impl Into<Bytes>, token: Option<DeltaToken>) -> Self {
        let bytes = bytes.into();
        let etag = ETag::from_bytes(&bytes, token);
        Self { bytes, etag }
    }
}

/// A rendered document with its encodings prebuilt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rendition {
    identity: EncodedBody,
    gzip: EncodedBody,
    brotli: EncodedBody,
    pub(super) media_type: &'static str,
    /// When what it shows last changed.
    pub(super) shown: Time,
    /// The documents of its feed's history that it leads to, as relation and address.
    pub(super) links: Vec<(&'static str, String)>,
    /// Its form, where it is a document of a feed.
    pub(super) form: DocumentForm,
    /// The revision of the feed that it was rendered from.
    pub(super) revision: Revision,
}

/// What there is to say of a document beside its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct About {
    pub(super) media_type: &'static str,
    /// When what it shows last changed.
    pub(super) shown: Time,
    /// The revision of the feed that it was rendered from.
    pub(super) revision: Revision,
    /// The state that it shows, where deltas can begin with it.
    pub(super) token: Option<DeltaToken>,
}

/// Why there is no document.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoDocument {
    /// For a reason that its client is told.
    #[error("{}", .0.detail())]
    Told(Problem),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It could not be made.
    #[error("{0}")]
    Failed(String),
}

impl From<Overloaded> for NoDocument {
    fn from(why: Overloaded) -> Self {
        Self::Told(why.into())
    }
}

impl NoDocument {
    /// No document of the feed has been taken in yet.
    pub(super) fn yet() -> Self {
        Self::Told(Problem::later("no document of this feed has been taken in yet", RETRY_SOON))
    }

    /// What the client is told; `what` could not be done.
    pub(super) fn problem(&self, feed: &FeedName, what: &str) -> Problem {
        if let Self::Told(problem) = self {
            return problem.clone();
        }
        // The store itself has logged why, once.
        if matches!(self, Self::Store(StoreError::Stopped(_))) {
            return Problem::stopped();
        }
        let error = self as &dyn std::error::Error;
        tracing::error!(%feed, error, "a document could not be made");
        Problem::later(format!("the gateway could not {what} just now"), RETRY_SOON)
    }
}

/// A document of a feed before it is written.
pub(super) struct UnwrittenDocument {
    pub(super) kind: ViewKind,
    pub(super) form: DocumentForm,
    pub(super) view: View,
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
}

impl UnwrittenDocument {
    /// Writes and packs it on a thread of its own.
    pub(super) async fn made(self, renderer: Renderer) -> Result<Rendition, NoDocument> {
        let made = tokio::task::spawn_blocking(move || self.rendition(renderer)).await;
        let failed =
            |why: &dyn fmt::Display| NoDocument::Failed(format!("rendering failed: {why}"));
        made.map_err(|error| failed(&error))?.map_err(|error| failed(&error))
    }

    fn rendition(self, renderer: Renderer) -> io::Result<Rendition> {
        let View { state, skeleton, items } = &self.view;
        let container = self.form.container(state.format);
        let page = Page {
            read_collection: crate::parse::collection::first_entry,
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
        let about = About {
            media_type: container.media_type(),
            shown: self.shown,
            revision: state.revision,
            token: self.token,
        };
        let mut made = Rendition::build(renderer(&page), about)?;
        made.form = self.form;
        let links = self.history.links(&self.addresses.reader).into_iter();
        made.links = links.map(|(relation, address)| (relation, address.to_owned())).collect();
        Ok(made)
    }
}

impl Rendition {
    /// Compresses a document. Slow: call it where blocking is allowed.
    pub(super) fn build(document: String, about: About) -> io::Result<Self> {
        Self::packed(document, about, (GZIP_LEVEL, BROTLI_QUALITY))
    }

    /// Compresses a document of ids, which is made anew whenever one of them comes.
    pub(super) fn build_quickly(document: String, about: About) -> io::Result<Self> {
        Self::packed(document, about, QUICK)
    }

    fn packed(document: String, about: About, (level, quality): (u32, i32)) -> io::Result<Self> {
        let About { media_type, shown, revision, token } = about;
        let gzip = gzip(document.as_bytes(), level)?;
        let brotli = brotli(document.as_bytes(), quality)?;
        Ok(Self {
            identity: EncodedBody::new(document, token),
            gzip: EncodedBody::new(gzip, token),
            brotli: EncodedBody::new(brotli, token),
            media_type,
            shown,
            links: Vec::new(),
            form: DocumentForm::from_dialect(Dialect::default()),
            revision,
        })
    }

    /// It as it is answered to a client; the other headers are those that a 304 has too.
    pub(super) fn represented(&self, asked: &HeaderMap, headers: HeaderMap) -> Representation<'_> {
        let encoding = encoding(asked);
        Representation {
            headers,
            body: self.body(encoding),
            media_type: self.media_type,
            encoding,
            modified: None,
            is_dated: false,
        }
    }

    /// The body in an encoding.
    pub(super) const fn body(&self, encoding: Encoding) -> &EncodedBody {
        match encoding {
            Encoding::Identity => &self.identity,
            Encoding::Gzip => &self.gzip,
            Encoding::Brotli => &self.brotli,
        }
    }

    /// What it takes in memory, in bytes; at least 1.
    pub(super) fn weight(&self) -> u32 {
        let bodies = [&self.identity, &self.gzip, &self.brotli];
        let bytes = bodies.iter().map(|body| body.bytes.len()).sum::<usize>() + OVERHEAD;
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}

/// Packs an answer that is made for one request.
pub(super) fn quickly(bytes: &[u8], encoding: Encoding) -> io::Result<Vec<u8>> {
    match encoding {
        Encoding::Identity => Ok(bytes.to_vec()),
        Encoding::Gzip => gzip(bytes, QUICK.0),
        Encoding::Brotli => brotli(bytes, QUICK.1),
    }
}

fn gzip(bytes: &[u8], level: u32) -> io::Result<Vec<u8>> {
    // No name and no time in its header: equal bytes give equal tags.
    let level = flate2::Compression::new(level);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn brotli(bytes: &[u8], quality: i32) -> io::Result<Vec<u8>> {
    let parameters =
        brotli::enc::BrotliEncoderParams { quality, lgwin: BROTLI_WINDOW, ..Default::default() };
    let mut compressed = Vec::new();
    let mut input = bytes;
    // The buffer size is BROTLI_BUFFER whatever the input, so that memory stays bounded.
    let mut writer =
        brotli::CompressorWriter::with_params(&mut compressed, BROTLI_BUFFER, &parameters);
    io::copy(&mut input, &mut writer)?;
    writer.flush()?;
    drop(writer);
    Ok(compressed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    const ABOUT: About = About {
        media_type: "text/plain",
        shown: Time::from_unix(0),
        revision: Revision(1),
        token: None,
    };

    fn unpack(rendition: &Rendition, encoding: Encoding) -> Vec<u8> {
        let bytes = &rendition.body(encoding).bytes;
        let mut plain = Vec::new();
        match encoding {
            Encoding::Identity => plain.extend_from_slice(bytes),
            Encoding::Gzip => {
                flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
            }
            Encoding::Brotli => {
                brotli::Decompressor::new(&bytes[..], 4096).read_to_end(&mut plain).unwrap();
            }
        }
        plain
    }

    proptest::proptest! {
        #[test]
        fn every_encoding_unpacks_to_the_document(document in "\\PC{0,3000}") {
            let built = Rendition::build(document.clone(), ABOUT).unwrap();
            let again = Rendition::build(document.clone(), ABOUT).unwrap();
            proptest::prop_assert_eq!(&built, &again, "equal documents give equal bytes");
            for encoding in [Encoding::Identity, Encoding::Gzip, Encoding::Brotli] {
                proptest::prop_assert_eq!(unpack(&built, encoding), document.as_bytes());
            }
        }
    }

    #[test]
    fn each_encoding_has_a_tag_of_its_own() {
        let built = Rendition::build("<feed/>".repeat(50), ABOUT).unwrap();
        let tags = [Encoding::Identity, Encoding::Gzip, Encoding::Brotli]
            .map(|encoding| built.body(encoding).etag.clone());
        assert!(tags[0] != tags[1] && tags[1] != tags[2] && tags[0] != tags[2]);
        assert!(built.weight() as usize > 350);
    }
}
