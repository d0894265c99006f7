//! Has `parse` and `record` judge a document, with what they need of the ledger.

use super::walk::{self, ArchiveLinks};
use futures_util::future::try_join_all;
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_core::model::{
    Backfill, Completeness, FeedDocument, FeedName, FoundItems, LedgerQuery, Markup, Snapshot,
    SyncId, Time, UpdateHints,
};
use tidegate_core::websub::HubLinks;
use tidegate_format::parse::{self, Limits};
use tidegate_judge::probe::{self, Replies};
use tidegate_judge::record::{
    self, Backfilled, Issued, Observation, ObservationError, Peers, Verdict,
};
use tidegate_net::fetch::FetchedDocument;
use tidegate_store::{PinnedFeed, Store, StoreError};
use tokio::runtime::Handle;
use tracing::debug_span;
use url::Url;

/// The most warnings of a document that are shown to the operator.
pub const MAX_WARNINGS: usize = 20;

/// Further input for a document whose publisher shares its items.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SharingContext {
    /// The complete feed that the document names, or why it could not be fetched; `None` if not fetched.
    pub complete: Option<Result<FetchedDocument, String>>,
    /// Own updates known to other feeds, for items in this gateway's name; `None` if not looked up. Items that could
    /// not be looked up are missing.
    pub issued: Option<Issued>,
}

/// The further input that a judgement needs before it can conclude.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wants {
    /// The complete feed at this address (SSE 1.0 section 4.1).
    Complete(String),
    /// Other feeds' knowledge of these items.
    Issued(Vec<SyncId>),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judged {
    /// The change to commit and pending decisions.
    pub verdict: Verdict,
    pub hints: UpdateHints,
    /// Whether it shows the whole feed, so that observing it again confirms what is missing.
    pub full: bool,
    /// The number of entries.
    pub entries: usize,
    /// The latest date of its entries, future dates excepted.
    pub newest: Option<Time>,
    /// Why only a part of it counts, if so.
    pub partial: Option<String>,
    /// Its problems, at most `MAX_WARNINGS`.
    pub warnings: Vec<String>,
    /// What it means for a walk through older documents, if read for one.
    pub walked: Option<Walked>,
    /// Its link to a SUP document, including the fragment.
    pub sup: Option<String>,
    /// The hubs that its elements name, and its own address.
    pub hub: HubLinks,
    /// Whether some further input could not be read, so that it must be judged again even if unchanged.
    pub lacking: bool,
    /// The input needed before anything can be concluded.
    pub wants: Option<Wants>,
}

impl Judged {
    /// Asks for further input.
    fn waits_for(wants: Wants) -> Self {
        Self { wants: Some(wants), ..Self::default() }
    }
}

/// What a document means for a walk through older documents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walked {
    /// Where the walk continues.
    pub links: ArchiveLinks,
    /// The number of new items.
    pub taken: u32,
    /// The number of entries known before.
    pub known: u32,
    /// The bytes of the new items.
    pub bytes: u64,
}

/// Why a document could not be judged.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// It is not a feed document.
    #[error("{0}")]
    Unreadable(String),
    /// It violates a limit or rule.
    #[error(transparent)]
    Refused(#[from] ObservationError),
    /// The ledger could not be read.
    #[error(transparent)]
    Ledger(#[from] StoreError),
}

/// Judges a document that differs from the last one. `ledger`: reads what the snapshot lacks.
pub(super) fn take_in(
    observation: &Observation<'_>,
    fetched: &FetchedDocument,
    sharing: &SharingContext,
    ledger: &LedgerReader,
) -> Result<Judged, JudgeError> {
    let before = record::read_before(observation.snapshot, fetched.prints);
    let parsing = debug_span!("parse", bytes = fetched.bytes.len()).entered();
    let decoded = decode(fetched, before)?;
    let mut document = parse(fetched, &decoded)?;
    drop(parsing);
    if fetched.delta && document.completeness == Completeness::Full {
        document.completeness = Completeness::Delta;
    }
    let (mut text, mut whole, mut failed) = (None, None, None);
    match &sharing.complete {
        Some(Ok(fetched)) => match decode(fetched, before) {
            Ok(decoded) => text = Some((fetched, decoded)),
            Err(error) => failed = Some(error.to_string()),
        },
        Some(Err(why)) => failed = Some(why.clone()),
        None => {}
    }
    if let Some((fetched, decoded)) = &text {
        match parse(fetched, decoded) {
            Ok(document) => whole = Some(document),
            Err(error) => failed = Some(error.to_string()),
        }
    }
    let documents: Vec<_> = std::iter::once(&document).chain(&whole).collect();
    let read = ledger.read_for(observation, &documents)?;
    let observation =
        &Observation { snapshot: read.as_ref().or(observation.snapshot), ..*observation };
    let refreshed = refresh_fingerprints(observation, &document, ledger)?;
    let observation =
        &Observation { snapshot: refreshed.as_ref().or(observation.snapshot), ..*observation };
    let wanted =
        sharing.complete.is_none() && record::needs_complete(observation.snapshot, &document);
    if wanted && let Some(complete) = document.sharing.as_ref().and_then(|s| s.complete.clone()) {
        return Ok(Judged::waits_for(Wants::Complete(complete)));
    }
    let peers = Peers { complete: whole.as_ref(), issued: sharing.issued.as_ref() };
    let (mut verdict, ()) = judge_with(observation, ledger, |observation| {
        Ok((record::take_in_shared(observation, &document, &peers, fetched.prints)?, ()))
    })?;
    if sharing.issued.is_none() && !verdict.asks.is_empty() {
        return Ok(Judged::waits_for(Wants::Issued(verdict.asks)));
    }
    let unknown = (!verdict.asks.is_empty()).then(|| {
        "items that bear this gateway's name are not taken in yet: there was no time to look into all \
         of its other feeds, or they are too many; they are looked up again at the next poll"
            .to_owned()
    });
    let lacking = failed.is_some() || verdict.doubt.is_some() || unknown.is_some();
    let failed = failed.map(|why| {
        format!("the complete feed that it names could not be read, and is asked for again: {why}")
    });
    let notes = failed.into_iter().chain(unknown).chain(verdict.doubt.take());
    let notes: Vec<String> = notes.chain(verdict.notes.drain(..)).collect();
    let warnings = decoded.warnings.iter().chain(&document.warnings);
    let warnings = warnings.map(|w| format!("at byte {}: {}", w.offset, w.message));
    Ok(Judged {
        verdict,
        full: document.completeness == Completeness::Full && !lacking,
        lacking,
        entries: document.entries.len(),
        newest: newest(&document, observation.now),
        partial: partial(&document.completeness),
        warnings: notes.into_iter().chain(warnings).take(MAX_WARNINGS).collect(),
        wants: None,
        sup: document.head.links.sup,
        hub: HubLinks { hubs: document.head.links.hubs, own: document.head.links.own },
        hints: document.head.hints,
        walked: None,
    })
}

/// Judges an older document and finds where the walk continues. Of the feed's own document, only the links count.
pub(super) fn backfill(
    observation: &Observation<'_>,
    fetched: &FetchedDocument,
    walk: &Backfill,
    ledger: &LedgerReader,
) -> Result<Judged, JudgeError> {
    let decoded = decode(fetched, None)?;
    let document = parse(fetched, &decoded)?;
    let links = ArchiveLinks::from_document(&document, &fetched.url, walk.trail);
    if walk.next.is_none() {
        let walked = Walked { links, ..Walked::default() };
        return Ok(Judged { walked: Some(walked), full: true, ..Judged::default() });
    }
    let is_gone = |id: &str| walk.gone.contains(&walk::hash_text(id));
    let read = ledger.read_for(observation, &[&document])?;
    let observation =
        &Observation { snapshot: read.as_ref().or(observation.snapshot), ..*observation };
    let (verdict, (taken, known)) = judge_with(observation, ledger, |observation| {
        let Backfilled { verdict, taken, known } =
            record::backfill(observation, &document, is_gone)?;
        Ok((verdict, (taken, known)))
    })?;
    let walked = Walked { links, taken, known, bytes: weight(&verdict) };
    // The document that polls read has not changed.
    Ok(Judged { verdict, walked: Some(walked), full: true, ..Judged::default() })
}

/// Judges the replies of missing items' own addresses. `same`: observations of the document since the last commit. The
/// warnings describe the replies.
pub(super) fn judge_replies(observation: &Observation<'_>, replies: &Replies, same: u32) -> Judged {
    let verdict = record::judge_replies(observation, replies, same);
    let warnings = observation.snapshot.map(|snapshot| probe::describe_replies(snapshot, replies));
    Judged { verdict, full: true, warnings: warnings.unwrap_or_default(), ..Judged::default() }
}

fn decode<'d>(
    fetched: &'d FetchedDocument,
    before: Option<parse::Before<'_>>,
) -> Result<parse::Decoded<'d>, JudgeError> {
    parse::decode_as(&fetched.bytes, fetched.content_type.as_deref(), before, &Limits::default())
        .map_err(|error| JudgeError::Unreadable(error.to_string()))
}

fn parse<'d>(
    fetched: &FetchedDocument,
    decoded: &'d parse::Decoded<'_>,
) -> Result<FeedDocument<'d>, JudgeError> {
    let url = Url::parse(&fetched.url).ok();
    let mut document = parse::document(&decoded.text, url.as_ref(), &Limits::default())
        .map_err(|error| JudgeError::Unreadable(error.to_string()))?;
    decoded.describe(&mut document);
    Ok(document)
}

/// Returns the bytes of the versions that a verdict creates.
fn weight(verdict: &Verdict) -> u64 {
    let versions = verdict.change.iter().flat_map(|change| &change.versions);
    let texts = versions.filter_map(|version| version.markup.as_ref());
    let bytes: usize = texts.map(|markup| markup.xml.len()).sum();
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Returns the latest date of a document's entries, future dates excepted.
fn newest(document: &FeedDocument<'_>, now: Time) -> Option<Time> {
    let dates = document.entries.iter().flat_map(|entry| [entry.published, entry.updated]);
    dates.flatten().filter(|date| *date <= now).max()
}

fn partial(completeness: &Completeness) -> Option<String> {
    match completeness {
        Completeness::Full => None,
        Completeness::Delta => Some("the publisher sent what is new alone".to_owned()),
        Completeness::Salvaged(reason) => Some(reason.clone()),
    }
}

/// Reads the parts of a feed's ledger that a snapshot lacks. Blocks, so it is used on blocking threads only.
pub struct LedgerReader {
    pub(super) store: Arc<Store>,
    pub(super) feed: FeedName,
    /// Reads at the snapshot's revision; `None` if the snapshot holds the whole ledger.
    pub(super) pinned: Option<PinnedFeed>,
    pub(super) runtime: Handle,
}

/// How many items are read from the store at the same time.
pub(super) const READS_AT_ONCE: usize = 16;

impl LedgerReader {
    /// Extends the snapshot by what judging `documents` needs; `None` if nothing is missing.
    fn read_for(
        &self,
        observation: &Observation<'_>,
        documents: &[&FeedDocument<'_>],
    ) -> Result<Option<Snapshot>, StoreError> {
        let Some(snapshot) = observation.snapshot else { return Ok(None) };
        self.read_more(snapshot, record::ledger_query(observation, documents))
    }

    /// Extends the snapshot by the items of `query`; `None` if it asks for none. A later eviction makes the snapshot
    /// outdated, and a commit over it is refused.
    fn read_more(
        &self,
        snapshot: &Snapshot,
        query: LedgerQuery,
    ) -> Result<Option<Snapshot>, StoreError> {
        match &self.pinned {
            _ if query.is_empty() => Ok(None),
            Some(pinned) => self.runtime.block_on(pinned.read_more(snapshot, query)),
            None => {
                let stubs = self.store.stubs(&self.feed, &query.names);
                let items = self.runtime.block_on(stubs)?;
                Ok(snapshot.with_found(FoundItems { items, oldest_to: None }))
            }
        }
    }

    /// Reads the newest markup of items.
    fn read_markup(&self, ids: &[SyncId]) -> Result<HashMap<SyncId, Markup>, StoreError> {
        let mut markup = HashMap::new();
        for ids in ids.chunks(READS_AT_ONCE) {
            let reads = try_join_all(ids.iter().map(|id| self.store.item(&self.feed, id)));
            let winners = self.runtime.block_on(reads)?.into_iter().flatten();
            markup.extend(winners.map(|it| (it.shared.winner.id, it.shared.winner.data)));
        }
        Ok(markup)
    }
}

/// Recomputes outdated fingerprints (of an earlier scheme) in the snapshot; `None` if there are none.
fn refresh_fingerprints(
    observation: &Observation<'_>,
    document: &FeedDocument<'_>,
    ledger: &LedgerReader,
) -> Result<Option<Snapshot>, StoreError> {
    let outdated = record::outdated(observation, document);
    let Some(snapshot) = observation.snapshot.filter(|_| !outdated.is_empty()) else {
        return Ok(None);
    };
    let markup = ledger.read_markup(&outdated)?;
    Ok(Some(record::refreshed(snapshot, &markup, &observation.options.ignore)))
}

/// Judges repeatedly, until the verdict needs nothing that the snapshot lacks.
fn judge_with<T>(
    observation: &Observation<'_>,
    ledger: &LedgerReader,
    judge: impl Fn(&Observation<'_>) -> Result<(Verdict, T), ObservationError>,
) -> Result<(Verdict, T), JudgeError> {
    let (mut larger, mut judgements) = (None, 0);
    loop {
        let extended =
            &Observation { snapshot: larger.as_ref().or(observation.snapshot), ..*observation };
        let judged = judge(extended)?;
        judgements += 1;
        let Some(snapshot) = extended.snapshot else { return Ok(judged) };
        // Ends at the latest with the whole ledger.
        let wanted = record::wanted_after(extended, &judged.0, judgements);
        let Some(read) = ledger.read_more(snapshot, wanted)? else { return Ok(judged) };
        larger = Some(read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::double::{NOW, record, store_of};
    use crate::testing::gateway::{Gateway, Publisher, document};
    use tidegate_core::model::{BodyPrints, Count};

    const SHARED: &str = r#"<feed xmlns="http://www.w3.org/2005/Atom"
        xmlns:sx="http://www.microsoft.com/schemas/sse"><title>List</title><id>urn:list</id>
        <updated>2026-01-01T00:00:00Z</updated><entry><sx:sync id="here.x" updates="1">
        <sx:history sequence="1" when="2026-01-01T00:00:00Z" by="here"/></sx:sync><id>urn:x</id>
        <title>Ours</title><updated>2026-01-01T00:00:00Z</updated></entry></feed>"#;

    #[tokio::test]
    async fn a_document_with_items_that_could_not_be_looked_up_is_judged_again() {
        let gateway = Gateway::start(&store_of(&[]), &Publisher::new("one")).await;
        let feed = record("news");
        let observation = gateway.poller.decisions().observe(&feed, None, NOW);
        let document = document(SHARED, BodyPrints { wire: 1, body: 1 });
        let fetched = FetchedDocument { url: feed.url.clone(), ..document };
        let (store, runtime) = (gateway.store.real(), Handle::current());
        let ledger = LedgerReader { store, feed: feed.name.clone(), pinned: None, runtime };
        let judged = |issued: Option<Issued>| {
            let sharing = SharingContext { issued, ..SharingContext::default() };
            take_in(&observation, &fetched, &sharing, &ledger).unwrap()
        };
        let id = SyncId::new("here.x").unwrap();
        assert_eq!(judged(None).wants, Some(Wants::Issued(vec![id.clone()])));
        let items = |judged: &Judged| judged.verdict.change.as_ref().map_or(0, |it| it.known.len());
        let unknown = judged(Some(Issued::new()));
        assert_eq!((unknown.wants.is_some(), items(&unknown)), (false, 0));
        assert!(unknown.lacking && !unknown.full);
        assert!(unknown.warnings.iter().any(|it| it.starts_with("items that bear this gateway")));
        let known = judged(Some(Issued::from([(id, Some(Count::ONE))])));
        assert_eq!((known.lacking, known.full, items(&known)), (false, true, 1));
    }
}
