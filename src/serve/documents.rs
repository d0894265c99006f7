//! Documents that are made when they are asked for, and kept: of many who ask for the same at once, one has it made,
//! when it is admitted. All of them share one cache with one budget, each under everything that it is a function of.

use super::address::ChangeFeedForm;
use super::conflicts::ConflictsForm;
use super::dashboard::DashboardQuery;
use super::delta::Point;
use super::item_list::ItemListQuery;
use super::items::{ItemContent, ItemQuery};
use super::opml::OpmlQuery;
use super::{
    Admission, AudienceKey, Cache, DocumentForm, Metrics, Problem, ReadPlan, Rendition, ServedFeed,
    SingleFlight, ViewRequest, WorkRequest,
};
use axum::body::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate_core::model::{ArchivePlace, FeedName, Revision, SyncId, Time};
use tokio::time::Instant;

/// The cost of making a document, as a multiple of its size: it is in memory as read, as written and compressed.
const COST_FACTOR: u64 = 4;
/// How long a page is shown again, unless its feed changes: it says how long ago things were, and what it tells of
/// may go without a new revision. One that tells of polls, or of what happens now, is for a moment.
const PAGE_FRESH: Duration = Duration::from_secs(60);
const GLANCE_FRESH: Duration = Duration::from_secs(5);

/// What a document is a function of, beside the revision of its feed: whatever changes what a feed shows raises that. One
/// over all feeds has none, and the revision of their index.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct DocumentKey {
    pub(super) audience: AudienceKey,
    pub(super) feed: Option<FeedName>,
    pub(super) kind: DocumentKind,
}

impl ServedFeed {
    /// The key of a document that shows the feed with the addresses that its audience has.
    pub(super) fn key(&self, kind: DocumentKind) -> DocumentKey {
        DocumentKey { audience: self.site.key(), feed: Some(self.name.clone()), kind }
    }

    /// What its documents are a function of by its upstream's address.
    pub(super) fn upstream_key(&self) -> UpstreamKey {
        (self.url.clone(), self.options.secret)
    }
}

/// The upstream's address, and what the operator says of its secrecy: documents name it as it may be shown.
type UpstreamKey = (String, Option<bool>);

/// Which document of a feed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum DocumentKind {
    View {
        upstream: UpstreamKey,
        plan: ReadPlan,
        form: DocumentForm,
        /// Whether the operator says that the feed is complete.
        is_complete: bool,
        /// The state that a delta begins with; `None`: the whole view.
        base: Option<Point>,
    },
    /// A view as it was.
    Past {
        upstream: UpstreamKey,
        request: ViewRequest,
        at: Time,
    },
    Archive {
        place: Box<ArchivePlace>,
        form: DocumentForm,
        /// What the operator says of the upstream's address.
        secret: Option<bool>,
    },
    /// The edits and deletions.
    Changes(ChangeFeedForm),
    /// The page about the feed.
    About,
    /// The feed as a page.
    Reading,
    /// A page of items, or the same as data.
    Items {
        query: ItemListQuery,
        is_json: bool,
    },
    Item {
        id: SyncId,
        query: ItemQuery,
        is_json: bool,
    },
    Conflicts {
        after: Option<SyncId>,
        form: ConflictsForm,
    },
    /// A page of the overview.
    Overview(DashboardQuery),
    /// What changed lately in all feeds.
    Recent,
    /// All feeds as a list of subscriptions.
    Subscriptions(OpmlQuery),
}

impl DocumentKind {
    /// Whether it is cached: a search or a `since` that one client made up is of no use to others, and would evict
    /// theirs.
    fn is_kept(&self) -> bool {
        match self {
            Self::Overview(query) => !query.is_search(),
            Self::Subscriptions(query) => query.is_whole(),
            _ => true,
        }
    }

    /// How long it is shown again.
    const fn fresh(&self) -> Option<Duration> {
        match self {
            Self::View { .. }
            | Self::Past { .. }
            | Self::Archive { .. }
            | Self::Changes(_)
            | Self::Subscriptions(_) => None,
            Self::About | Self::Overview(_) | Self::Recent => Some(GLANCE_FRESH),
            Self::Reading | Self::Items { .. } | Self::Item { .. } | Self::Conflicts { .. } => {
                Some(PAGE_FRESH)
            }
        }
    }
}

/// A document that was made.
#[derive(Debug)]
pub(super) enum ServedDocument {
    /// In its encodings.
    Encoded(Arc<Rendition>),
    /// A page, with or without its frame, or data.
    Text(Bytes),
    /// The page of an item, or of what differs between its versions.
    Item(ItemContent),
    /// A delta that would have every entry of the whole view.
    WholeView,
}

impl From<Rendition> for ServedDocument {
    fn from(rendition: Rendition) -> Self {
        Self::Encoded(Arc::new(rendition))
    }
}

impl From<String> for ServedDocument {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<Bytes> for ServedDocument {
    fn from(text: Bytes) -> Self {
        Self::Text(text)
    }
}

impl ServedDocument {
    /// The document in its encodings; `None` of pages, and of a delta that is none.
    pub(super) const fn encoded(&self) -> Option<&Arc<Rendition>> {
        match self {
            Self::Encoded(rendition) => Some(rendition),
            _ => None,
        }
    }

    /// The text of a page or of data; empty of all else.
    pub(super) fn text(&self) -> Bytes {
        match self {
            Self::Text(text) => text.clone(),
            _ => Bytes::new(),
        }
    }

    fn weight(&self) -> u32 {
        let bytes = match self {
            Self::Encoded(rendition) => return rendition.weight(),
            Self::Text(text) => text.len(),
            Self::Item(content) => content.len(),
            Self::WholeView => 0,
        };
        // An entry takes something itself.
        u32::try_from(bytes).unwrap_or(u32::MAX).max(64)
    }
}

/// A document, of which revision it is, and until when it is shown again.
struct KeptDocument {
    document: Arc<ServedDocument>,
    revision: Option<Revision>,
    until: Option<Instant>,
}

/// The documents of all feeds, and what it takes to make more.
pub(super) struct Documents {
    kept: Cache<DocumentKey, KeptDocument>,
    limit: u64,
    flights: SingleFlight<(DocumentKey, Option<Revision>), ServedDocument>,
    metrics: Metrics,
    forgotten: AtomicU64,
}

impl Documents {
    /// None yet, and at most so many bytes.
    pub(super) fn new(bytes: u64, admission: Arc<Admission>, metrics: Metrics) -> Arc<Self> {
        let kept = Cache::with_weigher(bytes, |kept: &KeptDocument| kept.document.weight());
        let (flights, forgotten) = (SingleFlight::new(admission), AtomicU64::new(0));
        Arc::new(Self { kept, limit: bytes, flights, metrics, forgotten })
    }

    /// The bytes that are kept, and how many are at most.
    pub(super) fn size(&self) -> (u64, u64) {
        (self.kept.weight(), self.limit)
    }

    /// Lets go of all documents of a feed.
    pub(super) fn forget(&self, feed: &FeedName) {
        let feed = Some(feed.clone());
        self.kept.invalidate_if(move |key| key.feed == feed);
        // After the removal: who sees the new count finds none of them.
        self.forgotten.fetch_add(1, Ordering::Release);
    }

    /// How often documents were let go of, whatever revision they show.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Acquire)
    }

    /// Notes that a document was asked for which something else had at hand: what is asked for often is kept.
    pub(super) fn note_use(&self, key: &DocumentKey) {
        let _ = self.kept.get(key);
    }

    /// What is kept of a revision; nothing is made.
    fn kept(&self, key: &DocumentKey, revision: Option<Revision>) -> Option<Arc<ServedDocument>> {
        let kept = self.kept.get(key)?;
        let is_fresh = kept.until.is_none_or(|until| Instant::now() < until);
        (kept.revision == revision && is_fresh).then(|| Arc::clone(&kept.document))
    }

    /// Caches a document unless a later revision is cached. One without a revision replaces any: its feed was purged.
    fn keep(
        &self,
        (key, revision): (DocumentKey, Option<Revision>),
        document: &Arc<ServedDocument>,
    ) {
        if !key.kind.is_kept() {
            return;
        }
        let before = self.kept.get(&key);
        if revision.is_some() && before.as_ref().is_some_and(|kept| kept.revision > revision) {
            return;
        }
        let until = key.kind.fresh().map(|fresh| Instant::now() + fresh);
        self.kept.insert(key, KeptDocument { document: Arc::clone(document), revision, until });
        if before.is_some() {
            // The earlier one may be large: it goes now, and not when somebody asks next.
            self.kept.run_pending_tasks();
        }
    }

    /// Returns the cached document of a revision, or makes it once the work is admitted. Work that has begun is
    /// finished and cached even if the client leaves; a failure is not cached. `revision`: `None` for a feed that was
    /// not read yet, and for documents that no revision changes.
    pub(super) async fn get<F, D>(
        self: &Arc<Self>,
        key: DocumentKey,
        revision: Option<Revision>,
        request: WorkRequest,
        make: impl FnOnce() -> F,
    ) -> Result<Arc<ServedDocument>, Problem>
    where
        F: Future<Output = Result<D, Problem>> + Send + 'static,
        D: Into<ServedDocument>,
    {
        if let Some(hit) = self.kept(&key, revision) {
            self.metrics.hits.inc();
            return Ok(hit);
        }
        let (work, records_cost) = (request.work.clone(), request.records_cost);
        let (mut is_hit, key) = (true, (key, revision));
        let made = self.flights.get(&key, request, || {
            is_hit = false;
            let (all, key, make) = (Arc::clone(self), key.clone(), make());
            async move {
                // Who made it may have ended just before this began.
                if let Some(hit) = all.kept(&key.0, key.1) {
                    all.metrics.hits.inc();
                    return Ok(hit);
                }
                all.metrics.misses.inc();
                let document = Arc::new(make.await?.into());
                if records_cost {
                    let bytes = u64::from(document.weight()).saturating_mul(COST_FACTOR);
                    all.flights.admission.record_cost(work, bytes);
                }
                all.keep(key, &document);
                Ok(document)
            }
        });
        // In a box: what a hit never needs would be moved about with each request.
        let made = Box::pin(made).await;
        if is_hit && made.is_ok() {
            self.metrics.hits.inc();
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReadQuery as _;
    use crate::admission::{Work, WorkKind};
    use std::sync::atomic::AtomicUsize;

    fn request(client: u8, cost: u64) -> WorkRequest {
        let work = Work::new(&FeedName::new("news").unwrap(), WorkKind::Ledger);
        WorkRequest { client: crate::tests::client(client), work, cost, records_cost: false }
    }

    type Key = (DocumentKey, Option<Revision>);

    fn key(feed: &str, revision: u64) -> Key {
        let (feed, kind) = (FeedName::new(feed).ok(), DocumentKind::Reading);
        let key = DocumentKey { audience: AudienceKey::Public, feed, kind };
        (key, Some(Revision(revision)))
    }

    fn is_kept(documents: &Documents, (key, revision): &Key) -> bool {
        documents.kept(key, *revision).is_some()
    }

    fn documents(bytes: u64) -> Arc<Documents> {
        Documents::new(bytes, Arc::new(Admission::of(4)), Metrics::new())
    }

    async fn length(
        documents: &Arc<Documents>,
        (key, revision): Key,
        request: WorkRequest,
        make: impl Future<Output = Result<String, Problem>> + Send + 'static,
    ) -> Result<usize, Problem> {
        Ok(documents.get(key, revision, request, || make).await?.text().len())
    }

    #[tokio::test]
    async fn of_many_who_ask_one_makes_it_and_failures_are_not_kept() {
        let documents = documents(1024);
        let count = Arc::new(AtomicUsize::new(0));
        let make = || {
            let count = Arc::clone(&count);
            async move { Ok(" ".repeat(count.fetch_add(1, Ordering::SeqCst))) }
        };
        let (one, other) = tokio::join!(
            length(&documents, key("a", 7), request(1, 1), make()),
            length(&documents, key("a", 7), request(2, 1), make())
        );
        assert_eq!((one.unwrap(), other.unwrap()), (0, 0));
        assert_eq!(length(&documents, key("a", 8), request(1, 1), make()).await.unwrap(), 1);
        let fail = async { Err(Problem::unread_feed()) };
        assert!(length(&documents, key("a", 9), request(1, 1), fail).await.is_err());
        assert_eq!(length(&documents, key("a", 9), request(1, 1), make()).await.unwrap(), 2);
        documents.forget(&FeedName::new("b").unwrap());
        assert!(is_kept(&documents, &key("a", 9)));
        documents.forget(&FeedName::new("a").unwrap());
        assert!(!is_kept(&documents, &key("a", 9)));
        // What somebody made up takes the place of nothing.
        let overview = |query: &str| DocumentKind::Overview(DashboardQuery::read(query).unwrap());
        let list = |query: &str| DocumentKind::Subscriptions(OpmlQuery::read(query).unwrap());
        for (kind, is_one) in [
            (overview("show=failing"), true),
            (overview("q=x"), false),
            (list("upstream=1"), true),
            (list("since=2026-01-01T00:00:00Z"), false),
        ] {
            let key = (DocumentKey { kind, ..key("a", 1).0 }, Some(Revision(1)));
            let make = async { Ok("x".to_owned()) };
            assert_eq!(length(&documents, key.clone(), request(1, 1), make).await.unwrap(), 1);
            assert_eq!(is_kept(&documents, &key), is_one, "{key:?}");
        }
        // What is of an earlier revision is not kept, and what is of none is.
        let documents = self::documents(1024);
        let purged = (key("a", 9).0, None);
        for (asked, is_kept_then) in [(key("a", 9), true), (key("a", 8), false), (purged, true)] {
            let make = async { Ok(String::new()) };
            length(&documents, asked.clone(), request(1, 1), make).await.unwrap();
            assert_eq!(is_kept(&documents, &asked), is_kept_then, "{asked:?}");
        }
        // What it took is expected next time, where the request says so.
        for (records_cost, cost) in [(false, 0), (true, 100 * COST_FACTOR)] {
            let documents = self::documents(1024);
            let asked = WorkRequest { records_cost, ..request(1, 1) };
            let (work, make) = (asked.work.clone(), async { Ok(" ".repeat(100)) });
            length(&documents, key("a", 7), asked, make).await.unwrap();
            assert_eq!(documents.flights.admission.cost_of(&work, 0), cost);
        }
        // What is asked for often stays, whoever walks through the forms of one feed.
        let documents = self::documents(1000);
        let make = || async { Ok(" ".repeat(100)) };
        for _ in 0..10 {
            length(&documents, key("often", 0), request(1, 1), make()).await.unwrap();
        }
        for number in 0..1000 {
            length(&documents, key("walked", number), request(2, 1), make()).await.unwrap();
            assert!(is_kept(&documents, &key("often", 0)), "{number}");
            documents.kept.run_pending_tasks();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_made_is_kept_for_a_while_whoever_leaves_and_nobody_waits_for_the_greedy() {
        let documents = documents(1024);
        let kind = DocumentKind::Changes(ChangeFeedForm::Atom);
        let archive = (DocumentKey { kind, ..key("a", 1).0 }, Some(Revision(1)));
        for key in [key("a", 1), archive.clone()] {
            length(&documents, key, request(1, 1), async { Ok(String::new()) }).await.unwrap();
        }
        tokio::time::advance(PAGE_FRESH - Duration::from_millis(1)).await;
        assert!(is_kept(&documents, &key("a", 1)));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!is_kept(&documents, &key("a", 1)) && is_kept(&documents, &archive));
        // What was begun is kept though who asked left: a client that asks and leaves has as much made as one that waits.
        let documents = self::documents(1024);
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let (begun, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for number in 0..100 {
            let (documents, gate) = (Arc::clone(&documents), Arc::clone(&gate));
            let (begun, most) = (Arc::clone(&begun), Arc::clone(&most));
            let make = async move {
                let now = begun.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                let _passed = gate.acquire().await.unwrap();
                begun.fetch_sub(1, Ordering::SeqCst);
                Ok(" ".repeat(most.load(Ordering::SeqCst)))
            };
            // One client, and one that costs a whole share each time.
            let asked = tokio::spawn(async move {
                length(&documents, key("a", number), request(1, u64::MAX), make).await
            });
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            asked.abort();
        }
        gate.add_permits(1);
        let failing = async { Err(Problem::unread_feed()) };
        let first = length(&documents, key("a", 0), request(2, 1), failing).await.unwrap();
        assert_eq!(first, 1, "the first is there, and no other was begun beside it");
        // Nobody waits for a client that asks for too much.
        let documents = self::documents(1024);
        let work = Work::new(&FeedName::new("other").unwrap(), WorkKind::Ledger);
        let greedy = crate::tests::client(1);
        let _held = documents.flights.admission.admit(greedy, &work, u64::MAX).await.unwrap();
        let begun = tokio::time::Instant::now();
        let ask = |client| {
            let make = async { Ok(String::new()) };
            length(&documents, key("a", 7), request(client, u64::MAX), make)
        };
        let (first, other) = tokio::join!(ask(1), ask(2));
        assert_eq!((first.unwrap(), other.unwrap(), begun.elapsed()), (0, 0, Duration::ZERO));
    }
}
