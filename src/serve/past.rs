//! What a view said at some time: `?as-of=` on the reader, the sync and the complete view.
//!
//! The answer is marked as one of the past: it is an archive document to feed readers (`fh:archive`,
//! its `self` is its own address, `current` leads to the feed as it is) and a memento to everybody
//! else (RFC 7089). All times between two changes have one and the same document of the reader and
//! the complete view. That of the sync view changes also where something left its window.
//!
//! What the sync view showed at some time, of everything that there was then. Pure.

use super::AppState;
use super::admission::{Work, WorkKind};
use super::audience::ServedFeed;
use super::client::Client;
use super::conditional::{Representation, add};
use super::documents::{DocumentKey, DocumentKind, NoDocument};
use super::plan::ReadPlan;
use super::problem::Problem;
use super::rendition::Rendition;
use super::rendition_cache::{RenditionCache, ViewRequest};
use super::shared_work::WorkRequest;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{Deletion, Family, FeedState, Format, Item, Tick, Time};
use tidegate_format::render::{ArchiveDocument, Container, HistoryPlace, LinkForms, ViewKind};
use tidegate_store::{Past, PastSelect, Select, View};

/// Until a time is so far back, a change that was seen before it may still be on its way into the
/// store.
const SETTLED: Duration = Duration::from_secs(300);
/// The past changes by redaction only, so it may be kept for a day, as archives may.
const SETTLED_FRESH: HeaderValue = HeaderValue::from_static("public, max-age=86400");
const UNSETTLED_FRESH: HeaderValue = HeaderValue::from_static("public, no-cache");
/// RFC 7089 section 2.1.1.
const MEMENTO_DATETIME: HeaderName = HeaderName::from_static("memento-datetime");

impl RenditionCache {
    async fn memento(
        self: &Arc<Self>,
        record: &ServedFeed,
        (wish, client): (ViewRequest, Client),
        at: Time,
    ) -> Result<Arc<Rendition>, Arc<NoDocument>> {
        let state = self.store.state(&record.name).await.map_err(NoDocument::from)?;
        let state = state.ok_or_else(NoDocument::yet)?;
        let kind = DocumentKind::Past { upstream: record.shown(), request: wish, at };
        let (audience, feed) = (record.site.key(), record.name.clone());
        let key = DocumentKey { audience, feed, revision: Some(state.revision), kind };
        let is_list = state.format == Format::Opml;
        let make = move |cache: Arc<Self>, record: ServedFeed| async move {
            cache.build_memento(&record, wish, at, is_list).await
        };
        // The past may have had any number of items; as many as there are now is the best guess.
        let items = u64::from(state.living) + u64::from(state.tombstones);
        let work = Work::new(&record.name, WorkKind::Past(wish.kind));
        let ask = WorkRequest { tells: true, ..self.admission.request(client, work, items) };
        self.encoded(record, key, ask, make).await
    }

    async fn build_memento(
        &self,
        record: &ServedFeed,
        wish: ViewRequest,
        at: Time,
        is_list: bool,
    ) -> Result<Rendition, NoDocument> {
        let select = match wish.kind {
            ViewKind::Sync if !is_list => PastSelect::Since(Tick::at(at.minus(self.window))),
            ViewKind::Complete | ViewKind::Sync => PastSelect::All,
            ViewKind::Reader => PastSelect::Current,
        };
        let view = match self.store.past(&record.name, select, at).await? {
            Some(Past::Then(view)) => *view,
            Some(Past::Unknown { back_to }) => return Err(NoDocument::Told(unknown(at, back_to))),
            None => return Err(NoDocument::Told(unknown(at, None))),
        };
        let container = wish.form(&view.state).container(view.state.format);
        let PastWindow { view, deleted, since, until } = match wish.kind {
            ViewKind::Sync => {
                // A list is told whole, so that everything stands where it stood.
                let whole = (container == Container::Opml).then(|| view.items.clone());
                let mut shown =
                    PastWindow::at(view, at, self.window, wish.seen).map_err(NoDocument::Told)?;
                shown.view.items = whole.unwrap_or(shown.view.items);
                shown
            }
            ViewKind::Reader | ViewKind::Complete => PastWindow::all(view),
        };
        let mut document = self.document(record, wish, view, &[]);
        (document.deleted, document.bounds) = (deleted, (since, until));
        // The address says when the document came to be, so that all times at which it was in force
        // have the same bytes.
        let from = if wish.kind == ViewKind::Sync { at } else { document.shown };
        let own = record.site.past(&record.name, wish.kind, document.form, from, wish.seen);
        document.history = HistoryPlace {
            forms: LinkForms::default(),
            archive: Some(ArchiveDocument { own: own.clone(), next: None }),
            ..HistoryPlace::default()
        };
        let mut head = HeaderMap::new();
        head.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        add(&mut head, MEMENTO_DATETIME, &document.shown.rfc822());
        add(&mut head, header::CONTENT_LOCATION, &own);
        add(&mut head, header::LINK, &format!("<{own}>; rel=\"self\""));
        let current = record.site.view(&record.name, wish.kind, document.form);
        let current = format!("<{current}>; rel=\"original latest-version current\"");
        add(&mut head, header::LINK, &current);
        document.head = head;
        self.write(document).await
    }
}

fn unknown(at: Time, back_to: Option<Time>) -> Problem {
    Problem::not_found(match back_to {
        Some(back_to) => format!(
            "what this feed said at {at} is not kept, or it said nothing yet; it can be read back \
             to {back_to}"
        ),
        None => format!("what this feed said at {at} is not kept"),
    })
}

/// The answer to `?as-of=`.
pub(super) async fn answer(
    room: &AppState,
    record: &ServedFeed,
    (wish, client): (ViewRequest, Client),
    (at, vary): (Time, HeaderValue),
    asked: &HeaderMap,
) -> Result<Response, Problem> {
    let now = room.clock.now();
    if at > now {
        let said = format!("as-of, {at}, is in the future: it is {now}");
        return Err(Problem::parameter("as-of", said));
    }
    let rendition = room.shelf.memento(record, (wish, client), at).await?;
    let mut represented = rendition.represented(asked);
    let settled = at < now.minus(SETTLED);
    let fresh = if settled { SETTLED_FRESH } else { UNSETTLED_FRESH };
    represented.headers.insert(header::CACHE_CONTROL, fresh);
    represented.headers.insert(header::VARY, vary);
    // An earlier date says nothing here: after a redaction the same past has other bytes.
    let modified = Some(rendition.shown);
    Ok(Representation { modified, ..represented }.answer(asked))
}

/// What a document of the past shows.
#[derive(Debug)]
struct PastWindow {
    /// The items, and all around them.
    view: View,
    /// What is said to be deleted.
    deleted: Vec<Deletion>,
    /// `sx:sharing/@since`.
    since: Option<Tick>,
    /// `sx:sharing/@until`.
    until: Option<Tick>,
}

impl PastWindow {
    /// All that was read.
    const fn all(view: View) -> Self {
        Self { view, deleted: Vec::new(), since: None, until: None }
    }

    /// The window that ended at `at`, or what came in it after the tick `seen`. `all`: every item and
    /// tombstone of then.
    ///
    /// As in the present, the window starts at the greatest tick that has left it (SSE 1.0 section
    /// 4.2.4).
    fn at(mut all: View, at: Time, window: Duration, seen: Option<Tick>) -> Result<Self, Problem> {
        let cutoff = Tick::at(at.minus(window));
        let left = all.items.iter().map(|item| item.tick).filter(|tick| *tick < cutoff).max();
        let window_start = left.max(all.state.complete_start.filter(|_| all.state.tick.is_some()));
        let then = FeedState { window_start, ..all.state.clone() };
        let plan = ReadPlan::new(ViewKind::Sync, seen, &then)?;
        let (since, until) = plan.bounds(&then);
        let Select::After(after) = plan.select() else { return Ok(Self::all(all)) };
        let living = all.items.iter().filter(|item| !item.shared.winner.deleted);
        let borne: HashSet<String> = living.map(|item| item.published_id.clone()).collect();
        all.items.retain(|item| item.tick > after);
        let is_said = |item: &&Item| {
            item.shared.winner.deleted
                && then.format.family() == Family::Atom
                && !borne.contains(&item.published_id)
        };
        let deleted = all.items.iter().filter(is_said).map(Deletion::from).collect();
        Ok(Self { view: all, deleted, since, until })
    }
}
