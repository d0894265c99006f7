//! Who asks: which feeds a request may see, and below which address they are.
//!
//! An *audience* is everybody, a reader below `/t/TOKEN`, a reader who sends the token as a password, or
//! the operator. It is found here, in one place, before the request is routed;
//! [`Directory`](super::directory::Directory) asks it which feeds there are, and documents take the
//! addresses of its [`Site`].

use super::auth::too_many_tokens;
use super::readers::AccessId;
use super::{
    API, AppState, Client, KnownReader, Listener, ListenerSite, Problem, ProblemCause, SharedState,
    Site, address, auth, negotiate, observe, router, sign_in_address, subscribe,
};
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use std::convert::Infallible;
use std::ops::Deref;
use std::sync::Arc;
use tidegate_config::ReaderToken;
use tidegate_core::model::{FeedName, FeedRecord};
use tower::ServiceExt as _;

/// Below this the path of a request names a token.
pub(super) const TOKEN_PATH: &str = "/t/";
/// What stands in the place of such a path.
pub(super) const MASKED_PATH: &str = "/t/***";
/// The parameter of an address that may name one.
const TOKEN_PARAMETER: &str = "token";
/// What is said of answers that are for one reader alone.
const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-cache");
/// What search engines may do with an answer.
pub(super) const X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");
/// The challenge where readers are told that they may send a password (RFC 7617).
const CHALLENGE: HeaderValue = HeaderValue::from_static("Basic realm=\"feeds\", charset=\"UTF-8\"");

/// Who asks, and which feeds and addresses that opens.
#[derive(Debug, Clone)]
pub(super) struct Audience {
    /// The addresses that documents name.
    pub(super) site: Arc<Site>,
    kind: AudienceKind,
    /// Whether a person may sign in where the request came from.
    pub(super) may_sign_in: bool,
    /// Whether the request brought a token, in its path or as the password, that opens nothing.
    pub(super) is_guess: bool,
}

/// A token opens nothing, or nothing any more.
pub(super) struct Revoked;

#[derive(Debug, Clone)]
enum AudienceKind {
    Public,
    Operator,
    Reader {
        reader: Arc<KnownReader>,
        /// Whether the token is in the path, and not a password.
        is_path: bool,
    },
}

/// What tells audiences apart in the keys of caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum AudienceKey {
    /// What is written for everybody. A private feed that is read with a password, or by the operator, is
    /// written as if it were public.
    #[default]
    Public,
    Operator,
    Reader(AccessId),
}

impl Audience {
    /// That of everybody.
    pub(super) fn public(app: &AppState) -> Self {
        let may_sign_in = !app.config.operators_apart();
        Self {
            site: Arc::clone(&app.site),
            kind: AudienceKind::Public,
            may_sign_in,
            is_guess: false,
        }
    }

    /// That of the operator.
    pub(super) fn operator(app: &AppState) -> Self {
        Self { kind: AudienceKind::Operator, may_sign_in: true, ..Self::public(app) }
    }

    /// That of a reader below a path.
    fn below(app: &AppState, token: &str, reader: Arc<KnownReader>) -> Self {
        let site = app.site.below(&format!("{TOKEN_PATH}{token}"), &reader);
        let kind = AudienceKind::Reader { reader, is_path: true };
        Self { site: Arc::new(site), kind, may_sign_in: false, is_guess: false }
    }

    /// That in which an address is, with what follows of the address (`/feeds/…`); `None` where the
    /// address is none of this site.
    pub(super) fn of_address<'a>(
        app: &AppState,
        address: &'a str,
    ) -> Option<Result<(Self, &'a str), Revoked>> {
        let path = address.strip_prefix(&app.site.at(""))?;
        Some(match token_in(path) {
            None => Ok((Self::public(app), path)),
            Some((token, rest)) => match app.readers.find(token) {
                Some(reader) => Ok((Self::below(app, token, reader), rest)),
                None => Err(Revoked),
            },
        })
    }

    /// What tells it apart.
    pub(super) fn key(&self) -> AudienceKey {
        match &self.kind {
            AudienceKind::Public => AudienceKey::Public,
            AudienceKind::Operator => AudienceKey::Operator,
            AudienceKind::Reader { reader, .. } => AudienceKey::Reader(reader.id),
        }
    }

    /// Whether a feed is there.
    pub(super) fn sees(&self, feed: &FeedName, is_private: bool) -> bool {
        match &self.kind {
            AudienceKind::Public => !is_private,
            AudienceKind::Operator => true,
            AudienceKind::Reader { reader, is_path: true } => reader.opens(feed, is_private),
            AudienceKind::Reader { reader, is_path: false } => {
                !is_private || reader.opens(feed, is_private)
            }
        }
    }

    /// Whether it is that of everybody.
    pub(super) const fn is_public(&self) -> bool {
        matches!(self.kind, AudienceKind::Public)
    }

    /// Whether it is that of the operator.
    pub(super) const fn is_operator(&self) -> bool {
        matches!(self.kind, AudienceKind::Operator)
    }

    /// The reader whose token is in the path.
    pub(super) fn reader(&self) -> Option<&KnownReader> {
        match &self.kind {
            AudienceKind::Reader { reader, is_path: true } => Some(reader),
            _ => None,
        }
    }

    /// Returns this audience at the state that replaced `before` on a reload; [`Revoked`] if its token or session
    /// counts no more.
    pub(super) fn after_reload(&self, before: &AppState, next: &AppState) -> Result<Self, Revoked> {
        let public = Self { may_sign_in: self.may_sign_in, ..Self::public(next) };
        let (site, kind) = match &self.kind {
            AudienceKind::Public => (public.site, AudienceKind::Public),
            AudienceKind::Operator => {
                let of =
                    |app: &AppState| (app.config.admin_token.clone(), app.config.operators_apart());
                if of(before) != of(next) {
                    return Err(Revoked);
                }
                (public.site, AudienceKind::Operator)
            }
            AudienceKind::Reader { reader, is_path } => {
                let (reader, is_path) =
                    (next.readers.find_same_token(reader).ok_or(Revoked)?, *is_path);
                let below = self.site.base.strip_prefix(&before.site.base).unwrap_or_default();
                let site = match is_path {
                    true => Arc::new(next.site.below(below, &reader)),
                    false => public.site,
                };
                (site, AudienceKind::Reader { reader, is_path })
            }
        };
        Ok(Self { site, kind, ..self.clone() })
    }
}

impl FromRequestParts<SharedState> for Audience {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &SharedState) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_else(|| Self::public(app)))
    }
}

/// A feed, as an audience has it.
#[derive(Debug, Clone)]
pub(super) struct ServedFeed {
    record: Arc<FeedRecord>,
    /// The addresses that its documents name.
    pub(super) site: Arc<Site>,
}

impl ServedFeed {
    /// A feed that an audience sees.
    pub(super) fn new(record: &Arc<FeedRecord>, audience: &Audience) -> Self {
        Self { record: Arc::clone(record), site: Arc::clone(&audience.site) }
    }
}

impl Deref for ServedFeed {
    type Target = FeedRecord;

    fn deref(&self) -> &FeedRecord {
        &self.record
    }
}

/// The token of a path, and what follows it.
fn token_in(path: &str) -> Option<(&str, &str)> {
    let behind = path.strip_prefix(TOKEN_PATH)?;
    let end = behind.find(['/', '?']).unwrap_or(behind.len());
    behind.split_at_checked(end)
}

/// Whether a token opens something at a path without one: as a password, or named in the query.
fn takes_token(path: &str) -> bool {
    path.starts_with("/feeds/") || path == subscribe::PATH
}

/// Whether a path below a token is one of its own: no administration is.
fn is_for_readers(method: &Method, path: &str) -> bool {
    let is_read = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    match path {
        "/" | "/recent" | "/subscriptions.opml" | "/sup.json" | "/events" | "/changes" => is_read,
        "/websub" | address::CLOUD_PATH | subscribe::PATH => true,
        path => is_read && (path.starts_with("/feeds/") || path.starts_with("/assets/")),
    }
}

/// Request extension: the path that the client asked for, before `origins` rewrote it to `/feeds/NAME`.
#[derive(Clone)]
pub(super) struct OriginalPath(pub(super) String);

/// Finds the audience of a request, and takes the token off its path; what follows sees no token. The audience is an
/// extension of the request and of its answer.
pub(super) async fn enter(site: &ListenerSite, mut request: Request) -> Response {
    let app = &site.app;
    let original_path =
        request.extensions().get::<OriginalPath>().map(|OriginalPath(path)| &**path);
    // A refused request may be meant for an origin, whose `token` parameter is its own.
    if !router::is_refused(&request)
        && let Some(leads) = with_token_parameter(request.uri(), original_path)
    {
        return leads;
    }
    let client = Client::of(request.extensions());
    let audience = find(app, site.listener, client, &mut request);
    let path = request.uri().path();
    let (is_feed, is_subscribing) = (path.starts_with("/feeds/"), path == subscribe::PATH);
    request.extensions_mut().insert(audience.clone());

    let Ok(mut response) = site.routes.clone().oneshot(request).await;
    let route = response.extensions().get::<MatchedPath>().cloned();
    // A wrong token at `/subscribe` is held back like one anywhere else, whatever the status.
    let tells_guess = is_subscribing || response.status() == StatusCode::NOT_FOUND;
    // Every unknown feed gets the challenge, or it would show which feeds are private.
    let problem = response.extensions().get::<Problem>();
    let is_no_feed = is_feed && problem.is_some_and(|it| it.cause == ProblemCause::UnknownFeed);
    if audience.is_guess && tells_guess && !app.readers.hold_back(client).await {
        response = too_many_tokens().into_response();
    } else if app.config.server.challenge
        && is_no_feed
        && audience.is_public()
        && !app.readers.is_empty()
    {
        let detail =
            "there is no such feed for everybody; a reader's token is asked for as the password";
        response = challenged(detail);
    } else {
        add_audience_headers(response.headers_mut(), &audience);
    }
    response.extensions_mut().insert(audience);
    observe::note_route(response, route)
}

/// The audience of a request, whose path has no token any more.
fn find(app: &AppState, listener: Listener, client: Client, request: &mut Request) -> Audience {
    let may_sign_in = listener != Listener::Readers;
    let public = |is_guess| Audience { may_sign_in, is_guess, ..Audience::public(app) };
    if let Some((token, path)) = token_in(request.uri().path()) {
        let reader = app.readers.find(token);
        let is_guess = reader.is_none() && !app.readers.is_empty();
        let path = if path.is_empty() { "/" } else { path };
        let Some(reader) = reader.filter(|_| is_for_readers(request.method(), path)) else {
            put_path(request.uri_mut(), MASKED_PATH);
            return public(is_guess);
        };
        let (audience, path) = (Audience::below(app, token, reader), path.to_owned());
        put_path(request.uri_mut(), &path);
        return audience;
    }
    // Administration asks for the token itself.
    let is_administration = request.uri().path().starts_with(API);
    if is_administration || !request.headers().keys().any(may_identify) {
        return public(false);
    }
    let (headers, takes_token) = (request.headers(), takes_token(request.uri().path()));
    if may_sign_in && (app.sessions.is_open(headers) || app.admits(client, headers)) {
        return Audience::operator(app);
    }
    match auth::password(headers).map(|password| app.readers.find(&password)) {
        Some(Some(reader)) if takes_token => {
            let kind = AudienceKind::Reader { reader, is_path: false };
            Audience { kind, ..Audience::public(app) }
        }
        Some(None) if !app.readers.is_empty() => public(takes_token),
        _ => public(false),
    }
}

/// What readers are answered that may send a password.
pub(super) fn challenged(detail: &str) -> Response {
    let mut response = Problem::new(StatusCode::UNAUTHORIZED, detail).into_response();
    let headers = response.headers_mut();
    headers.insert(header::WWW_AUTHENTICATE, CHALLENGE);
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

/// Whether a header may say who asks.
pub(super) fn may_identify(name: &HeaderName) -> bool {
    *name == header::AUTHORIZATION || *name == header::COOKIE
}

/// Puts another path into an address, whose query stays.
fn put_path(uri: &mut Uri, path: &str) {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    // A part of a path is one, and so is a mask.
    let Ok(target) = PathAndQuery::try_from(format!("{path}{query}")) else { return };
    *uri = Uri::from(target);
}

/// Where an address leads whose query names a token: to the same below that token.
/// `original_path`: the path that the client asked for, if the request was rewritten.
fn with_token_parameter(uri: &Uri, original_path: Option<&str>) -> Option<Response> {
    let query = uri.query().filter(|query| query.contains(TOKEN_PARAMETER))?;
    let path = uri.path();
    if !takes_token(path) {
        return None;
    }
    let (mut token, mut others) = (None, url::form_urlencoded::Serializer::new(String::new()));
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        if key == TOKEN_PARAMETER {
            token = Some(ReaderToken::new(&value).ok()?);
        } else {
            others.append_pair(&key, &value);
        }
    }
    let token = token?;
    let others = Some(others.finish()).filter(|others| !others.is_empty());
    let others = others.map(|others| format!("?{others}")).unwrap_or_default();
    // Relative, so that it is right behind a proxy that cuts off a prefix too.
    let depth = original_path.unwrap_or(path).matches('/').count();
    let up = "../".repeat(depth.saturating_sub(1));
    let to = format!("{up}t/{}{path}{others}", token.reveal());
    let mut to = HeaderValue::from_str(&to).ok()?;
    to.set_sensitive(true);
    let mut response = (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, to)]).into_response();
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    mark_private(headers);
    Some(response)
}

/// Marks an answer as one reader's: no shared cache keeps it, no search engine lists it, and no link sends the token on
/// in `Referer`.
fn mark_private(headers: &mut HeaderMap) {
    let fresh = headers.get(header::CACHE_CONTROL);
    let is_unkept = fresh.is_some_and(|value| value.as_bytes().starts_with(b"no-store"));
    if !is_unkept {
        headers.insert(header::CACHE_CONTROL, PRIVATE);
    }
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_ROBOTS_TAG, HeaderValue::from_static("noindex"));
}

/// Adds the headers by which an answer to this audience differs from the public one.
fn add_audience_headers(headers: &mut HeaderMap, audience: &Audience) {
    match &audience.kind {
        AudienceKind::Public => {}
        AudienceKind::Reader { is_path: true, .. } => mark_private(headers),
        AudienceKind::Reader { is_path: false, .. } => {
            mark_private(headers);
            headers.append(header::VARY, HeaderValue::from_static("Authorization"));
        }
        AudienceKind::Operator => {
            let fresh = headers.get(header::CACHE_CONTROL);
            if fresh.is_some_and(|value| value.as_bytes().starts_with(b"public")) {
                headers.insert(header::CACHE_CONTROL, PRIVATE);
            }
            headers.append(header::VARY, HeaderValue::from_static("Authorization, Cookie"));
        }
    }
}

/// Middleware around pages: where `server.pages` closes them, only operators and readers with their tokens pass.
pub(super) async fn guard_pages(
    State(app): State<SharedState>,
    audience: Audience,
    request: Request,
    next: Next,
) -> Response {
    if !app.config.pages_are_closed()
        || !audience.is_public()
        || request.method() == Method::OPTIONS
    {
        return next.run(request).await;
    }
    let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    let is_page = negotiate::prefers_html(request.headers());
    if !is_page && request.uri().path() == subscribe::PATH && !app.readers.is_empty() {
        return challenged("only readers subscribe here; send a reader's token as the password");
    }
    if !audience.may_sign_in {
        return super::router::nothing_at(request.uri().path()).into_response();
    }
    if is_page {
        let to = HeaderValue::from_str(&sign_in_address(path));
        if let Ok(to) = to {
            let leads = [(header::LOCATION, to), (header::CACHE_CONTROL, PRIVATE)];
            return (StatusCode::SEE_OTHER, leads).into_response();
        }
    }
    Problem::unauthorized().into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_the_first_step_below_its_path_or_leads_there() {
        for (path, found) in [
            ("/t/abc/feeds/x", Some(("abc", "/feeds/x"))),
            ("/t/abc", Some(("abc", ""))),
            ("/t/abc?x=/y", Some(("abc", "?x=/y"))),
            ("/t//feeds/x", Some(("", "/feeds/x"))),
            ("/t", None),
            ("/tt/abc", None),
            ("/feeds/t/abc", None),
        ] {
            assert_eq!(token_in(path), found, "{path}");
        }
        // One in the query leads to the path.
        const TOKEN: &str = "0123456789abcdef0123456789abcdef";
        let to = |address: &str| {
            let leads = with_token_parameter(&address.parse().unwrap(), None)?;
            assert_eq!(leads.headers()[header::CACHE_CONTROL], "private, no-cache");
            Some(leads.headers()[header::LOCATION].to_str().unwrap().to_owned())
        };
        let expected = format!("../t/{TOKEN}/feeds/x?as=rss&sx=sse");
        assert_eq!(to(&format!("/feeds/x?as=rss&token={TOKEN}&sx=sse")), Some(expected));
        let expected = format!("../../../t/{TOKEN}/feeds/x/archive/1");
        assert_eq!(to(&format!("/feeds/x/archive/1?token={TOKEN}")), Some(expected));
        let asked = format!("/feeds/x?token={TOKEN}").parse().unwrap();
        let leads = with_token_parameter(&asked, Some("/a/b/news.xml")).unwrap();
        let expected = format!("../../t/{TOKEN}/feeds/x");
        assert_eq!(leads.headers()[header::LOCATION], expected, "a feed at a path of its own");
        let expected = format!("t/{TOKEN}/subscribe?url=https%3A%2F%2Fa.example%2F");
        let asked = format!("/subscribe?url=https://a.example/&token={TOKEN}");
        assert_eq!(to(&asked), Some(expected));
        for none in ["/feeds/x?token=short", "/feeds/x?as=rss", "/feeds/x"] {
            assert_eq!(to(none), None, "{none}");
        }
        assert_eq!(to(&format!("/sup.json?token={TOKEN}")), None);
    }
}
