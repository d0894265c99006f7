//! Archive documents: `GET /feeds/NAME/archive/ID` (Feed History draft-05, RFC 5005).
//!
//! A rendition is a function of what was sealed, of the archive after it and of the gateway's own
//! addresses. It is kept under exactly that, so that a commit to the feed leaves it alone.

use super::SharedState;
use super::address::{DocumentForm, Site};
use super::admission::{Admission, Overloaded, Work, WorkKind};
use super::client::Client;
use super::feeds::{Resource, answer, unreadable};
use super::metrics::Metrics;
use super::problem::{Problem, RETRY_SOON};
use super::query::ViewQuery;
use super::rendition::{About, Rendition, made};
use super::rendition_cache::Renderer;
use super::single_flight::{SingleFlightCache, WorkRequest};
use crate::model::{
    Archive, ArchiveId, ArchivePlace, FeedRecord, FeedState, Revision, ShownAddress, Time,
};
use crate::render::{Addresses, ArchiveDocument, HistoryPlace, Page, ViewKind};
use crate::store::{Store, StoreError};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use std::sync::Arc;

/// Bytes of renditions of archives kept, all feeds together.
const ARCHIVE_BYTES: u64 = 16 * 1024 * 1024;
/// How many times the size that it has on disk an archive takes in memory while it is rendered.
const TIMES_ON_DISK: u64 = 8;

/// What a rendition of an archive is a function of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ArchiveKey {
    place: ArchivePlace,
    form: DocumentForm,
    /// What the operator says of the upstream's address.
    secret: Option<bool>,
}

/// Why there is no rendition.
#[derive(Debug, thiserror::Error)]
enum NoArchive {
    #[error("it was dropped just now")]
    Dropped,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Overloaded(#[from] Overloaded),
    #[error("rendering failed: {0}")]
    Render(String),
}

/// The cache, and what it takes to fill it.
pub(super) struct Archives {
    store: Arc<dyn Store>,
    site: Site,
    renderer: Renderer,
    renditions: SingleFlightCache<ArchiveKey, Rendition, NoArchive>,
}

impl Archives {
    /// Nothing rendered yet.
    pub(super) fn new(
        store: Arc<dyn Store>,
        site: Site,
        renderer: Renderer,
        admission: Arc<Admission>,
        metrics: Metrics,
    ) -> Arc<Self> {
        let renditions =
            SingleFlightCache::new(ARCHIVE_BYTES, Rendition::weight, admission, metrics);
        Arc::new(Self { store, site, renderer, renditions })
    }

    async fn rendition(
        self: &Arc<Self>,
        record: &FeedRecord,
        place: &ArchivePlace,
        form: DocumentForm,
        client: Client,
    ) -> Result<Arc<Rendition>, Arc<NoArchive>> {
        let key = ArchiveKey { place: place.clone(), form, secret: record.options.secret };
        let make = || {
            let (archives, record, place) = (Arc::clone(self), record.clone(), place.clone());
            async move {
                let archive = archives.store.archive(&record.name, &place.note.id).await?;
                let archive = archive.ok_or(NoArchive::Dropped)?;
                archives.build(&record, place, form, archive).await
            }
        };
        // Its size on disk, with what is read and what is written of it.
        let cost = place.note.bytes.saturating_mul(TIMES_ON_DISK);
        let work = Work::new(&record.name, WorkKind::Archive);
        self.renditions.get(key, WorkRequest { client, work, cost, tells: false }, make).await
    }

    async fn build(
        &self,
        record: &FeedRecord,
        place: ArchivePlace,
        form: DocumentForm,
        archive: Archive,
    ) -> Result<Rendition, NoArchive> {
        let format = archive.skeleton.format;
        let form = form.within(format);
        let (addresses, history) = document(&self.site, record, &place, &archive, form);
        let container = form.container(format);
        let renderer = self.renderer;
        let make = move || {
            let state = FeedState::untouched(archive.skeleton.format, place.note.sealed);
            let page = Page {
                read_collection: crate::parse::collection::first_entry,
                kind: ViewKind::Reader,
                container,
                dialect: form.dialect,
                addresses: &addresses,
                state: &state,
                skeleton: &archive.skeleton,
                items: &archive.items,
                deleted: &archive.deleted,
                history: &history,
                since: None,
                until: None,
                expires: None,
                window: None,
            };
            let about = About {
                media_type: container.media_type(),
                shown: shown(&place),
                revision: Revision::default(),
                token: None,
            };
            let links = history.links(&addresses.reader);
            Rendition::build(renderer(&page), about).map(|made| made.of_feed(form, links))
        };
        made(make).await.map_err(NoArchive::Render)
    }
}

/// When the document last changed: when it was sealed, when the next archive came to be linked, or
/// when text was taken out of it.
fn shown(place: &ArchivePlace) -> Time {
    let next = place.next.as_ref().map(|(_, sealed)| *sealed);
    place.note.sealed.max(next.unwrap_or(Time::MIN)).max(place.note.redacted.unwrap_or(Time::MIN))
}

/// What an archive document names, and where it stands.
fn document(
    site: &Site,
    record: &FeedRecord,
    place: &ArchivePlace,
    archive: &Archive,
    form: DocumentForm,
) -> (Addresses, HistoryPlace) {
    let at = |id: &ArchiveId| site.archive(&record.name, id, form);
    // The upstream's address as it was: where it moved to later changes nothing here.
    let site_page = archive.skeleton.link.as_deref();
    let shown = ShownAddress::new(&archive.upstream, record.options.secret);
    let via = shown.link().map(str::to_owned);
    let upstream = shown.base(site_page);
    let addresses = Addresses { upstream, via, ..site.addresses(record, form, site_page) };
    let history = HistoryPlace {
        forms: site.history(),
        complete: false,
        previous: place.note.previous.as_ref().map(at),
        archive: Some(ArchiveDocument {
            own: at(&place.note.id),
            next: place.next.as_ref().map(|(id, _)| at(id)),
        }),
    };
    (addresses, history)
}

/// `GET /feeds/NAME/archive/ID`.
pub(super) async fn archive(
    State(room): State<SharedState>,
    client: Client,
    path: Result<Path<(String, String)>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (name, id) = path.map_err(unreadable)?.0;
    let record = room.directory.served(&name).await?;
    let unknown =
        || Problem::not_found(format!("the feed {} has no archive of that id", record.name));
    let id = ArchiveId::new(&id).ok_or_else(unknown)?;
    let asked = ViewQuery::read(ViewKind::Reader, query.as_deref().unwrap_or_default())?;
    if asked.as_of.is_some() {
        let said = "an archive is a fixed document that says the same at all times; as-of is for \
                    the reader, the sync and the complete view";
        return Err(Problem::parameter("as-of", said));
    }
    let dialect = room.site.dialect(asked.dialect, asked.container);
    let form = DocumentForm { dialect, container: asked.container };
    let place = room.store.archive_place(&record.name, &id).await;
    let place = place.map_err(|error| failed(&record, &error))?.ok_or_else(unknown)?;
    if place.note.dropped {
        return Err(dropped());
    }
    let rendition = match room.archives.rendition(&record, &place, form, client).await {
        Ok(rendition) => rendition,
        Err(missing) => match *missing {
            NoArchive::Dropped => return Err(dropped()),
            NoArchive::Overloaded(why) => return Err(why.into()),
            _ => return Err(failed(&record, missing.as_ref())),
        },
    };
    Ok(answer(&room, &record, Resource::Archive(&place), &rendition, &headers))
}

fn dropped() -> Problem {
    let said =
        "this archive is not kept any more; what lives of it is in later ones, or in the feed";
    Problem::new(StatusCode::GONE, said)
}

fn failed(record: &FeedRecord, error: &(dyn std::error::Error + 'static)) -> Problem {
    tracing::error!(feed = %record.name, error, "an archive could not be answered");
    Problem::later("the gateway could not read this archive just now", RETRY_SOON)
}
