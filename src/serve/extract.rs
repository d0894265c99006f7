//! What handlers take of a request, each read in one way: the feed and the item of its address, its query, its body,
//! and who looks at a page.

use super::feeds::unreadable;
use super::negotiate::wants_json;
use super::{
    Audience, Client, OperatorError, Problem, Query, Reply, ServedFeed, SharedState, forms, html,
    put, routes, session,
};
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, MatchedPath, Path, Request};
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::convert::Infallible;
use tidegate_core::model::{FeedName, SyncId, Time};
use tidegate_format::render::Container;

/// What an address names, before it is checked.
#[derive(Deserialize)]
struct NamedInPath {
    name: String,
    #[serde(default)]
    id: String,
}

impl NamedInPath {
    async fn read(parts: &mut Parts) -> Result<Self, Problem> {
        let path = Path::<Self>::from_request_parts(parts, &()).await;
        Ok(path.map_err(unreadable)?.0)
    }

    /// The feed for administration, which sees all of them.
    fn feed(&self) -> Result<FeedName, Problem> {
        let unknown = |_| Problem::not_found("there is no feed of that name");
        FeedName::new(&self.name).map_err(unknown)
    }
}

impl FromRequestParts<SharedState> for ServedFeed {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &SharedState) -> Result<Self, Problem> {
        let Ok(audience) = Audience::from_request_parts(parts, app).await;
        let named = NamedInPath::read(parts).await?;
        app.served_feed(&named.name, &audience).await
    }
}

/// An item of a feed that is served.
pub(super) struct ServedItem {
    pub(super) feed: ServedFeed,
    pub(super) id: SyncId,
}

impl FromRequestParts<SharedState> for ServedItem {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &SharedState) -> Result<Self, Problem> {
        let feed = ServedFeed::from_request_parts(parts, app).await?;
        let named = NamedInPath::read(parts).await?;
        let id = SyncId::new(&named.id).map_err(|_| unknown_item(&feed.name))?;
        Ok(Self { feed, id })
    }
}

/// A feed has no item of the sync id that an address names.
pub(super) fn unknown_item(feed: &FeedName) -> Problem {
    OperatorError::unknown_item(feed).into()
}

/// The name of a feed that may be new: one that no feed can have is the caller's mistake.
pub(super) struct NewFeedInPath(pub(super) FeedName);

impl FromRequestParts<SharedState> for NewFeedInPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &SharedState) -> Result<Self, Problem> {
        let named = NamedInPath::read(parts).await?;
        let name = FeedName::new(&named.name);
        name.map(Self).map_err(|error| Problem::parameter("name", error.to_string()))
    }
}

/// A request of administration about a feed.
pub(super) struct FeedCall {
    pub(super) app: SharedState,
    pub(super) client: Client,
    pub(super) name: FeedName,
}

impl FromRequestParts<SharedState> for FeedCall {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &SharedState) -> Result<Self, Problem> {
        let Ok(client) = Client::from_request_parts(parts, app).await;
        let name = NamedInPath::read(parts).await?.feed()?;
        Ok(Self { app: SharedState::clone(app), client, name })
    }
}

/// A request of administration about an item.
pub(super) struct ItemCall {
    pub(super) app: SharedState,
    pub(super) feed: FeedName,
    pub(super) id: SyncId,
}

impl FromRequestParts<SharedState> for ItemCall {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &SharedState) -> Result<Self, Problem> {
        let named = NamedInPath::read(parts).await?;
        let feed = named.feed()?;
        let id = SyncId::new(&named.id).map_err(|_| unknown_item(&feed))?;
        Ok(Self { app: SharedState::clone(app), feed, id })
    }
}

/// What a handler takes of a query.
pub(super) trait ReadQuery: Sized {
    /// Reads a query; a key that it knows and that is malformed or given twice is the client's mistake.
    fn read(query: &str) -> Result<Self, Problem>;
}

impl ReadQuery for Query {
    fn read(query: &str) -> Result<Self, Problem> {
        Self::read(query)
    }
}

/// The query of a request.
pub(super) struct TypedQuery<Q>(pub(super) Q);

impl<Q: ReadQuery> FromRequestParts<SharedState> for TypedQuery<Q> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &SharedState) -> Result<Self, Problem> {
        Q::read(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

/// A body as a whole.
pub(super) struct WholeBody(pub(super) Bytes);

impl FromRequest<SharedState> for WholeBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &SharedState) -> Result<Self, Problem> {
        let route = request.extensions().get::<MatchedPath>();
        let limit = routes::body_limit(route.map_or("", MatchedPath::as_str));
        let body = Bytes::from_request(request, app).await;
        body.map(Self).map_err(|rejection| {
            let status = rejection.status();
            let detail = match status {
                StatusCode::PAYLOAD_TOO_LARGE => format!("the body is larger than {limit} bytes"),
                _ => "the body did not come whole".to_owned(),
            };
            Problem::new(status, detail)
        })
    }
}

/// The object that a body must be; of an empty body where `EMPTY` allows one, one without keys.
pub(super) struct JsonObject<const EMPTY: bool = false>(pub(super) JsonFields);

impl<const EMPTY: bool> FromRequest<SharedState> for JsonObject<EMPTY> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &SharedState) -> Result<Self, Problem> {
        let WholeBody(body) = WholeBody::from_request(request, app).await?;
        let object = if EMPTY && body.is_empty() { Map::new() } else { put::object(&body)? };
        Ok(Self(JsonFields(object)))
    }
}

/// The keys of an object, each taken once. What is null is as what is absent.
pub(super) struct JsonFields(pub(super) Map<String, Value>);

impl JsonFields {
    /// The value of a key, read; `wanted` says what it has to be.
    pub(super) fn take<T>(
        &mut self,
        key: &str,
        wanted: &str,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(value) = self.0.remove(key).filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        let detail = || Problem::parameter(key, format!("{key} is {wanted}"));
        read(value).map(Some).ok_or_else(detail)
    }

    pub(super) fn text(&mut self, key: &str) -> Result<Option<String>, Problem> {
        self.take(key, "a text", |value| match value {
            Value::String(text) => Some(text),
            _ => None,
        })
    }

    pub(super) fn flag(&mut self, key: &str) -> Result<Option<bool>, Problem> {
        self.take(key, "true or false", |value| value.as_bool())
    }

    pub(super) fn time(&mut self, key: &str) -> Result<Option<Time>, Problem> {
        self.take(key, "a time such as 2026-11-20T16:20:05Z", |value| {
            Time::parse_rfc3339(value.as_str()?).ok()
        })
    }

    /// Refuses what was not taken.
    pub(super) fn finish(self) -> Result<(), Problem> {
        self.0.keys().next().map_or(Ok(()), |key| Err(put::unknown_key(key)))
    }
}

/// Who looks at a page, and what came of the form that was sent from the page before.
pub(super) struct Viewer {
    pub(super) app: SharedState,
    pub(super) audience: Audience,
    pub(super) client: Client,
    /// Whether it is a person who is signed in, where one may be.
    pub(super) is_signed_in: bool,
    pub(super) wants_json: bool,
    pub(super) headers: HeaderMap,
    notice: Option<String>,
}

impl FromRequestParts<SharedState> for Viewer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &SharedState) -> Result<Self, Infallible> {
        let audience = Audience::from_request_parts(parts, app).await?;
        let client = Client::from_request_parts(parts, app).await?;
        let headers = &parts.headers;
        Ok(Self {
            client,
            is_signed_in: audience.may_sign_in && app.sessions.is_open(headers),
            wants_json: wants_json(headers),
            notice: app.sessions.notice(&parts.method, headers),
            headers: headers.clone(),
            app: SharedState::clone(app),
            audience,
        })
    }
}

impl Viewer {
    /// A page. Of one who is signed in it has forms, and of one who was told something it says so, once.
    pub(super) fn page(&self, title: &str, content: &Markup) -> Response {
        let has_forms = self.is_signed_in || self.notice.is_some();
        self.frame((title, &html! {}), content, has_forms)
    }

    /// The same about a feed, which programs that read feeds find by it.
    pub(super) fn page_about(
        &self,
        feed: (&FeedName, Container),
        title: &str,
        content: &Markup,
    ) -> Response {
        self.frame((title, &html::feed_links(feed, title)), content, true)
    }

    /// A page with forms, also of one who is not signed in.
    pub(super) fn form_page(&self, title: &str, content: &Markup) -> Response {
        self.frame((title, &html! {}), content, true)
    }

    fn frame(&self, (title, head): (&str, &Markup), content: &Markup, has_forms: bool) -> Response {
        let content = html! {
            @if let Some(notice) = &self.notice { p.note.done role="status" { (html::text(notice)) } }
            (content)
        };
        let document = html::document(&self.audience, title, head, &content);
        let mut response = match has_forms {
            true => html::form_page(document),
            false => html::page(&self.headers, document),
        };
        if self.notice.is_some() {
            session::leave_notice(&self.app, &self.headers, &mut response, "");
        }
        response
    }

    /// A page of operators; who is not signed in is told what it is for.
    pub(super) fn operators_page(
        &self,
        title: &str,
        (for_whom, at): (&str, &str),
        content: impl FnOnce() -> Markup,
    ) -> Response {
        let sign_in = || {
            html! {
                p { (for_whom) }
                p.links { a href=(session::sign_in_address(at)) { "Sign in" } }
            }
        };
        self.form_page(title, &if self.is_signed_in { content() } else { sign_in() })
    }

    /// The answer to a form on a page about a feed, which has an address and a name: the page at `to`, which says what
    /// came of the form, or why nothing was done, with the way back.
    pub(super) fn answer_form(
        &self,
        feed: &FeedName,
        page: (&str, &str),
        to: &str,
        done: Result<String, Problem>,
    ) -> Reply {
        let problem = match done {
            Ok(notice) => return self.see(to, &notice),
            Err(problem) => problem,
        };
        let back = html! {
            (html::trail(feed, Some(page), "Not done"))
            p.links { a href=(page.0) { "Back to the page" } }
        };
        Ok(self.not_done("Not done", &problem, &back))
    }

    /// The page for who is told why something was not done: `again` is the form to try again, or a way back.
    pub(super) fn not_done(&self, title: &str, problem: &Problem, again: &Markup) -> Response {
        let content = html! {
            p.note role="alert" {
                (html::text(&problem.detail)) "."
                @if problem.status.is_client_error() { " Nothing was changed." }
            }
            (again)
        };
        self.failed_page(title, problem, &content)
    }

    /// A page with a form that was not obeyed, for the reason that it says.
    pub(super) fn failed_page(&self, title: &str, why: &Problem, content: &Markup) -> Response {
        let mut response = self.form_page(title, content);
        *response.status_mut() = why.status;
        response
    }

    /// The answer to a form that was obeyed: the page at an address, which says what came of it.
    pub(super) fn see(&self, address: &str, notice: &str) -> Reply {
        let mut response = forms::see(address)?;
        session::leave_notice(&self.app, &self.headers, &mut response, notice);
        Ok(response)
    }
}
