//! `/session`: where a person signs in with the admin token, so that pages let them act.
//!
//! A session is a cookie that scripts cannot read and other sites cannot send: until when it is good, and what came of the
//! last form, signed with a key made of the admin token. So it outlives a restart, every gateway over the same store knows
//! it, and another token ends it. Nothing of it is kept here.

use super::auth::demand;
use super::forms::{OwnForm, wrong_token};
use super::{AdminToken, AppState, Problem, Query, SharedState, TypedQuery, Viewer, forms, html};
use axum::extract::State;
use axum::response::Response;
use data_encoding::BASE64URL_NOPAD;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use maud::{Markup, html};
use ring::hmac;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::clock::Clock;
use tidegate_core::model::Time;

/// The name of the cookie.
pub(super) const COOKIE: &str = "tidegate-session";
/// What a browser says that fetches a page before anybody asks for it.
const PURPOSE: HeaderName = HeaderName::from_static("sec-purpose");
/// How long a session lasts.
const LASTS: Duration = Duration::from_secs(12 * 3600);
/// How long a notice waits for its page where there is no session.
const NOTICE_LASTS: Duration = Duration::from_secs(60);
/// The longest address that somebody is sent back to, in bytes.
const WAY_BACK: usize = 2_000;

/// What the cookie of a client says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SessionCookie {
    /// Until when the client is signed in.
    until: Time,
    /// What came of the last form, to be shown once; empty for nothing.
    notice: String,
}

/// Signs the cookies of those who are signed in, and checks them. A restart ends no session, and every gateway over the
/// same database knows it.
pub(super) struct Sessions {
    clock: Arc<dyn Clock>,
    key: hmac::Key,
}

impl Sessions {
    /// Those of an administration token.
    pub(super) fn new(clock: Arc<dyn Clock>, token: &AdminToken) -> Self {
        Self { clock, key: hmac::Key::new(hmac::HMAC_SHA256, token.hash()) }
    }

    fn sign(&self, cookie: &SessionCookie) -> String {
        let payload = [&cookie.until.unix().to_be_bytes(), cookie.notice.as_bytes()].concat();
        let tag = hmac::sign(&self.key, &payload);
        BASE64URL_NOPAD.encode(&[tag.as_ref(), &payload].concat())
    }

    fn verify(&self, value: &str) -> Option<SessionCookie> {
        let bytes = BASE64URL_NOPAD.decode(value.as_bytes()).ok()?;
        let (tag, payload) = bytes.split_at_checked(ring::digest::SHA256_OUTPUT_LEN)?;
        hmac::verify(&self.key, payload, tag).ok()?;
        let (until, notice) = payload.split_first_chunk()?;
        let until = Time::from_unix(i64::from_be_bytes(*until));
        Some(SessionCookie { until, notice: String::from_utf8_lossy(notice).into_owned() })
    }

    /// What the cookie of a request says.
    fn read(&self, headers: &HeaderMap) -> Option<SessionCookie> {
        let values = headers.get_all(header::COOKIE).into_iter();
        let pairs = values.filter_map(|value| value.to_str().ok());
        let mut values = pairs
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| self.verify(pair.trim().strip_prefix(COOKIE)?.strip_prefix('=')?));
        values.next()
    }

    /// Whether the client of a request is signed in.
    pub(super) fn is_open(&self, headers: &HeaderMap) -> bool {
        self.read(headers).is_some_and(|cookie| cookie.until > self.clock.now())
    }

    /// What came of the last form of a client, where the page is going to be seen: a browser that fetches ahead says so.
    pub(super) fn notice(&self, method: &Method, headers: &HeaderMap) -> Option<String> {
        let is_seen = method == Method::GET && !headers.contains_key(PURPOSE);
        let cookie = self.read(headers).filter(|_| is_seen)?;
        Some(cookie.notice).filter(|notice| !notice.is_empty())
    }
}

/// Sets the notice that the client's next page shows (empty: none any more), without changing how long it is signed in.
pub(super) fn leave_notice(
    app: &AppState,
    headers: &HeaderMap,
    response: &mut Response,
    notice: &str,
) {
    let until = app.sessions.read(headers).map_or(Time::from_unix(0), |cookie| cookie.until);
    let cookie = SessionCookie { until, notice: html::text(notice) };
    put_cookie(app, headers, response, &cookie);
}

/// Sends a client its cookie; one that says nothing is taken away.
fn put_cookie(
    app: &AppState,
    headers: &HeaderMap,
    response: &mut Response,
    cookie: &SessionCookie,
) {
    let notice_lasts = if cookie.notice.is_empty() { Duration::ZERO } else { NOTICE_LASTS };
    let lasts = cookie.until.since(app.clock.now()).max(notice_lasts);
    let value = if lasts.is_zero() { String::new() } else { app.sessions.sign(cookie) };
    if let Some(cookie) = set_cookie((app.site.path(), &value), lasts, headers) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
}

/// Returns `Set-Cookie` for a session. `path`: the path of the gateway, outside of which no request gets the cookie;
/// `value`: what it holds, empty to delete it. It is `Secure` if the request's `Origin` is https.
fn set_cookie(
    (path, value): (&str, &str),
    lasts: Duration,
    headers: &HeaderMap,
) -> Option<HeaderValue> {
    let path = Some(path).filter(|path| !path.is_empty() && !path.contains(';')).unwrap_or("/");
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    let secure =
        if origin.is_some_and(|origin| origin.starts_with("https:")) { "; Secure" } else { "" };
    let seconds = lasts.as_secs();
    let cookie = format!(
        "{COOKIE}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    );
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
    viewer: Viewer,
    TypedQuery(query): TypedQuery<Query>,
) -> Result<Response, Problem> {
    if viewer.is_signed_in {
        return Ok(viewer.form_page("Signed in", &signed_in()));
    }
    let to = way_back(query.get("to")?.unwrap_or("/"));
    Ok(viewer.form_page("Sign in", &sign_in(to, None)))
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
    viewer: Viewer,
    headers: HeaderMap,
    OwnForm(form): OwnForm,
) -> Result<Response, Problem> {
    let to = way_back(form.get("to"));
    let (app, token) = (&viewer.app, form.get("token").trim());
    if let Err(problem) = demand(app, viewer.client, token, wrong_token).await {
        let form = sign_in(to, Some(problem.detail.as_str()));
        return Ok(viewer.failed_page("Sign in", &problem, &form));
    }
    let cookie = SessionCookie { until: app.clock.now().plus(LASTS), notice: String::new() };
    let mut response = forms::see(to)?;
    put_cookie(app, &headers, &mut response, &cookie);
    Ok(response)
}

/// `POST /session/end`: signs out.
pub(super) async fn end(
    State(app): State<SharedState>,
    headers: HeaderMap,
    _form: OwnForm,
) -> Result<Response, Problem> {
    let mut response = forms::see("/")?;
    put_cookie(
        &app,
        &headers,
        &mut response,
        &SessionCookie { until: Time::from_unix(0), notice: String::new() },
    );
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::clock::ManualClock;

    fn with(cookie: &str) -> HeaderMap {
        tidegate_net::testing::headers(&[("cookie", cookie)])
    }

    const TOKEN: &str = "a-token-of-sessions";

    fn sessions(clock: &Arc<ManualClock>, token: &str) -> Sessions {
        Sessions::new(Arc::clone(clock) as Arc<dyn Clock>, &AdminToken::new(token).unwrap())
    }

    fn clock() -> Arc<ManualClock> {
        Arc::new(ManualClock::at(Time::from_unix(1_795_000_000)))
    }

    /// The value of a cookie with this notice.
    fn signed(clock: &Arc<ManualClock>, notice: &str) -> String {
        let cookie = SessionCookie { until: clock.now().plus(LASTS), notice: notice.to_owned() };
        sessions(clock, TOKEN).sign(&cookie)
    }

    /// A restart ends none, and every gateway over the same store knows it.
    #[test]
    fn a_session_lasts_until_it_ends_for_who_has_the_same_token() {
        let clock = clock();
        let (sessions, value) = (sessions(&clock, TOKEN), signed(&clock, ""));
        let made_up = "A".repeat(value.len());
        let own = with(&format!("a=b; {COOKIE}={made_up}; {COOKIE}={value}"));
        assert!(sessions.is_open(&own));
        assert!(!self::sessions(&clock, "another-token").is_open(&own));
        // Not another time, and nothing that was made up.
        let forged = (0..value.len()).map(|at| {
            let mut forged = value.clone().into_bytes();
            forged[at] = if forged[at] == b'Q' { b'R' } else { b'Q' };
            String::from_utf8(forged).unwrap()
        });
        let shorter: String = value.chars().take(value.len() - 2).collect();
        for forged in forged.chain([made_up, shorter, String::new()]) {
            assert!(!sessions.is_open(&with(&format!("{COOKIE}={forged}"))), "{forged:?}");
        }
        for none in [with(&format!("x{COOKIE}={value}")), HeaderMap::new()] {
            assert!(!sessions.is_open(&none), "{none:?}");
        }
        clock.set(clock.now().plus(LASTS));
        assert!(!sessions.is_open(&own));
        // A notice is for a page that is seen.
        let clock = self::clock();
        let sessions = self::sessions(&clock, TOKEN);
        let notice = "„done“";
        let mut own = with(&format!("{COOKIE}={}", signed(&clock, notice)));
        assert_eq!(sessions.notice(&Method::GET, &own).as_deref(), Some(notice));
        assert_eq!(sessions.notice(&Method::HEAD, &own), None);
        own.insert(PURPOSE, HeaderValue::from_static("prefetch"));
        assert_eq!(sessions.notice(&Method::GET, &own), None);
        let told = with(&format!("{COOKIE}={}", signed(&clock, "")));
        assert_eq!(sessions.notice(&Method::GET, &told), None);
        assert!(sessions.is_open(&told));
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
        let address = "/session?to=%2Ffeeds%2Fa%2Fabout%3Fx%3D1";
        assert_eq!(sign_in_address("/feeds/a/about?x=1"), address);
    }

    #[test]
    fn over_tls_the_cookie_is_for_tls_alone() {
        let mut headers = HeaderMap::new();
        let cookie = |headers: &HeaderMap| {
            let cookie = set_cookie(("", "id"), LASTS, headers).unwrap();
            cookie.to_str().unwrap().to_owned()
        };
        let below = set_cookie(("/gate", "id"), LASTS, &headers).unwrap();
        assert!(below.to_str().unwrap().contains("; Path=/gate; "));
        let plain = "tidegate-session=id; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict";
        assert_eq!(cookie(&headers), plain);
        headers.insert(header::ORIGIN, HeaderValue::from_static("https://feeds.example.org"));
        assert_eq!(cookie(&headers), format!("{plain}; Secure"));
    }
}
