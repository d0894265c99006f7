//! Forms of pages: who may send one, and what it says.
//!
//! A form acts only where it was sent from a page of this gateway, by somebody who is signed in
//! ([`super::session`]) or who sends the admin token along.

use super::auth::demand;
use super::hub::is_form;
use super::paging::NamedChoice;
use super::{Audience, Client, Problem, Reply, SharedState, WholeBody};
use axum::extract::{FromRequest, FromRequestParts as _, Request};
use axum::response::IntoResponse;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use url::Url;

/// From where a request comes, as the browser says (Fetch Metadata).
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// The most fields that are read.
const FIELDS: usize = 64;

/// What a form that is obeyed says: it was sent from a page of this gateway, by somebody who is signed in or sends the
/// admin token.
#[derive(Debug)]
pub(super) struct SentForm(Vec<(String, String)>);

/// A form that was sent from a page of this gateway, by anybody.
pub(super) struct OwnForm(pub(super) SentForm);

/// A form that a program may send too: what comes from a browser says from which site. Below a reader's token, which no
/// other site knows, browsers do not say it, since nothing there has a referrer.
pub(super) struct ProgramForm(pub(super) SentForm);

impl SentForm {
    async fn read(request: Request, app: &SharedState) -> Result<Self, Problem> {
        if !is_form(request.headers()) {
            let detail = "the body is no form";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }
        let WholeBody(body) = WholeBody::from_request(request, app).await?;
        let fields = url::form_urlencoded::parse(&body).take(FIELDS);
        Ok(Self(fields.map(|(key, value)| (key.into_owned(), value.into_owned())).collect()))
    }

    /// The last value of a field; empty where it was not sent.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.iter().rev().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// All values of a field, in order.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Which of the buttons was pressed (`do`).
    pub(super) fn action<T: NamedChoice>(&self) -> Result<T, Problem> {
        T::find(self.get("do")).ok_or_else(|| Problem::parameter("do", "nothing was chosen"))
    }
}

impl FromRequest<SharedState> for OwnForm {
    type Rejection = Problem;

    /// One that another site sends is refused before anything of it is read.
    async fn from_request(request: Request, app: &SharedState) -> Result<Self, Problem> {
        refuse_foreign(app, request.headers())?;
        SentForm::read(request, app).await.map(Self)
    }
}

impl FromRequest<SharedState> for ProgramForm {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &SharedState) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let Ok(audience) = Audience::from_request_parts(&mut parts, app).await;
        let headers = &parts.headers;
        let is_of_browser =
            headers.contains_key(FETCH_SITE) || headers.contains_key(header::ORIGIN);
        if is_of_browser && audience.reader().is_none() {
            refuse_other(headers, !app.config.operators_apart() || !audience.may_sign_in, app)?;
        }
        SentForm::read(Request::from_parts(parts, body), app).await.map(Self)
    }
}

impl FromRequest<SharedState> for SentForm {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &SharedState) -> Result<Self, Problem> {
        let client = request.extensions().get().copied().unwrap_or(Client::Own);
        let is_signed_in = app.sessions.is_open(request.headers());
        let OwnForm(form) = OwnForm::from_request(request, app).await?;
        let token = form.get("token").trim();
        if !token.is_empty() {
            demand(app, client, token, wrong_token).await?;
        } else if !is_signed_in {
            return Err(not_signed_in());
        }
        Ok(form)
    }
}

/// What is said of a form of one who is not signed in.
pub(super) fn not_signed_in() -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "sign in first, then send it again")
}

/// Refuses a form of administration that another site sends. Where administration has a listener of its own, a page at
/// the public address is another site: scripts of an origin may run there.
pub(super) fn refuse_foreign(app: &SharedState, headers: &HeaderMap) -> Result<(), Problem> {
    refuse_other(headers, !app.config.operators_apart(), app)
}

fn refuse_other(headers: &HeaderMap, is_public: bool, app: &SharedState) -> Result<(), Problem> {
    if is_ours(headers, is_public.then(|| app.site.at(""))) {
        return Ok(());
    }
    let detail = "the form was not sent from a page of this gateway, so it is not obeyed";
    Err(Problem::new(StatusCode::FORBIDDEN, detail))
}

/// The token that was sent is not the gateway's.
pub(super) fn wrong_token() -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "the admin token is not that of this gateway")
}

/// The answer to a form: to be looked at there.
pub(super) fn see(address: &str) -> Reply {
    let to = HeaderValue::from_str(address)
        .map_err(|_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "no way back"))?;
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response())
}

/// Whether a form was sent from a page of the origin that it is sent to: by `Host`, or by the address that is public
/// there. A browser says so, and no page of another origin can make it say otherwise.
fn is_ours(headers: &HeaderMap, public: Option<String>) -> bool {
    if let Some(site) = headers.get(FETCH_SITE) {
        return site == "same-origin";
    }
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(origin) = text(header::ORIGIN).and_then(|origin| Url::parse(origin).ok()) else {
        return false;
    };
    let public = public.and_then(|public| Url::parse(&public).ok());
    let is_public = public.is_some_and(|public| public.origin() == origin.origin());
    let named = text(header::HOST)
        .and_then(|host| Url::parse(&format!("{}://{host}", origin.scheme())).ok());
    is_public || named.is_some_and(|named| named.origin() == origin.origin())
}
