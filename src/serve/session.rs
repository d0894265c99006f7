//! `/session`: where a person signs in with the admin token, so that pages let them act.
//!
//! A session is a random id in a cookie that scripts cannot read and other sites cannot send. What is kept
//! of it here is its hash, in memory: a restart ends all sessions.

use super::forms::{self, SentForm, wrong_token};
use super::problem::Problem;
use super::query::Query;
use super::{AppState, REQUEST_BODY_LIMIT, SharedState};
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use data_encoding::HEXLOWER;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use maud::{Markup, html};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

/// The name of the cookie.
pub(super) const COOKIE: &str = "tidegate-session";
/// What a browser says that fetches a page before anybody asks for it.
const PURPOSE: HeaderName = HeaderName::from_static("sec-purpose");
/// How long a session lasts.
const LASTS: Duration = Duration::from_secs(12 * 3600);
/// The most sessions at a time; the one that ends first gives way.
const SESSIONS: usize = 256;
/// Random bytes of an id.
const ID_BYTES: usize = 32;
/// The longest address that somebody is sent back to, in bytes.
const WAY_BACK: usize = 2_000;

/// Who is signed in.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<HashMap<[u8; 32], OpenSession>>);

#[derive(Debug)]
struct OpenSession {
    until: Instant,
    /// What came of the last form, to be shown once.
    notice: Option<String>,
}

impl Sessions {
    fn all(&self) -> MutexGuard<'_, HashMap<[u8; 32], OpenSession>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a session; answers its id.
    fn open(&self) -> Result<String, getrandom::Error> {
        let mut random = [0_u8; ID_BYTES];
        getrandom::fill(&mut random)?;
        let id = HEXLOWER.encode(&random);
        let now = Instant::now();
        let mut all = self.all();
        all.retain(|_, session| session.until > now);
        if all.len() >= SESSIONS
            && let Some(first) = all.iter().min_by_key(|(_, session)| session.until)
        {
            let first = *first.0;
            all.remove(&first);
        }
        all.insert(hash(&id), OpenSession { until: now + LASTS, notice: None });
        Ok(id)
    }

    /// Whether the client of a request is signed in.
    pub(super) fn is_open(&self, headers: &HeaderMap) -> bool {
        let now = Instant::now();
        let all = self.all();
        cookies(headers).any(|id| all.get(&hash(id)).is_some_and(|session| session.until > now))
    }

    /// Ends all of them.
    pub(super) fn end_all(&self) {
        self.all().clear();
    }

    fn end(&self, headers: &HeaderMap) {
        let mut all = self.all();
        for id in cookies(headers) {
            all.remove(&hash(id));
        }
    }

    /// Notes what is shown to this client with the next page.
    pub(super) fn leave_notice(&self, headers: &HeaderMap, notice: impl Into<String>) {
        let mut all = self.all();
        let id = cookies(headers).map(hash).find(|id| all.contains_key(id));
        if let Some(session) = id.and_then(|id| all.get_mut(&id)) {
            session.notice = Some(notice.into());
        }
    }

    /// What was noted for this client, once, where the page is going to be seen: a browser that fetches ahead
    /// says so.
    fn take_notice(&self, method: &Method, headers: &HeaderMap) -> Option<String> {
        if method != Method::GET || headers.contains_key(PURPOSE) {
            return None;
        }
        let mut all = self.all();
        cookies(headers).find_map(|id| all.get_mut(&hash(id))?.notice.take())
    }
}

fn hash(id: &str) -> [u8; 32] {
    Sha256::digest(id).into()
}

/// Whether a request brings the cookie of a session along, open or not.
pub(super) fn has_cookie(headers: &HeaderMap) -> bool {
    let is_id = |id: &str| id.len() == 2 * ID_BYTES && id.bytes().all(|c| c.is_ascii_hexdigit());
    cookies(headers).any(is_id)
}

/// The ids of sessions that a request names.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::COOKIE).into_iter();
    let pairs = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
    pairs.filter_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))
}

/// What came of the last form of a client, as a page shows it once.
pub(super) fn notice(room: &AppState, method: &Method, headers: &HeaderMap) -> Markup {
    let notice = room.sessions.take_notice(method, headers);
    html! {
        @if let Some(notice) = notice { p.note.done role="status" { (super::html::text(&notice)) } }
    }
}

/// `Set-Cookie` for a session. It is sent over TLS alone where it was asked for over TLS.
/// `base`: the gateway's own address; nothing above its path gets the cookie.
fn set_cookie(
    (base, id): (&str, &str),
    lasts: Duration,
    headers: &HeaderMap,
) -> Option<HeaderValue> {
    let base = Url::parse(base).ok();
    let path = base.as_ref().map(Url::path).filter(|path| !path.contains(';')).unwrap_or("/");
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    let secure =
        if origin.is_some_and(|origin| origin.starts_with("https:")) { "; Secure" } else { "" };
    let seconds = lasts.as_secs();
    let cookie =
        format!("{COOKIE}={id}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::from_str(&cookie).ok()
}

/// An address of this gateway to go back to; the overview where it is anything else.
fn way_back(to: &str) -> &str {
    let is_own = to.starts_with('/')
        && !to.starts_with("//")
        && to.len() <= WAY_BACK
        && to.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_own { to } else { "/" }
}

/// The address at which somebody signs in who wants to go on to `to`, an address of ours.
pub(super) fn sign_in_address(to: &str) -> String {
    let to: String = url::form_urlencoded::byte_serialize(to.as_bytes()).collect();
    format!("/session?to={to}")
}

/// `GET /session`.
pub(super) async fn show(
    State(room): State<SharedState>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = Query::read(query.as_deref().unwrap_or_default())?;
    let to = way_back(query.get("to")?.unwrap_or("/"));
    if room.sessions.is_open(&headers) {
        return Ok(forms::page("Signed in", &signed_in()));
    }
    Ok(forms::page("Sign in", &sign_in(to, None)))
}

fn signed_in() -> Markup {
    html! {
        p { "Pages now have buttons to poll, pause and decide. The session ends by itself after "
            (LASTS.as_secs() / 3600) " hours, and with a restart of the gateway." }
        form.choices action="/session/end" method="post" {
            div.buttons { button type="submit" { "Sign out" } }
        }
        p { a href="/" { "To the overview" } }
    }
}

/// The form that asks for the token.
fn sign_in(to: &str, refused: Option<&str>) -> Markup {
    html! {
        @if let Some(refused) = refused { p.note role="alert" { (refused) "." } }
        form.choices action="/session" method="post" {
            input type="hidden" name="to" value=(to);
            // Who keeps passwords keeps them by a name.
            input type="text" name="username" value="admin" autocomplete="username" hidden;
            label.token { span { "Admin token" }
                input type="password" name="token" required autocomplete="current-password" autofocus; }
            div.buttons { button type="submit" { "Sign in" } }
        }
        p.quiet {
            "The token is " code { "server.admin_token" } " of the configuration. Where none is set, the first \
             start wrote a random one to the file " code { "admin-token" } " in the data folder."
        }
    }
}

/// `POST /session`: signs in, and goes on to the page that asked for it.
pub(super) async fn begin(
    State(room): State<SharedState>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let form = SentForm::read(&room, &headers, body, REQUEST_BODY_LIMIT)?;
    let to = way_back(form.get("to"));
    if !room.settings.load().admin_token.is(form.get("token").trim()) {
        let problem = wrong_token();
        let content = sign_in(to, Some(problem.detail()));
        return Ok(forms::refusal("Sign in", &content, problem.status()));
    }
    let without = "the system has no random numbers";
    let failed = || Problem::new(StatusCode::INTERNAL_SERVER_ERROR, without);
    let id = room.sessions.open().map_err(|_| failed())?;
    let cookie = set_cookie((&room.site.at(""), &id), LASTS, &headers).ok_or_else(failed)?;
    let mut response = forms::see(to)?;
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// `POST /session/end`: signs out.
pub(super) async fn end(
    State(room): State<SharedState>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    SentForm::read(&room, &headers, body, REQUEST_BODY_LIMIT)?;
    room.sessions.end(&headers);
    let mut response = forms::see("/")?;
    if let Some(cookie) = set_cookie((&room.site.at(""), ""), Duration::ZERO, &headers) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(cookie: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::from_str(cookie).unwrap());
        headers
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_lasts_until_it_ends() {
        let sessions = Sessions::default();
        let id = sessions.open().unwrap();
        let other = with(&format!("a=b; {COOKIE}={}", "0".repeat(2 * ID_BYTES)));
        let own = with(&format!("a=b; {COOKIE}={id}"));
        assert!(sessions.is_open(&own));
        for none in [other, with("a=b"), with(&format!("x{COOKIE}={id}")), HeaderMap::new()] {
            assert!(!sessions.is_open(&none), "{none:?}");
        }
        sessions.leave_notice(&own, "done");
        assert_eq!(sessions.take_notice(&Method::HEAD, &own), None);
        assert_eq!(sessions.take_notice(&Method::GET, &own).as_deref(), Some("done"));
        assert_eq!(sessions.take_notice(&Method::GET, &own), None);
        tokio::time::advance(LASTS).await;
        assert!(!sessions.is_open(&own));
        let again = sessions.open().unwrap();
        assert_eq!(sessions.all().len(), 1, "what is over is forgotten");
        let own = with(&format!("{COOKIE}={again}"));
        sessions.end(&own);
        assert!(!sessions.is_open(&own));
    }

    #[tokio::test(start_paused = true)]
    async fn there_are_only_so_many_sessions_and_the_oldest_gives_way() {
        let sessions = Sessions::default();
        let first = with(&format!("{COOKIE}={}", sessions.open().unwrap()));
        tokio::time::advance(Duration::from_secs(1)).await;
        let last = (0..SESSIONS).map(|_| sessions.open().unwrap()).last().unwrap();
        assert_eq!(sessions.all().len(), SESSIONS);
        assert!(!sessions.is_open(&first));
        assert!(sessions.is_open(&with(&format!("{COOKIE}={last}"))));
    }

    #[test]
    fn nobody_is_sent_elsewhere() {
        for own in ["/", "/feeds/news/about?x=1#y"] {
            assert_eq!(way_back(own), own);
        }
        let long = format!("/{}", "x".repeat(WAY_BACK));
        for other in
            ["", "//evil.example", "/\\evil.example", "https://evil.example/", "/a b", &long]
        {
            assert_eq!(way_back(other), "/", "{other}");
        }
        assert_eq!(
            sign_in_address("/feeds/a/about?x=1"),
            "/session?to=%2Ffeeds%2Fa%2Fabout%3Fx%3D1"
        );
    }

    #[test]
    fn over_tls_the_cookie_is_for_tls_alone() {
        let mut headers = HeaderMap::new();
        let cookie = |headers: &HeaderMap| {
            let cookie = set_cookie(("https://a.example", "id"), LASTS, headers).unwrap();
            cookie.to_str().unwrap().to_owned()
        };
        let below = set_cookie(("https://a.example/gate", "id"), LASTS, &headers).unwrap();
        assert!(below.to_str().unwrap().contains("; Path=/gate; "));
        let plain = "tidegate-session=id; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict";
        assert_eq!(cookie(&headers), plain);
        headers.insert(header::ORIGIN, HeaderValue::from_static("https://feeds.example.org"));
        assert_eq!(cookie(&headers), format!("{plain}; Secure"));
    }
}
