//! Archive documents: `GET /feeds/NAME/archive/ID` (Feed History draft-05, RFC 5005).
//!
//! A rendition is a function of what was sealed, of the archive after it and of the gateway's own
//! addresses. It is kept under exactly that, so that a commit to the feed leaves it alone.

use super::SharedState;
use super::address::{DocumentForm, Site};
use super::admission::{Work, WorkKind};
use super::audience::{Audience, ServedFeed};
use super::client::Client;
use super::documents::{DocumentKey, DocumentKind, NoDocument};
use super::feeds::{ContainerParams, Resource, answer, head, unreadable};
use super::openapi::{ArchivedDocument, Gone, NotFound, Unchanged};
use super::problem::Problem;
use super::query::ViewQuery;
use super::rendition::{Rendition, UnwrittenDocument};
use super::rendition_cache::RenditionCache;
use super::shared_work::WorkRequest;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use std::sync::Arc;
use tidegate_core::model::{Archive, ArchiveId, ArchivePlace, FeedState, ShownAddress, Time};
use tidegate_format::render::{Addresses, ArchiveDocument, HistoryPlace, ViewKind};
use tidegate_store::View;

/// How many times the size that it has on disk an archive takes in memory while it is rendered.
const TIMES_ON_DISK: u64 = 8;

impl RenditionCache {
    async fn archive(
        self: &Arc<Self>,
        record: &ServedFeed,
        place: &ArchivePlace,
        form: DocumentForm,
        client: Client,
    ) -> Result<Arc<Rendition>, Problem> {
        let secret = record.options.secret;
        let kind = DocumentKind::Archive { place: Box::new(place.clone()), form, secret };
        let (audience, feed) = (record.site.key(), record.name.clone());
        // What was sealed stays as it is whatever comes to the feed.
        let key = DocumentKey { audience, feed, revision: None, kind };
        let read = place.clone();
        let make = move |cache: Arc<Self>, record: ServedFeed| async move {
            let archive = cache.store.archive(&record.name, &read.note.id).await?;
            let archive = archive.ok_or_else(|| NoDocument::Told(dropped()))?;
            cache.write(document(&record.site, &record, &read, archive, form)).await
        };
        // Its size on disk, with what is read and what is written of it.
        let cost = place.note.bytes.saturating_mul(TIMES_ON_DISK);
        let work = Work::new(&record.name, WorkKind::Archive);
        let ask = WorkRequest { client, work, cost, tells: false };
        Ok(self.encoded(record, key, ask, make).await?)
    }
}

/// When the document last changed: when it was sealed, when the next archive came to be linked, or
/// when text was taken out of it.
fn shown(place: &ArchivePlace) -> Time {
    let next = place.next.as_ref().map(|(_, sealed)| *sealed);
    place.note.sealed.max(next.unwrap_or(Time::MIN)).max(place.note.redacted.unwrap_or(Time::MIN))
}

/// An archive document: what it has, what it names, and where it stands.
fn document(
    site: &Site,
    record: &ServedFeed,
    place: &ArchivePlace,
    archive: Archive,
    form: DocumentForm,
) -> UnwrittenDocument {
    let Archive { skeleton, items, deleted, upstream, .. } = archive;
    let form = form.within(skeleton.format);
    let at = |id: &ArchiveId| site.archive(&record.name, id, form);
    // The upstream's address as it was: where it moved to later changes nothing here.
    let address = ShownAddress::new(&upstream, record.options.secret);
    let site_page = skeleton.link.as_deref();
    let addresses = Addresses {
        upstream: address.base(site_page),
        via: address.link().map(str::to_owned),
        ..site.addresses(record, form, site_page)
    };
    let history = HistoryPlace {
        forms: site.history,
        complete: false,
        previous: place.note.previous.as_ref().map(at),
        archive: Some(ArchiveDocument {
            own: at(&place.note.id),
            next: place.next.as_ref().map(|(id, _)| at(id)),
        }),
    };
    let state = FeedState::untouched(skeleton.format, place.note.sealed);
    let container = form.container(skeleton.format);
    let head = head(None, container, (&addresses, &history), site.sup(&record.name).as_deref());
    UnwrittenDocument {
        head,
        kind: ViewKind::Reader,
        form,
        view: View { state, skeleton, items },
        rest: None,
        deleted,
        addresses,
        history,
        bounds: (None, None),
        expires: None,
        window: None,
        shown: shown(place),
        token: None,
    }
}

/// A sealed part of the feed's history (Feed History).
#[utoipa::path(
    get,
    path = "/feeds/{name}/archive/{id}",
    operation_id = "archive",
    params(ContainerParams),
    responses(ArchivedDocument, Unchanged, NotFound, Gone)
)]
pub(super) async fn archive(
    State(room): State<SharedState>,
    (audience, client): (Audience, Client),
    path: Result<Path<(String, String)>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (name, id) = path.map_err(unreadable)?.0;
    let record = room.directory.served(&name, &audience).await?;
    let unknown =
        || Problem::not_found(format!("the feed {} has no archive of that id", record.name));
    let id = ArchiveId::new(&id).map_err(|_| unknown())?;
    let asked = ViewQuery::read(ViewKind::Reader, query.as_deref().unwrap_or_default())?;
    if asked.as_of.is_some() {
        let said = "an archive is a fixed document that says the same at all times; as-of is for \
                    the reader, the sync and the complete view";
        return Err(Problem::parameter("as-of", said));
    }
    let dialect = room.site.dialect(asked.dialect, asked.container);
    let form = DocumentForm { dialect, container: asked.container };
    let place = room.store.archive_place(&record.name, &id).await?.ok_or_else(unknown)?;
    if place.note.dropped {
        return Err(dropped());
    }
    let rendition = room.shelf.archive(&record, &place, form, client).await?;
    Ok(answer(&room, Resource::Archive(&place), &rendition, &headers))
}

fn dropped() -> Problem {
    let said =
        "this archive is not kept any more; what lives of it is in later ones, or in the feed";
    Problem::new(StatusCode::GONE, said)
}
