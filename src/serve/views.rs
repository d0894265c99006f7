//! The views of feeds: what they are made of, and how they are read and written.

use super::address::DocumentForm;
use super::admission::{Work, WorkKind};
use super::audience::ServedFeed;
use super::client::Client;
use super::delta::Point;
use super::documents::{DocumentKey, DocumentKind, NoDocument};
use super::query::ReadPlan;
use super::rendition::{Rendition, RestOfView, UnwrittenDocument};
use super::shared_work::WorkRequest;
use super::{AppState, feeds};

use std::collections::HashSet;
use std::sync::Arc;
use tidegate_core::model::{Deletion, FeedState, Format, Item, Revision, Tick, Time};
use tidegate_format::render::{Container, Dialect, HistoryPlace, ViewKind};
use tidegate_store::{PinnedFeed, RemainingItems, Select, StoreError, View};

/// How often a document is begun whose feed another gateway changes meanwhile.
const BUILDS: usize = 4;

/// What was asked of a view, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ViewRequest {
    /// The view.
    pub(super) kind: ViewKind,
    pub(super) dialect: Dialect,
    /// The container, where one was asked for.
    pub(super) container: Option<Container>,
    /// `?since=`.
    pub(super) seen: Option<Tick>,
}

impl ViewRequest {
    /// The form of the document, of a feed that is in this state.
    pub(super) fn form(&self, state: &FeedState) -> DocumentForm {
        let form = DocumentForm { dialect: self.dialect, container: self.container };
        form.within(state.format)
    }
}

/// The key of a view, or of a delta that begins with `base`.
pub(super) fn view_key(
    record: &ServedFeed,
    wish: ViewRequest,
    plan: ReadPlan,
    state: &FeedState,
    base: Option<Point>,
) -> DocumentKey {
    // Where the window starts follows from the revision, which stands beside the key: so what is made of a later one
    // takes the place of what was made before.
    let plan = match plan {
        ReadPlan::Window { since } if since == state.window_start => {
            ReadPlan::Window { since: None }
        }
        other => other,
    };
    DocumentKey {
        audience: record.site.key(),
        feed: record.name.clone(),
        kind: DocumentKind::View {
            upstream: record.shown(),
            plan,
            form: wish.form(state),
            is_complete: record.options.complete,
            base,
        },
    }
}

impl AppState {
    /// The rendition of a view as the feed now stands; on a hit nothing is read from the store but the state that it has
    /// in memory, so that where the store fails, what was made of the same revision is served.
    pub(super) async fn rendition(
        self: &Arc<Self>,
        record: &ServedFeed,
        wish: ViewRequest,
        client: Client,
    ) -> Result<Arc<Rendition>, Arc<NoDocument>> {
        let state = self.store.state(&record.name).await.map_err(NoDocument::from)?;
        let state = state.ok_or_else(NoDocument::yet)?;
        let plan = plan(wish, &state)?;
        let usual = ReadPlan::new(wish.kind, None, &state).is_ok_and(|usual| usual == plan);
        let key = view_key(record, wish, plan, &state, None);
        let ask = self.view_work(record, wish, &state, client, usual);
        let make = |room: Arc<Self>, record| async move { room.build_view(&record, wish).await };
        self.encoded(record, (key, Some(state.revision)), ask, make).await
    }

    /// A document in its encodings, which is kept or made.
    pub(super) async fn encoded<F>(
        self: &Arc<Self>,
        record: &ServedFeed,
        (key, revision): (DocumentKey, Option<Revision>),
        ask: WorkRequest,
        make: impl FnOnce(Arc<Self>, ServedFeed) -> F,
    ) -> Result<Arc<Rendition>, Arc<NoDocument>>
    where
        F: Future<Output = Result<Rendition, NoDocument>> + Send + 'static,
    {
        let make = || make(Arc::clone(self), record.clone());
        let made = self.documents.get(key, revision, ask, make).await?;
        made.encoded().cloned().ok_or_else(|| Arc::new(NoDocument::yet()))
    }

    /// What making a view takes: the items that it shows, and where something is told that no item says,
    /// the ledger. `whole`: it is made of all that the view has.
    pub(super) fn view_work(
        &self,
        record: &ServedFeed,
        wish: ViewRequest,
        state: &FeedState,
        client: Client,
        whole: bool,
    ) -> WorkRequest {
        let all = u64::from(state.living) + u64::from(state.tombstones);
        let items = match wish.kind {
            ViewKind::Reader => u64::from(state.current),
            ViewKind::Sync | ViewKind::Complete => all,
        };
        let work = Work::new(&record.name, WorkKind::View(wish.kind));
        let shown = self.admission.cost_of(&work, items);
        let is_read =
            is_told_whole(wish, state) || (state.tombstones > 0 && tells_deletions(wish, state));
        let ledger = match is_read {
            true => self.admission.cost_of(&Work::new(&record.name, WorkKind::Ledger), all),
            false => 0,
        };
        WorkRequest { client, cost: shown.saturating_add(ledger), work, tells: whole }
    }

    async fn build_view(
        &self,
        record: &ServedFeed,
        wish: ViewRequest,
    ) -> Result<Rendition, NoDocument> {
        // Another gateway may change the feed while it is read, which begins anew then.
        for _ in 1..BUILDS {
            match self.build_view_once(record, wish).await {
                Err(NoDocument::Store(StoreError::Outdated)) => {}
                done => return done,
            }
        }
        self.build_view_once(record, wish).await
    }

    async fn build_view_once(
        &self,
        record: &ServedFeed,
        wish: ViewRequest,
    ) -> Result<Rendition, NoDocument> {
        let read = self.read_view(record, wish).await?;
        let state = &read.view.state;
        // Deltas begin with what anybody gets, not with an answer to `?since=`.
        let usual = ReadPlan::new(wish.kind, None, state).is_ok_and(|usual| usual == read.plan);
        let scope = if usual { self.tag_scope(record, wish, state) } else { None };
        let token = scope.zip(Point::of(state)).map(|(scope, point)| point.token(scope));
        let (bounds, expires) =
            (read.plan.bounds(state), read.plan.expires(&read.view.items, self.config.window));
        let document = UnwrittenDocument {
            rest: Some(read.rest),
            bounds,
            expires,
            token,
            ..self.unwritten(record, wish, read.view, &read.deleted)
        };
        self.write_document(document).await
    }

    /// Writes and packs a document.
    pub(super) async fn write_document(
        &self,
        document: UnwrittenDocument,
    ) -> Result<Rendition, NoDocument> {
        let (renderer, spool) = &self.writing;
        document.made((*renderer, spool)).await
    }

    /// A document of what was read, without what `sx:sharing` says of it.
    pub(super) fn unwritten(
        &self,
        record: &ServedFeed,
        wish: ViewRequest,
        view: View,
        deleted: &[Item],
    ) -> UnwrittenDocument {
        let form = wish.form(&view.state);
        let history = self.history_place(record, wish, &view);
        let addresses = record.site.addresses(record, form, view.skeleton.link.as_deref());
        UnwrittenDocument {
            head: feeds::head(
                Some(wish.kind),
                form.container(view.state.format),
                (&addresses, &history),
                record.site.sup(&record.name).as_deref(),
            ),
            kind: wish.kind,
            form,
            addresses,
            history,
            deleted: deleted.iter().map(Deletion::from).collect(),
            bounds: (None, None),
            expires: None,
            window: Some(self.config.window),
            shown: view.state.updated_at,
            token: None,
            rest: None,
            view,
        }
    }

    /// Where a view stands in its feed's history. The reader view leads to the newest archive. The
    /// complete view of a feed that is complete says so, unless it has tombstones, which a client
    /// would take for entries (READINGS 3, row 7).
    fn history_place(&self, record: &ServedFeed, wish: ViewRequest, view: &View) -> HistoryPlace {
        let mut place = HistoryPlace { forms: record.site.history, ..HistoryPlace::default() };
        let newest = view.state.archives.newest.as_ref();
        let says_all = record.options.complete || view.state.says_complete;
        match wish.kind {
            ViewKind::Reader => {
                let at = |id| record.site.archive(&record.name, id, wish.form(&view.state));
                place.previous = newest.map(at);
            }
            ViewKind::Complete => {
                place.complete = says_all && view.state.tombstones == 0;
            }
            ViewKind::Sync => {}
        }
        place
    }

    /// Reads what the view shows, all at one revision. In Atom deletions stand as `at:deleted-entry` in
    /// the reader view and, beside the tombstones, in the sync view.
    pub(super) async fn read_view(
        &self,
        record: &ServedFeed,
        wish: ViewRequest,
    ) -> Result<ReadView, NoDocument> {
        let reader = self.store.pin(&record.name).await?.ok_or_else(NoDocument::yet)?;
        let plan = plan(wish, reader.state())?;
        let begun = reader.begin_view(plan.select()).await?;
        let (mut view, remaining) = begun.ok_or_else(NoDocument::yet)?;
        let mut rest = RestOfView { reader: reader.clone(), remaining };
        // What the document says of itself follows from the first item: there is one, if any.
        while view.items.is_empty()
            && let Some(next) = rest.next().await?
        {
            view.items = next;
        }
        let state = &view.state;
        let is_deleted = |item: &Item| item.shared.winner.deleted;
        let mut deleted = Vec::new();
        if tells_deletions(wish, state) {
            // Deletions stay until an archive has them, and as long as the window is at least.
            let since = state.window_start.min(state.archives.sealed);
            let (first, mut others) = match wish.kind {
                ViewKind::Sync => (view.items.clone(), rest.clone()),
                ViewKind::Reader | ViewKind::Complete => {
                    let since = since.unwrap_or(Tick::at(Time::MIN));
                    let begun = reader.begin_view(Select::Tombstones(since)).await?;
                    let (changed, remaining) = begun.ok_or_else(NoDocument::yet)?;
                    (changed.items, RestOfView { reader: reader.clone(), remaining })
                }
            };
            let mut next = Some(first);
            while let Some(items) = next {
                deleted.extend(items.into_iter().filter(is_deleted));
                next = others.next().await?;
            }
        }
        if is_told_whole(wish, state) {
            // What changed is told with all that it may stand in: an outline on its own would seem to have moved to the
            // root.
            let whole = reader.whole_view().await?.ok_or_else(NoDocument::yet)?;
            view.items = whole.items;
            rest.remaining = RemainingItems::default();
        }
        if !deleted.is_empty() {
            deleted = publishable_tombstones(&reader, deleted).await?;
        }
        Ok(ReadView { plan, view, rest, deleted })
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

/// Which of these tombstones are said in RFC 6721. An id that is said to be deleted takes the entry
/// that bears it out of a reader (section 3): one that an item that lives bears as well is not said.
async fn publishable_tombstones(
    reader: &PinnedFeed,
    mut deleted: Vec<Item>,
) -> Result<Vec<Item>, NoDocument> {
    let ledger = reader.snapshot().await?.ok_or_else(NoDocument::yet)?;
    // All of a ledger is looked at, and let go of, where that keeps nobody waiting.
    let looking = tokio::task::spawn_blocking(move || {
        let living = ledger.known.iter().filter(|known| !known.is_deleted());
        let borne: HashSet<&str> = living.map(|known| known.published_id.as_str()).collect();
        deleted.retain(|item| !borne.contains(item.published_id.as_str()));
        deleted
    });
    Ok(looking.await.map_err(|_| StoreError::Closed)?)
}

/// Whether a view tells deletions as RFC 6721 does.
fn tells_deletions(wish: ViewRequest, state: &FeedState) -> bool {
    wish.kind != ViewKind::Complete
        && wish.form(state).container(state.format) == Container::Atom
        && state.window_start.is_some()
}

/// Whether a view has all of a list, in its order, whatever the container is: that order is in no version
/// of its outlines, so that who reads it takes that of the document. Of other feeds what changed stands in
/// nothing.
fn is_told_whole(wish: ViewRequest, state: &FeedState) -> bool {
    wish.kind != ViewKind::Reader && state.format == Format::Opml
}

pub(super) fn plan(wish: ViewRequest, state: &FeedState) -> Result<ReadPlan, NoDocument> {
    ReadPlan::new(wish.kind, wish.seen, state).map_err(NoDocument::Told)
}
