//! What becomes of the bytes: the seam to `parse` and `record`, so that rounds can be tested with
//! scripted judgements.

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

/// What the operator is told of a document with items whose looks into other feeds came to no end.
const NOT_LOOKED_UP: &str = "items that bear this gateway's name are not taken in yet: there was no time to look into all \
    of its other feeds, or they are too many; they are looked up again at the next poll";

/// The most warnings of a document that are kept for the operator.
pub const MAX_WARNINGS: usize = 20;

/// What a round has beside a document whose publisher shares its items.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SharingContext {
    /// The complete feed that the document names, where it was asked for; else why it could not be
    /// had.
    pub complete: Option<Result<FetchedDocument, String>>,
    /// What other feeds know of items that bear this gateway's name, where that was asked; without those
    /// that could not be looked up.
    pub issued: Option<Issued>,
}

/// What a judgement waits for: nothing was concluded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wants {
    /// The complete feed at this address (SSE 1.0 section 4.1).
    Complete(String),
    /// What other feeds know of these items.
    Issued(Vec<SyncId>),
}

/// What was concluded from a document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judged {
    /// What to commit, and what is pending.
    pub verdict: Verdict,
    /// What the document asks of those who poll it.
    pub hints: UpdateHints,
    /// Whether it shows the whole feed, so that seeing it again confirms what is missing.
    pub full: bool,
    /// How many entries it has.
    pub entries: usize,
    /// The latest date of its entries that is not ahead of the clock.
    pub newest: Option<Time>,
    /// Why only a part of it counts, where that is so.
    pub partial: Option<String>,
    /// What was wrong with it, at most `MAX_WARNINGS`.
    pub warnings: Vec<String>,
    /// What it was to a walk through older documents, where it was read for one.
    pub walked: Option<Walked>,
    /// Its link to a SUP document, fragment included.
    pub sup: Option<String>,
    /// Which hubs its elements name, and under which address.
    pub hub: HubLinks,
    /// Whether something that it leads to could not be had, so that it must be judged again even if
    /// it is the same.
    pub lacking: bool,
    /// What it waits for, where nothing was concluded yet.
    pub wants: Option<Wants>,
}

impl Judged {
    /// Nothing was concluded yet.
    fn waits_for(wants: Wants) -> Self {
        Self { wants: Some(wants), ..Self::default() }
    }
}

/// What a document was to a walk through a publisher's older documents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walked {
    /// Where the walk goes from it.
    pub signpost: ArchiveLinks,
    /// Items that were taken in.
    pub taken: u32,
    /// Entries that were known already.
    pub known: u32,
    /// Bytes of the items that were taken in.
    pub bytes: u64,
}

/// Why nothing can be concluded from a document.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// It is no feed document.
    #[error("{0}")]
    Unreadable(String),
    /// It cannot be taken in.
    #[error(transparent)]
    Refused(#[from] ObservationError),
    /// What it is judged with cannot be read.
    #[error(transparent)]
    Ledger(#[from] StoreError),
}

/// Concludes from documents. Pure, and called where it may take its time.
pub trait DocumentJudge: Send + Sync + 'static {
    /// Takes in a document that differs from the last one. `ledger`: what the snapshot lacks.
    fn take_in(
        &self,
        round: &Observation<'_>,
        seen: &FetchedDocument,
        beside: &SharingContext,
        ledger: &LedgerReader,
    ) -> Result<Judged, JudgeError>;

    /// Looks at what is pending when the document is the same for the `same`th time since the last
    /// commit.
    fn look_again(&self, round: &Observation<'_>, same: u32) -> Result<Verdict, JudgeError>;

    /// Takes in an older document of the publisher, and reads where the walk goes from it. Of the
    /// feed's own document only the latter.
    fn backfill(
        &self,
        round: &Observation<'_>,
        seen: &FetchedDocument,
        walk: &Backfill,
        ledger: &LedgerReader,
    ) -> Result<Judged, JudgeError>;

    /// Takes in what missing items' own addresses replied; the document was seen unchanged `same`
    /// times since the last commit. The warnings are what was heard.
    fn answered(
        &self,
        round: &Observation<'_>,
        replies: &Replies,
        same: u32,
    ) -> Result<Judged, JudgeError>;
}

/// The judge of a running gateway.
#[derive(Debug, Clone, Default)]
pub struct ParseAndRecord {
    /// What a document may contain.
    pub limits: Limits,
}

impl DocumentJudge for ParseAndRecord {
    fn take_in(
        &self,
        round: &Observation<'_>,
        seen: &FetchedDocument,
        beside: &SharingContext,
        ledger: &LedgerReader,
    ) -> Result<Judged, JudgeError> {
        let before = record::read_before(round.snapshot, seen.prints);
        let parsing = debug_span!("parse", bytes = seen.bytes.len()).entered();
        let decoded = self.decode(seen, before)?;
        let mut document = self.parse(seen, &decoded)?;
        drop(parsing);
        if seen.delta && document.completeness == Completeness::Full {
            document.completeness = Completeness::Delta;
        }
        let (mut text, mut whole, mut failed) = (None, None, None);
        match &beside.complete {
            Some(Ok(seen)) => match self.decode(seen, before) {
                Ok(decoded) => text = Some((seen, decoded)),
                Err(error) => failed = Some(error.to_string()),
            },
            Some(Err(why)) => failed = Some(why.clone()),
            None => {}
        }
        if let Some((seen, decoded)) = &text {
            match self.parse(seen, decoded) {
                Ok(document) => whole = Some(document),
                Err(error) => failed = Some(error.to_string()),
            }
        }
        let documents: Vec<_> = std::iter::once(&document).chain(&whole).collect();
        let read = ledger.read_for(round, &documents)?;
        let round = &Observation { snapshot: read.as_ref().or(round.snapshot), ..*round };
        let refreshed = refresh_fingerprints(round, &document, ledger)?;
        let round = &Observation { snapshot: refreshed.as_ref().or(round.snapshot), ..*round };
        let wanted = beside.complete.is_none() && record::needs_complete(round.snapshot, &document);
        if wanted && let Some(complete) = document.sharing.as_ref().and_then(|s| s.complete.clone())
        {
            return Ok(Judged::waits_for(Wants::Complete(complete)));
        }
        let peers = Peers { complete: whole.as_ref(), issued: beside.issued.as_ref() };
        let (mut verdict, ()) = judge_with(round, ledger, |round| {
            Ok((record::take_in_shared(round, &document, &peers, seen.prints)?, ()))
        })?;
        if beside.issued.is_none() && !verdict.asks.is_empty() {
            return Ok(Judged::waits_for(Wants::Issued(verdict.asks)));
        }
        let unknown = (!verdict.asks.is_empty()).then(|| NOT_LOOKED_UP.to_owned());
        let lacking = failed.is_some() || verdict.doubt.is_some() || unknown.is_some();
        let failed = failed.map(|why| {
            format!(
                "the complete feed that it names could not be read, and is asked for again: {why}"
            )
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
            newest: newest(&document, round.now),
            partial: partial(&document.completeness),
            warnings: notes.into_iter().chain(warnings).take(MAX_WARNINGS).collect(),
            wants: None,
            sup: document.head.links.sup,
            hub: HubLinks { hubs: document.head.links.hubs, own: document.head.links.own },
            hints: document.head.hints,
            walked: None,
        })
    }

    fn look_again(&self, round: &Observation<'_>, same: u32) -> Result<Verdict, JudgeError> {
        Ok(record::look_again(round, same))
    }

    fn backfill(
        &self,
        round: &Observation<'_>,
        seen: &FetchedDocument,
        walk: &Backfill,
        ledger: &LedgerReader,
    ) -> Result<Judged, JudgeError> {
        let decoded = self.decode(seen, None)?;
        let document = self.parse(seen, &decoded)?;
        let signpost = ArchiveLinks::from_document(&document, &seen.url, walk.trail);
        if walk.next.is_none() {
            let walked = Walked { signpost, ..Walked::default() };
            return Ok(Judged { walked: Some(walked), full: true, ..Judged::default() });
        }
        let is_gone = |id: &str| walk.gone.contains(&walk::mark(id));
        let read = ledger.read_for(round, &[&document])?;
        let round = &Observation { snapshot: read.as_ref().or(round.snapshot), ..*round };
        let (verdict, (taken, known)) = judge_with(round, ledger, |round| {
            let Backfilled { verdict, taken, known } = record::backfill(round, &document, is_gone)?;
            Ok((verdict, (taken, known)))
        })?;
        let walked = Walked { signpost, taken, known, bytes: weight(&verdict) };
        // The document that polls read is as it was.
        Ok(Judged { verdict, walked: Some(walked), full: true, ..Judged::default() })
    }

    fn answered(
        &self,
        round: &Observation<'_>,
        replies: &Replies,
        same: u32,
    ) -> Result<Judged, JudgeError> {
        let verdict = record::answered(round, replies, same);
        let warnings = round.snapshot.map(|snapshot| probe::heard(snapshot, replies));
        Ok(Judged {
            verdict,
            full: true,
            warnings: warnings.unwrap_or_default(),
            ..Judged::default()
        })
    }
}

impl ParseAndRecord {
    fn decode<'d>(
        &self,
        seen: &'d FetchedDocument,
        before: Option<parse::Before<'_>>,
    ) -> Result<parse::Decoded<'d>, JudgeError> {
        parse::decode_as(&seen.bytes, seen.content_type.as_deref(), before, &self.limits)
            .map_err(|error| JudgeError::Unreadable(error.to_string()))
    }

    fn parse<'d>(
        &self,
        seen: &FetchedDocument,
        decoded: &'d parse::Decoded<'_>,
    ) -> Result<FeedDocument<'d>, JudgeError> {
        let url = Url::parse(&seen.url).ok();
        let mut document = parse::document(&decoded.text, url.as_ref(), &self.limits)
            .map_err(|error| JudgeError::Unreadable(error.to_string()))?;
        decoded.describe(&mut document);
        Ok(document)
    }
}

/// The bytes of the versions that a verdict makes.
fn weight(verdict: &Verdict) -> u64 {
    let versions = verdict.change.iter().flat_map(|change| &change.versions);
    let texts = versions.filter_map(|version| version.markup.as_ref());
    let bytes: usize = texts.map(|markup| markup.xml.len()).sum();
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// The latest date of a document's entries that is not ahead of the clock.
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

/// Reads what a snapshot lacks of its feed's ledger. Blocks, and is used where that may take its time.
pub struct LedgerReader {
    pub(super) store: Arc<Store>,
    pub(super) feed: FeedName,
    /// Reads at the snapshot's revision, where the snapshot is not all of the ledger.
    pub(super) pinned: Option<PinnedFeed>,
    pub(super) runtime: Handle,
}

/// How many items of the store are read at once.
pub(super) const READS_AT_ONCE: usize = 16;

impl LedgerReader {
    /// The snapshot of a round with what judging these documents needs besides; `None` where it has all of it.
    fn read_for(
        &self,
        round: &Observation<'_>,
        documents: &[&FeedDocument<'_>],
    ) -> Result<Option<Snapshot>, StoreError> {
        let Some(snapshot) = round.snapshot else { return Ok(None) };
        self.read_more(snapshot, record::ledger_query(round, documents))
    }

    /// The snapshot with the items that a query asks for; `None` where there are none that it lacks. Whatever leaves the
    /// ledger meanwhile makes the snapshot outdated, and a commit over it is refused.
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

    /// The newest bytes of items.
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

/// The snapshot with new fingerprints of the items whose own were made by another scheme; `None` where there are none.
fn refresh_fingerprints(
    round: &Observation<'_>,
    document: &FeedDocument<'_>,
    ledger: &LedgerReader,
) -> Result<Option<Snapshot>, StoreError> {
    let outdated = record::outdated(round, document);
    let Some(snapshot) = round.snapshot.filter(|_| !outdated.is_empty()) else { return Ok(None) };
    let markup = ledger.read_markup(&outdated)?;
    Ok(Some(record::refreshed(snapshot, &markup, &round.options.ignore)))
}

/// Judges until the verdict needs no more of the ledger than the snapshot has.
fn judge_with<T>(
    round: &Observation<'_>,
    ledger: &LedgerReader,
    judge: impl Fn(&Observation<'_>) -> Result<(Verdict, T), ObservationError>,
) -> Result<(Verdict, T), JudgeError> {
    let (mut more, mut looks) = (None, 0);
    loop {
        let now = &Observation { snapshot: more.as_ref().or(round.snapshot), ..*round };
        let judged = judge(now)?;
        looks += 1;
        let Some(snapshot) = now.snapshot else { return Ok(judged) };
        // Ends with the whole ledger, which lacks nothing.
        let wanted = record::wanted_after(now, &judged.0, looks);
        let Some(read) = ledger.read_more(snapshot, wanted)? else { return Ok(judged) };
        more = Some(read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::double::{NOW, record, store_of};
    use crate::testing::gateway::{Gateway, Publisher};
    use bytes::Bytes;
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
        let round = gateway.poller.decisions().observe(&feed, None, NOW);
        let seen = FetchedDocument {
            bytes: Bytes::from_static(SHARED.as_bytes()),
            content_type: None,
            url: feed.url.clone(),
            prints: BodyPrints { wire: 1, body: 1 },
            delta: false,
        };
        let ledger = LedgerReader {
            store: gateway.store.real(),
            feed: feed.name.clone(),
            pinned: None,
            runtime: Handle::current(),
        };
        let judged = |issued: Option<Issued>| {
            let beside = SharingContext { issued, ..SharingContext::default() };
            ParseAndRecord::default().take_in(&round, &seen, &beside, &ledger).unwrap()
        };
        let id = SyncId::new("here.x").unwrap();
        assert_eq!(judged(None).wants, Some(Wants::Issued(vec![id.clone()])));
        let items = |judged: &Judged| judged.verdict.change.as_ref().map_or(0, |it| it.known.len());
        let unknown = judged(Some(Issued::new()));
        assert_eq!((unknown.wants.is_some(), items(&unknown)), (false, 0));
        assert!(unknown.lacking && !unknown.full);
        assert!(unknown.warnings.iter().any(|warning| warning == NOT_LOOKED_UP));
        let known = judged(Some(Issued::from([(id, Some(Count::ONE))])));
        assert_eq!((known.lacking, known.full, items(&known)), (false, true, 1));
    }
}
