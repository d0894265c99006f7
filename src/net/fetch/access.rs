//! Credentials, headers and proxies of feeds. Secrets are read when needed and sent only to the feed's own origin.

use super::body::apart;
use super::error::FetchError;
use data_encoding::BASE64;
use http::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use std::fmt;
use std::hash::BuildHasher as _;
use std::hash::RandomState;
use std::io::Read as _;
use std::sync::OnceLock;
use tidegate_core::model::{
    FeedAccess, Login, ProxyAddress, SecretSource, SecretText, UserPassword,
};
use url::{Origin, Url};

/// A feed's access settings and the origin they belong to.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestAccess {
    /// The origin of the feed's address; `None` if that is invalid.
    origin: Option<Origin>,
    pub(super) access: Box<FeedAccess>,
}

impl RequestAccess {
    /// Combines the access settings with the origin of the feed's `url`.
    pub fn new(url: &str, access: &FeedAccess) -> Self {
        let origin = Url::parse(url).ok().map(|url| url.origin());
        Self { origin, access: Box::new(access.clone()) }
    }
}

impl fmt::Debug for RequestAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestAccess").finish_non_exhaustive()
    }
}

/// The identity that a request presents, with all secrets read.
#[derive(Default)]
pub(super) struct RequestIdentity {
    origin: Option<Origin>,
    /// Sent to the origin only.
    credentials: HeaderMap,
    user_agent: Option<HeaderValue>,
    /// Identifies the headers within this process; 0: the default identity.
    pub(super) print: u64,
}

impl RequestIdentity {
    /// Reads all secrets of a request.
    pub(super) async fn read(
        url: &Url,
        request: Option<&RequestAccess>,
    ) -> Result<Self, FetchError> {
        let of_url = url_login(url)?;
        let Some(RequestAccess { origin, access }) = request else {
            let credentials = of_url.map(|login| (AUTHORIZATION, login)).into_iter().collect();
            return Ok(Self { origin: Some(url.origin()), credentials, ..Self::default() });
        };
        let has_files =
            access.secrets().iter().any(|(_, source)| matches!(source, SecretSource::File(_)));
        let mut headers = if has_files {
            let access = access.clone();
            // Blocking, because a file may be on a disk that does not respond.
            apart("read secrets", move || headers(&access)).await?
        } else {
            headers(access)?
        };
        let user_agent = access.user_agent.as_deref();
        let user_agent = user_agent.and_then(|name| HeaderValue::from_str(name).ok());
        let print = fingerprint(&headers, user_agent.as_ref());
        if let Some(login) = of_url.filter(|_| *origin == Some(url.origin())) {
            headers.entry(AUTHORIZATION).or_insert(login);
        }
        Ok(Self { origin: origin.clone(), credentials: headers, user_agent, print })
    }

    /// Whether requests to `url` carry credentials.
    pub(super) fn is_known_to(&self, url: &Url) -> bool {
        !self.credentials.is_empty() && self.origin.as_ref() == Some(&url.origin())
    }

    /// Returns the origin of the credentials, if there are any and `url` has another origin.
    pub(super) fn withheld_from(&self, url: &Url) -> Option<String> {
        let origin = self.origin.as_ref().filter(|_| !self.credentials.is_empty())?;
        (*origin != url.origin()).then(|| origin.ascii_serialization())
    }

    /// Adds the identity's headers for a request to `url`.
    pub(super) fn apply(&self, url: &Url, headers: &mut HeaderMap) {
        if let Some(name) = &self.user_agent {
            headers.insert(USER_AGENT, name.clone());
        }
        if self.is_known_to(url) {
            headers.extend(self.credentials.clone());
        }
    }
}

/// Returns a keyed hash of the identity that does not reveal it.
fn fingerprint(credentials: &HeaderMap, user_agent: Option<&HeaderValue>) -> u64 {
    static KEY: OnceLock<RandomState> = OnceLock::new();
    if credentials.is_empty() && user_agent.is_none() {
        return 0;
    }
    let bytes = |value: &HeaderValue| value.as_bytes().to_vec();
    let sent: Vec<_> =
        credentials.iter().map(|(name, value)| (name.clone(), bytes(value))).collect();
    KEY.get_or_init(RandomState::new).hash_one((sent, user_agent.map(bytes))).max(1)
}

fn headers(access: &FeedAccess) -> Result<HeaderMap, FetchError> {
    let mut headers = HeaderMap::new();
    for (name, source) in &access.headers {
        let wrong = |why: String| unusable_secret(&format!("headers.{name}"), &why);
        let (name, value) = secret_header(name, source).map_err(wrong)?;
        headers.insert(name, value);
    }
    if let Some(source) = &access.cookie {
        headers.insert(COOKIE, secret_value("cookie", find_nonempty_secret(source))?);
    }
    match &access.login {
        Some(Login::Basic(login)) => {
            let (user, password) = read_login(["basic.user", "basic.password"], login)?;
            let pair = BASE64.encode(format!("{user}:{password}").as_bytes());
            headers.insert(AUTHORIZATION, secret_value("basic", Ok(format!("Basic {pair}")))?);
        }
        Some(Login::Bearer(source)) => {
            let token = find_nonempty_secret(source).map(|token| format!("Bearer {token}"));
            headers.insert(AUTHORIZATION, secret_value("bearer", token)?);
        }
        None => {}
    }
    Ok(headers)
}

/// Returns the credentials in a URL as an `Authorization` value.
fn url_login(url: &Url) -> Result<Option<HeaderValue>, FetchError> {
    if url.username().is_empty() && url.password().is_none() {
        return Ok(None);
    }
    let plain = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
    let pair = [plain(url.username()), plain(url.password().unwrap_or_default())].join(&b':');
    secret_value("url", Ok(format!("Basic {}", BASE64.encode(&pair)))).map(Some)
}

/// Reads a secret into a header; the error says what is wrong and what to do.
pub fn secret_header(
    name: &str,
    source: &SecretSource,
) -> Result<(HeaderName, HeaderValue), String> {
    let value = sensitive_value(&find_nonempty_secret(source)?)?;
    let name = HeaderName::from_bytes(name.as_bytes());
    Ok((name.map_err(|_| "is no name of a header".to_owned())?, value))
}

fn sensitive_value(value: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_bytes(value.as_bytes())
        .map_err(|_| "has a character that no header can have".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

/// Builds a secret header value; `name` is used in errors.
fn secret_value(name: &str, secret: Result<String, String>) -> Result<HeaderValue, FetchError> {
    secret.and_then(|secret| sensitive_value(&secret)).map_err(|why| unusable_secret(name, &why))
}

fn unusable_secret(name: &str, why: &str) -> FetchError {
    FetchError::operator(format!("the secret {name} of the feed cannot be used: {why}"))
}

/// Reads user name and password, each of which may be empty.
fn read_login(names: [&str; 2], login: &UserPassword) -> Result<(String, String), FetchError> {
    let [user, password] = names;
    let read = |name, source| find_secret(source).map_err(|why| unusable_secret(name, &why));
    Ok((read(user, &login.user)?, read(password, &login.password)?))
}

fn find_nonempty_secret(source: &SecretSource) -> Result<String, String> {
    match find_secret(source)? {
        text if text.is_empty() => Err("is empty".to_owned()),
        text => Ok(text),
    }
}

/// Reads the secret of a source, without trailing line ends; the error says what is wrong and what to do.
pub fn find_secret(source: &SecretSource) -> Result<String, String> {
    let checked = |place: String, text: &str| {
        let text = SecretText::new(text.trim_end_matches(['\r', '\n']));
        text.map(|text| text.reveal().to_owned()).map_err(|error| format!("{place} {error}"))
    };
    match source {
        SecretSource::Literal(text) => Ok(text.reveal().to_owned()),
        SecretSource::Env(name) => match std::env::var(name) {
            Ok(text) => checked(format!("the variable {name} of the environment"), &text),
            Err(std::env::VarError::NotPresent) => Err(format!(
                "the variable {name} of the environment is not set; start the gateway with it"
            )),
            Err(std::env::VarError::NotUnicode(_)) => {
                Err(format!("the variable {name} of the environment is not UTF-8"))
            }
        },
        SecretSource::File(path) => {
            let place = format!("the file {path}");
            let unread = |error: std::io::Error| format!("{place} cannot be read: {error}");
            let limit = u64::try_from(SecretText::LIMIT).unwrap_or(u64::MAX).saturating_add(2);
            let mut text = String::new();
            let file = std::fs::File::open(path).map_err(unread)?;
            file.take(limit).read_to_string(&mut text).map_err(unread)?;
            checked(place, &text)
        }
        SecretSource::LeftOut => Err(
            "was left out of the export that this gateway was made from; give it to the feed again"
                .to_owned(),
        ),
    }
}

/// A proxy whose credentials have been read.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct ReadyProxy {
    /// The address with credentials.
    pub(super) url: Url,
}

impl ReadyProxy {
    /// Reads the secrets of a proxy.
    pub(super) fn read(proxy: &ProxyAddress) -> Result<Self, FetchError> {
        let wrong = || unusable_secret("proxy", "is no address of a proxy");
        let mut url = Url::parse(&proxy.url).map_err(|_| wrong())?;
        if let Some(login) = &proxy.login {
            let (user, password) = read_login(["proxy.user", "proxy.password"], login)?;
            url.set_username(&user).map_err(|()| wrong())?;
            url.set_password(Some(&password)).map_err(|()| wrong())?;
        }
        Ok(Self { url })
    }

    /// Like [`Self::read`], but reads secrets on a blocking thread.
    pub(super) async fn read_soon(proxy: &ProxyAddress) -> Result<Self, FetchError> {
        if proxy.login.is_none() {
            return Self::read(proxy);
        }
        let proxy = proxy.clone();
        apart("read secrets", move || Self::read(&proxy)).await
    }

    /// Returns the address without credentials, for messages.
    pub(super) fn shown(&self) -> String {
        let mut url = self.url.clone();
        super::guard::strip_credentials(&mut url);
        url.as_str().trim_end_matches('/').to_owned()
    }

    /// Returns the host name as the resolver will see it.
    pub(super) fn host(&self) -> String {
        self.url.host_str().unwrap_or_default().to_ascii_lowercase()
    }

    /// Whether host names are resolved here rather than by the proxy.
    pub(super) fn resolves_here(&self) -> bool {
        self.url.scheme() == "socks5"
    }
}

#[cfg(test)]
mod tests;
