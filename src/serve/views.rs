//! The views of feeds: what they are made of, and how they are read and written.

use super::delta::Point;
use super::rendition::RestOfView;
use super::{
    Admission, AppState, Client, DocumentForm, DocumentKey, DocumentKind, Problem, ProblemCause,
    ReadPlan, Rendition, ServedFeed, UnwrittenDocument, Work, WorkKind, WorkRequest, kept_items,
    make_on_thread,
};
use std::collections::HashSet;
use std::sync::Arc;
use tidegate_core::model::{Deletion, FeedState, Format, Item, Revision, Snapshot, Tick, Time};
use tidegate_format::render::{Container, HistoryPlace, ViewKind};
use tidegate_store::{RemainingItems, Select, View};

/// How often a document is begun whose feed another gateway changes meanwhile.
const BUILDS: usize = 4;

/// What was asked of a view, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ViewRequest {
    pub(super) kind: ViewKind,
    /// The form, with the container where one was asked for.
    pub(super) form: DocumentForm,
    /// `?since=`.
    pub(super) seen: Option<Tick>,
}

impl ViewRequest {
    /// Whether a plan shows what anybody gets who asks for no part of the view.
    fn is_whole(&self, plan: ReadPlan, state: &FeedState) -> bool {
        ReadPlan::new(self.kind, None, state).is_ok_and(|whole| whole == plan)
    }

    /// Whether the view tells deletions as RFC 6721 does.
    fn tells_deletions(&self, state: &FeedState) -> bool {
        self.kind != ViewKind::Complete
            && self.form.container(state.format) == Container::Atom
            && state.window_start.is_some()
    }

    /// Whether the view has a whole subscription list (OPML) in its order, in any container: no version of an outline
    /// records its position, so readers take the order of the document. Entries of other feeds do not nest, so a part
    /// is enough.
    fn has_whole_list(&self, state: &FeedState) -> bool {
        self.kind != ViewKind::Reader && state.format == Format::Opml
    }
}

/// A view that a client asks for, decided from the state in which its feed is.
#[derive(Clone, Copy)]
pub(super) struct RequestedView<'a> {
    pub(super) record: &'a ServedFeed,
    pub(super) request: ViewRequest,
    pub(super) state: &'a FeedState,
    pub(super) client: Client,
    plan: ReadPlan,
}

impl<'a> RequestedView<'a> {
    pub(super) fn new(
        record: &'a ServedFeed,
        request: ViewRequest,
        state: &'a FeedState,
        client: Client,
    ) -> Result<Self, Problem> {
        let plan = ReadPlan::new(request.kind, request.seen, state)?;
        Ok(Self { record, request, state, client, plan })
    }

    /// The key of its document, or of a delta that begins with `base`, with the revision.
    pub(super) fn key(&self, base: Option<Point>) -> (DocumentKey, Option<Revision>) {
        // Where the window starts follows from the revision, which stands beside the key: so what is made of a later one
        // takes the place of what was made before.
        let plan = match self.plan {
            ReadPlan::Window { since } if since == self.state.window_start => {
                ReadPlan::Window { since: None }
            }
            other => other,
        };
        let kind = DocumentKind::View {
            upstream: self.record.upstream_key(),
            plan,
            form: self.request.form.within(self.state.format),
            is_complete: self.record.options.complete,
            base,
        };
        (self.record.key(kind), Some(self.state.revision))
    }

    /// The cost of making the document: its items, and the ledger if it shows deletions or a whole list.
    pub(super) fn work(&self, admission: &Admission) -> WorkRequest {
        let (state, feed) = (self.state, &self.record.name);
        let all = kept_items(state);
        let items = match self.request.kind {
            ViewKind::Reader => u64::from(state.current),
            ViewKind::Sync | ViewKind::Complete => all,
        };
        let work = Work::new(feed, WorkKind::View(self.request.kind));
        let tells_deletions = state.tombstones > 0 && self.request.tells_deletions(state);
        let ledger = match tells_deletions || self.request.has_whole_list(state) {
            true => admission.cost_of(&Work::new(feed, WorkKind::Ledger), all),
            false => 0,
        };
        let cost = admission.cost_of(&work, items).saturating_add(ledger);
        let records_cost = self.request.is_whole(self.plan, state);
        WorkRequest { client: self.client, cost, work, records_cost }
    }
}

impl AppState {
    /// The document of a view; on a hit nothing is read from the store, so that where the store fails, what was made of the
    /// same revision is served.
    pub(super) async fn view(
        self: &Arc<Self>,
        requested: &RequestedView<'_>,
    ) -> Result<Arc<Rendition>, Problem> {
        let request = requested.request;
        let make = |app: Arc<Self>, record| async move { app.build_view(&record, request).await };
        self.encoded(requested.record, requested.key(None), requested.work(&self.admission), make)
            .await
    }

    /// A document in its encodings, which is kept or made.
    pub(super) async fn encoded<F>(
        self: &Arc<Self>,
        record: &ServedFeed,
        (key, revision): (DocumentKey, Option<Revision>),
        work_request: WorkRequest,
        make: impl FnOnce(Arc<Self>, ServedFeed) -> F,
    ) -> Result<Arc<Rendition>, Problem>
    where
        F: Future<Output = Result<Rendition, Problem>> + Send + 'static,
    {
        let make = || make(Arc::clone(self), record.clone());
        let made = self.documents.get(key, revision, work_request, make).await?;
        made.encoded().cloned().ok_or_else(Problem::unread_feed)
    }

    async fn build_view(
        &self,
        record: &ServedFeed,
        request: ViewRequest,
    ) -> Result<Rendition, Problem> {
        // Another gateway may change the feed while it is read, which begins anew then.
        for _ in 1..BUILDS {
            match self.build_view_once(record, request).await {
                Err(problem) if problem.cause == ProblemCause::ChangedFeed => {}
                done => return done,
            }
        }
        self.build_view_once(record, request).await
    }

    async fn build_view_once(
        &self,
        record: &ServedFeed,
        request: ViewRequest,
    ) -> Result<Rendition, Problem> {
        let ReadView { plan, view, rest, deleted } = self.read_view(record, request).await?;
        let state = &view.state;
        // Deltas begin with what anybody gets, not with an answer to `?since=`.
        let scope = match request.is_whole(plan, state) {
            true => self.tag_scope(record, request, state),
            false => None,
        };
        let document = UnwrittenDocument {
            rest: Some(rest),
            bounds: plan.bounds(state),
            expires: plan.expires(&view.items, self.config.publish.window),
            token: scope.zip(Point::of(state)).map(|(scope, point)| point.token(scope)),
            ..self.unwritten(record, request, view, &deleted)
        };
        self.write_document(document).await
    }

    /// A document of what was read, without what `sx:sharing` says of it.
    pub(super) fn unwritten(
        &self,
        record: &ServedFeed,
        request: ViewRequest,
        view: View,
        deleted: &[Item],
    ) -> UnwrittenDocument {
        let (kind, form) = (request.kind, request.form.within(view.state.format));
        let history = history_place(record, kind, form, &view.state);
        let addresses = record.site.addresses(record, form, view.skeleton.link.as_deref());
        UnwrittenDocument {
            deleted: deleted.iter().map(Deletion::from).collect(),
            window: Some(self.config.publish.window),
            ..UnwrittenDocument::new(record, (kind, form), view, (addresses, history))
        }
    }

    /// Reads what the view shows, all at one revision. In Atom deletions stand as `at:deleted-entry` in
    /// the reader view and, beside the tombstones, in the sync view.
    pub(super) async fn read_view(
        &self,
        record: &ServedFeed,
        request: ViewRequest,
    ) -> Result<ReadView, Problem> {
        let reader = self.store.pin(&record.name).await?.ok_or_else(Problem::unread_feed)?;
        let plan = ReadPlan::new(request.kind, request.seen, reader.state())?;
        let (mut view, mut rest) = RestOfView::begin(&reader, plan.select()).await?;
        // The head of the document (such as `expires`) depends on the first items, so read on until there are some.
        while view.items.is_empty()
            && let Some(next) = rest.next().await?
        {
            view.items = next;
        }
        let state = &view.state;
        let mut deleted = Vec::new();
        if request.tells_deletions(state) {
            let since = match plan.select() {
                Select::After(since) => since,
                // Deletions stay until an archive has them, and as long as the window is at least.
                _ => state.window_start.min(state.archives.sealed).unwrap_or(Tick::at(Time::MIN)),
            };
            let (begun, mut others) = RestOfView::begin(&reader, Select::Tombstones(since)).await?;
            deleted = begun.items;
            while let Some(items) = others.next().await? {
                deleted.extend(items);
            }
        }
        if request.has_whole_list(state) {
            // A changed outline is sent with all outlines that may contain it: alone it would seem to have moved to the
            // root.
            let whole = reader.whole_view().await?.ok_or_else(Problem::unread_feed)?;
            view.items = whole.items;
            rest.remaining = RemainingItems::default();
        }
        if !deleted.is_empty() {
            let ledger = reader.snapshot().await?.ok_or_else(Problem::unread_feed)?;
            let borne = borne_ids(ledger).await?;
            deleted.retain(|item| !borne.contains(&item.published_id));
        }
        Ok(ReadView { plan, view, rest, deleted })
    }
}

/// Where a view stands in its feed's history. The reader view leads to the newest archive. The complete view of a feed
/// that is complete says so, unless it has tombstones, which a client would take for entries (READINGS 3, row 7).
fn history_place(
    record: &ServedFeed,
    kind: ViewKind,
    form: DocumentForm,
    state: &FeedState,
) -> HistoryPlace {
    let newest = state.archives.newest.as_ref().filter(|_| kind == ViewKind::Reader);
    let says_all = record.options.complete || state.says_complete;
    HistoryPlace {
        forms: record.site.config.publish.history_links,
        previous: newest.map(|id| record.site.archive(&record.name, id, form)),
        complete: kind == ViewKind::Complete && says_all && state.tombstones == 0,
        ..HistoryPlace::default()
    }
}

/// What a view shows.
pub(super) struct ReadView {
    pub(super) plan: ReadPlan,
    /// Its items, or the first of them.
    pub(super) view: View,
    /// The others.
    pub(super) rest: RestOfView,
    /// Deletions that are told beside them.
    pub(super) deleted: Vec<Item>,
}

/// The published ids of the items that live. An id that is said to be deleted takes the entry that
/// bears it out of a reader (RFC 6721 section 3): none of these is said to be.
pub(super) async fn borne_ids(ledger: Snapshot) -> Result<HashSet<String>, Problem> {
    // On a blocking thread: the whole ledger is read and freed.
    make_on_thread("this document", move || {
        let living = ledger.known.into_iter().filter(|known| !known.is_deleted());
        Ok(living.map(|known| known.published_id).collect())
    })
    .await
}
