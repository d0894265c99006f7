//! `POST /feeds/NAME/conflicts`: what a person chose on the page.
//!
//! The admin token comes in the body, over the page's own origin, and is kept nowhere. A form that
//! another site sends is refused before anything of it is read.

use super::page;
use crate::model::{Item, SyncId};
use crate::parse::Amendment;
use crate::record::local::{Act, CheckedEntry, EntryError, Resolution};
use crate::serve::SharedState;
use crate::serve::edit::{self, ENTRY_LIMIT};
use crate::serve::feeds::{NameInPath, unreadable};
use crate::serve::hub::is_form;
use crate::serve::plain;
use crate::serve::problem::Problem;
use crate::xml::address::percent_encoded;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use url::Url;

/// From where a request comes, as the browser says (Fetch Metadata).
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What the form says.
#[derive(Default)]
struct ConflictForm {
    token: String,
    item: String,
    etag: String,
    keep: String,
    title: String,
    content: String,
    is_html: bool,
}

impl ConflictForm {
    fn read(body: &[u8]) -> Self {
        let mut form = Self::default();
        for (key, value) in url::form_urlencoded::parse(body) {
            match &*key {
                "token" => form.token = value.trim().to_owned(),
                "item" => form.item = value.into_owned(),
                "etag" => form.etag = value.into_owned(),
                "keep" => form.keep = value.into_owned(),
                "title" => form.title = value.into_owned(),
                "content" => form.content = value.into_owned(),
                "html" => form.is_html = value == "yes",
                _ => {}
            }
        }
        form
    }
}

/// `POST /feeds/NAME/conflicts`.
pub(in crate::serve) async fn resolve(
    State(room): State<SharedState>,
    name: NameInPath,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let name = name.map_err(unreadable)?.0;
    let record = room.directory.served(&name).await?;
    match chosen(&room, &record.name, &headers, body).await {
        Ok(id) => {
            let id = percent_encoded(id.as_str());
            let to = format!("/feeds/{}/conflicts?resolved={id}", record.name);
            let to = HeaderValue::from_str(&to)
                .map_err(|_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "no way back"))?;
            Ok((StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response())
        }
        Err(problem) => {
            let content = page::refused(record.name.as_str(), problem.detail());
            let mut response = super::page("Not resolved", &content);
            *response.status_mut() = problem.status();
            Ok(response)
        }
    }
}

async fn chosen(
    room: &SharedState,
    feed: &crate::model::FeedName,
    headers: &HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<SyncId, Problem> {
    if !is_ours(headers, &room.site.at("")) {
        let said = "the form was not sent from a page of this gateway, so it is not obeyed";
        return Err(Problem::new(StatusCode::FORBIDDEN, said));
    }
    if !is_form(headers) {
        let said = "the body is no form";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, said));
    }
    let form = ConflictForm::read(&edit::whole(body, ENTRY_LIMIT)?);
    if !room.admin_token.is(&form.token) {
        let said = "the admin token is not that of this gateway";
        return Err(Problem::new(StatusCode::FORBIDDEN, said));
    }
    let unknown = || Problem::not_found("there is no item of that sync id");
    let id = SyncId::new(&form.item).map_err(|_| unknown())?;
    let keep = match form.keep.as_str() {
        "winner" => Resolution::Winner,
        "new" => {
            let item = room.store.item(feed, &id).await?.ok_or_else(unknown)?;
            if plain::is_outline(&item) {
                let said = "an outline says more than a title and a text, which would be lost";
                return Err(Problem::parameter("keep", said));
            }
            let written = written(&form, &item);
            Resolution::New(written.map_err(|error| edit::unwritten(&error))?)
        }
        number => match number.parse() {
            Ok(number) => Resolution::Conflict(number),
            Err(_) => return Err(Problem::parameter("keep", "nothing was chosen")),
        },
    };
    let act = Act::Resolve { id: id.clone(), keep, conflicts: None, expected: Some(form.etag) };
    edit::done(room, feed, act).await?;
    Ok(id)
}

/// What a person wrote over the version that the form began with: what was not edited stays as it is.
fn written(form: &ConflictForm, item: &Item) -> Result<CheckedEntry, EntryError> {
    let before = &plain::begins(item).unwrap_or(&item.shared.winner).data;
    let shown = page::source(before);
    let lines = |text: &str| text.trim().replace("\r\n", "\n");
    let is_same = lines(&form.content) == lines(&shown.text) && form.is_html == shown.is_html;
    let text = (!is_same).then(|| (form.content.replace("\r\n", "\n"), form.is_html));
    let title = form.title.trim();
    let title = (title != before.card.title.trim()).then(|| title.to_owned());
    CheckedEntry::amended(before, Amendment { title, text, ..Amendment::default() })
}

/// Whether a form was sent from a page of this origin. A browser says so, and no page of another
/// origin can make it say otherwise.
fn is_ours(headers: &HeaderMap, base: &str) -> bool {
    if let Some(site) = headers.get(FETCH_SITE) {
        return site == "same-origin";
    }
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(origin) = text(header::ORIGIN).and_then(|origin| Url::parse(origin).ok()) else {
        return false;
    };
    let is_base = Url::parse(base).is_ok_and(|base| base.origin() == origin.origin());
    let named = text(header::HOST)
        .and_then(|host| Url::parse(&format!("{}://{host}", origin.scheme())).ok());
    is_base || named.is_some_and(|named| named.origin() == origin.origin())
}
