//! `/session`: where a person signs in with the admin token, so that pages let them act.
//!
//! A session is an id in a cookie that scripts cannot read and other sites cannot send. Whoever has the admin token can
//! check it; what is kept of it here is its hash, in memory.

use super::auth::AdminToken;
use super::client::Client;
use super::forms::{self, SentForm, wrong_token};
use super::guesses::demand;
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
use ring::hmac;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate_core::clock::Clock;
use tidegate_core::model::Time;
use url::Url;

/// The name of the cookie.
pub(super) const COOKIE: &str = "tidegate-session";
/// What a browser says that fetches a page before anybody asks for it.
const PURPOSE: HeaderName = HeaderName::from_static("sec-purpose");
/// How long a session lasts.
const LASTS: Duration = Duration::from_secs(12 * 3600);
/// The most sessions that are remembered; the one that ends first gives way, and is known again by its id.
const SESSIONS: usize = 256;
/// The most sessions that were ended and are remembered.
const ENDED: usize = 4096;
/// Random bytes of an id, and those of the time until which it is good; its signature follows.
const RANDOM_BYTES: usize = 16;
const UNTIL_BYTES: usize = 8;
/// The longest address that somebody is sent back to, in bytes.
const WAY_BACK: usize = 2_000;

/// Who is signed in.
///
/// An id says by itself until when it is good, and is signed with the admin token: a restart ends no session, and
/// every gateway over the same database knows it. One that was ended is remembered here, so that it stays so.
pub(super) struct Sessions {
    clock: Arc<dyn Clock>,
    table: Mutex<SessionTable>,
}

struct SessionTable {
    key: hmac::Key,
    /// Those that were seen, by the hash of the id.
    open: HashMap<[u8; 32], OpenSession>,
    /// Those that were ended before their time, and when that is.
    ended: HashMap<[u8; 32], Time>,
}

struct OpenSession {
    until: Time,
    /// What came of the last form, to be shown once.
    notice: Option<String>,
}

impl SessionTable {
    /// None yet.
    fn of(token: &AdminToken) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, token.hash());
        Self { key, open: HashMap::new(), ended: HashMap::new() }
    }

    /// The session of an id, where it is open.
    fn find(&mut self, id: &str, now: Time) -> Option<&mut OpenSession> {
        let hash = hash(id);
        if !self.open.contains_key(&hash) {
            let until = self.read(id).filter(|_| !self.ended.contains_key(&hash))?;
            self.remember(hash, until, now);
        }
        self.open.get_mut(&hash).filter(|session| session.until > now)
    }

    /// Until when an id is good that was signed with the token.
    fn read(&self, id: &str) -> Option<Time> {
        let bytes = HEXLOWER.decode(id.as_bytes()).ok()?;
        let (said, tag) = bytes.split_at_checked(RANDOM_BYTES + UNTIL_BYTES)?;
        hmac::verify(&self.key, said, tag).ok()?;
        let until = said.get(RANDOM_BYTES..)?.try_into().ok()?;
        Some(Time::from_unix(i64::from_be_bytes(until)))
    }

    fn remember(&mut self, hash: [u8; 32], until: Time, now: Time) {
        make_room(&mut self.open, SESSIONS, now, |session| session.until);
        self.open.insert(hash, OpenSession { until, notice: None });
    }

    fn end(&mut self, id: &str, now: Time) {
        let Some(until) = self.read(id) else { return };
        self.open.remove(&hash(id));
        make_room(&mut self.ended, ENDED, now, |until| *until);
        self.ended.insert(hash(id), until);
    }
}

/// Forgets what is over, and where there are as many as may be, the one that is over first.
fn make_room<T>(
    all: &mut HashMap<[u8; 32], T>,
    limit: usize,
    now: Time,
    until: impl Fn(&T) -> Time,
) {
    all.retain(|_, one| until(one) > now);
    if all.len() >= limit
        && let Some(first) = all.iter().min_by_key(|(_, one)| until(one)).map(|(hash, _)| *hash)
    {
        all.remove(&first);
    }
}

impl Sessions {
    /// None yet, of an administration token.
    pub(super) fn new(clock: Arc<dyn Clock>, token: &AdminToken) -> Self {
        Self { clock, table: Mutex::new(SessionTable::of(token)) }
    }

    fn table(&self) -> MutexGuard<'_, SessionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a session; answers its id.
    fn open(&self) -> Result<String, getrandom::Error> {
        let mut said = [0_u8; RANDOM_BYTES + UNTIL_BYTES];
        let (random, end) = said.split_at_mut(RANDOM_BYTES);
        getrandom::fill(random)?;
        let now = self.clock.now();
        let until = now.plus(LASTS);
        end.copy_from_slice(&until.unix().to_be_bytes());
        let mut table = self.table();
        let tag = hmac::sign(&table.key, &said);
        let id = HEXLOWER.encode(&[&said, tag.as_ref()].concat());
        table.remember(hash(&id), until, now);
        Ok(id)
    }

    /// Whether the client of a request is signed in.
    pub(super) fn is_open(&self, headers: &HeaderMap) -> bool {
        let (now, mut table) = (self.clock.now(), self.table());
        cookies(headers).any(|id| table.find(id, now).is_some())
    }

    /// Ends all of them: the token is another one.
    pub(super) fn end_all(&self, token: &AdminToken) {
        *self.table() = SessionTable::of(token);
    }

    fn end(&self, headers: &HeaderMap) {
        let (now, mut table) = (self.clock.now(), self.table());
        cookies(headers).for_each(|id| table.end(id, now));
    }

    /// Notes what is shown to this client with the next page.
    pub(super) fn leave_notice(&self, headers: &HeaderMap, notice: impl Into<String>) {
        let (now, mut table) = (self.clock.now(), self.table());
        let id = cookies(headers).find(|id| table.find(id, now).is_some());
        if let Some(session) = id.and_then(|id| table.find(id, now)) {
            session.notice = Some(notice.into());
        }
    }

    /// What was noted for this client, once, where the page is going to be seen: a browser that fetches ahead
    /// says so.
    fn take_notice(&self, method: &Method, headers: &HeaderMap) -> Option<String> {
        if method != Method::GET || headers.contains_key(PURPOSE) {
            return None;
        }
        let (now, mut table) = (self.clock.now(), self.table());
        cookies(headers).find_map(|id| table.find(id, now)?.notice.take())
    }
}

fn hash(id: &str) -> [u8; 32] {
    Sha256::digest(id).into()
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
            (LASTS.as_secs() / 3600) " hours, and with another admin token." }
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
    client: Client,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let form = SentForm::read(&room, &headers, body, REQUEST_BODY_LIMIT)?;
    let to = way_back(form.get("to"));
    if let Err(problem) = demand(&room, client, form.get("token").trim(), wrong_token).await {
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
    use tidegate_core::clock::ManualClock;

    fn with(cookie: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::from_str(cookie).unwrap());
        headers
    }

    const TOKEN: &str = "a-token-of-sessions";

    fn sessions(clock: &Arc<ManualClock>, token: &str) -> Sessions {
        Sessions::new(Arc::clone(clock) as Arc<dyn Clock>, &AdminToken::new(token).unwrap())
    }

    fn clock() -> Arc<ManualClock> {
        Arc::new(ManualClock::at(Time::from_unix(1_795_000_000)))
    }

    #[test]
    fn a_session_lasts_until_it_ends() {
        let clock = clock();
        let sessions = sessions(&clock, TOKEN);
        let id = sessions.open().unwrap();
        let other = with(&format!("a=b; {COOKIE}={}", "0".repeat(id.len())));
        let own = with(&format!("a=b; {COOKIE}={id}"));
        assert!(sessions.is_open(&own));
        for none in [other, with("a=b"), with(&format!("x{COOKIE}={id}")), HeaderMap::new()] {
            assert!(!sessions.is_open(&none), "{none:?}");
        }
        sessions.leave_notice(&own, "done");
        assert_eq!(sessions.take_notice(&Method::HEAD, &own), None);
        assert_eq!(sessions.take_notice(&Method::GET, &own).as_deref(), Some("done"));
        assert_eq!(sessions.take_notice(&Method::GET, &own), None);
        clock.set(clock.now().plus(LASTS));
        assert!(!sessions.is_open(&own));
        let again = sessions.open().unwrap();
        assert_eq!(sessions.table().open.len(), 1, "what is over is forgotten");
        let own = with(&format!("{COOKIE}={again}"));
        sessions.end(&own);
        assert!(!sessions.is_open(&own));
    }

    /// After a restart, and at a gateway that takes the place of another.
    #[test]
    fn who_has_the_same_token_knows_a_session() {
        let clock = clock();
        let id = sessions(&clock, TOKEN).open().unwrap();
        let own = with(&format!("{COOKIE}={id}"));
        let next = sessions(&clock, TOKEN);
        assert!(next.is_open(&own));
        // Not another time, and nothing that was made up.
        let until = 2 * RANDOM_BYTES..2 * (RANDOM_BYTES + UNTIL_BYTES);
        let later = |(at, c)| if until.contains(&at) { '7' } else { c };
        let longer: String = id.chars().enumerate().map(later).collect();
        let shorter: String = id.chars().take(id.len() - 2).collect();
        for forged in [longer, shorter, id.to_uppercase(), String::new()] {
            let forged = with(&format!("{COOKIE}={forged}"));
            assert!(!next.is_open(&forged), "{forged:?}");
        }
        assert!(!sessions(&clock, "another-token").is_open(&own));
        next.end_all(&AdminToken::new("another-token").unwrap());
        assert!(!next.is_open(&own));
        let next = sessions(&clock, TOKEN);
        clock.set(clock.now().plus(LASTS));
        assert!(!next.is_open(&own), "it ends when it was to");
    }

    #[test]
    fn only_so_many_sessions_are_remembered_and_those_that_were_ended_stay_so() {
        let clock = clock();
        let sessions = sessions(&clock, TOKEN);
        let cookie = |id: String| with(&format!("{COOKIE}={id}"));
        let first = cookie(sessions.open().unwrap());
        clock.set(clock.now().plus(Duration::from_secs(1)));
        let last = (0..SESSIONS).map(|_| sessions.open().unwrap()).last().unwrap();
        assert_eq!(sessions.table().open.len(), SESSIONS);
        assert!(sessions.is_open(&first) && sessions.is_open(&cookie(last.clone())));
        assert_eq!(sessions.table().open.len(), SESSIONS);
        sessions.end(&first);
        assert!(!sessions.is_open(&first));
        for _ in 0..SESSIONS {
            sessions.open().unwrap();
        }
        assert!(!sessions.is_open(&first));
        sessions.end(&cookie("no id".to_owned()));
        assert_eq!(sessions.table().ended.len(), 1);
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
