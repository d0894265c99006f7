//! The client: follows redirects itself, so that every hop passes the guard.

use super::error::{FetchError, root_cause};
use super::guard::{self, AllowPrivate, Openness, Refusal, shown};
use super::kept_hosts::{KEPT_IDLE, KeptHosts};
use super::message::{
    FetchAnswer, FetchRequest, Fetched, FetchedDocument, Validators, announced, hub_links,
};
use super::redirect::{self, Credentials, RedirectChain};
use super::resolver::{GuardedResolver, Unresolved};
use super::{
    Call, Fetch, FetchLimits, FetchSettings, PageFetch, Services, body, decode, freshness,
};
use crate::model::BodyPrints;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, LOCATION,
};
use reqwest::{Client, Response};
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tower::{BoxError, ServiceBuilder};
use url::{Position, Url};
use xxhash_rust::xxh3::xxh3_64;

/// What this gateway can read, best first.
const ACCEPTED: &str = "application/atom+xml, application/rss+xml, application/feed+json;q=0.9, \
     application/rdf+xml;q=0.9, application/xml;q=0.8, text/xml;q=0.8, */*;q=0.1";
/// The codings that this gateway undoes.
const CODINGS: &str = "gzip, br, zstd, deflate";
/// Asks for what changed since the document of the validators (RFC 3229 section 10.5.3).
const A_IM: HeaderName = HeaderName::from_static("a-im");
/// What a delta begins with (RFC 3229 section 10.5.1).
const DELTA_BASE: HeaderName = HeaderName::from_static("delta-base");
/// The most header fields of a response.
const MAX_HEADERS: usize = 128;
/// The largest header section of a response, in bytes.
const MAX_HEADER_BYTES: usize = 64 * 1024;
/// The longest content type that is passed on, in bytes.
const MAX_CONTENT_TYPE_BYTES: usize = 256;

/// Makes the fetching services, each with a limit on what runs at once and a limit on the time of
/// each request, over the same clients.
pub fn services(settings: FetchSettings) -> Result<Services, FetchError> {
    let limits = settings.limits;
    let core = Arc::new(Core::new(settings)?);
    let (pages, calls) = (Arc::clone(&core), Arc::clone(&core));
    let fetch = tower::service_fn(move |request| {
        let core = Arc::clone(&core);
        async move { core.fetch(request).await }
    });
    let fetch = ServiceBuilder::new()
        .map_err(move |error| into_fetch_error(error, "send the whole document", limits.total))
        .concurrency_limit(limits.at_once.max(1))
        .timeout(limits.total)
        .service(fetch);
    let ask = tower::service_fn(move |request| {
        let core = Arc::clone(&pages);
        async move { core.page(request).await }
    });
    let ask = ServiceBuilder::new()
        .map_err(move |error| into_fetch_error(error, "answer", limits.page))
        .concurrency_limit(limits.pages_at_once.max(1))
        .timeout(limits.page)
        .service(ask);
    let call = tower::service_fn(move |request| {
        let core = Arc::clone(&calls);
        async move { core.call(request).await }
    });
    let call = ServiceBuilder::new()
        .map_err(move |error| into_fetch_error(error, "answer", limits.call))
        .concurrency_limit(limits.calls_at_once.max(1))
        .timeout(limits.call)
        .service(call);
    Ok(Services { fetch: Fetch::new(fetch), ask: PageFetch::new(ask), call: Call::new(call) })
}

/// The error of the stack, as ours.
fn into_fetch_error(error: BoxError, what: &'static str, limit: Duration) -> FetchError {
    match error.downcast::<FetchError>() {
        Ok(error) => *error,
        Err(_) => FetchError::Timeout { what, limit },
    }
}

pub(super) struct Core {
    public: Clients,
    /// For hosts that may be private; clients of their own, so that no other URL ever reaches their
    /// resolver or their connections.
    opened: Clients,
    has_roots: bool,
    allow: AllowPrivate,
    kept: Mutex<KeptHosts>,
    pub(super) limits: FetchLimits,
}

/// Two clients with one resolver.
#[derive(Clone)]
struct Clients {
    /// Keeps a connection to each host open for [`KEPT_IDLE`].
    keeping: Client,
    /// Keeps none.
    closing: Client,
}

impl Core {
    fn new(settings: FetchSettings) -> Result<Self, FetchError> {
        // Whoever was first wins; any provider does.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let agent = user_agent(&settings);
        let limits = settings.limits;
        let openness = match settings.allow_private {
            AllowPrivate::No => Openness::Public,
            AllowPrivate::All => Openness::Private,
            AllowPrivate::Only(_) => Openness::Named,
        };
        let (opened, has_roots) = clients(&agent, openness, &limits)?;
        let public = match openness {
            Openness::Named => clients(&agent, Openness::Public, &limits)?.0,
            // Every host is public, or none is: the other clients are asked for nothing.
            Openness::Public | Openness::Private => opened.clone(),
        };
        let (allow, kept) = (settings.allow_private, Mutex::default());
        Ok(Self { public, opened, has_roots, allow, kept, limits })
    }

    async fn fetch(&self, request: FetchRequest) -> Result<Fetched, FetchError> {
        let (credentials, mut trail) = redirect::begin(&request.url, request.start.as_deref())?;
        // Ends by the limit on redirects in `follow`.
        loop {
            let response = self.ask(&request, &trail, credentials.as_ref()).await?;
            let code = response.status().as_u16();
            if !redirect::is_redirect(code) {
                return self.answer(&request, trail, response).await;
            }
            trail.follow(code, response.headers().get(LOCATION).map(HeaderValue::as_bytes))?;
        }
    }

    /// Passes the guard, and says which client may ask. `soon`: the host is asked again within
    /// [`KEPT_IDLE`].
    pub(super) fn client_for(
        &self,
        url: &Url,
        hop: usize,
        soon: bool,
    ) -> Result<&Client, FetchError> {
        let openness = guard::check(url, &self.allow)
            .map_err(|refusal| FetchError::Refused { hop, refusal })?;
        if url.scheme() == "https" && !self.has_roots {
            return Err(FetchError::NoRoots);
        }
        let clients = if openness == Openness::Public { &self.public } else { &self.opened };
        let host = xxh3_64(url[..Position::BeforePath].as_bytes());
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let keeps = kept.admit(host, soon, Instant::now());
        Ok(if keeps { &clients.keeping } else { &clients.closing })
    }

    /// One hop.
    async fn ask(
        &self,
        request: &FetchRequest,
        trail: &RedirectChain,
        credentials: Option<&Credentials>,
    ) -> Result<Response, FetchError> {
        let url = &trail.url;
        // A redirect on the same host is the next request to it.
        let soon = request.soon || trail.hops > 0;
        let client = self.client_for(url, trail.hops, soon)?;
        // The client turns credentials in a URL into basic authentication.
        let target = credentials.map_or_else(|| url.clone(), |known| known.applied(url));
        let asked = client.get(target).headers(conditions(request, url));
        let response =
            asked.send().await.map_err(|e| unreached(e, url, trail.hops, &self.limits))?;
        let size: usize =
            response.headers().iter().map(|(k, v)| k.as_str().len() + v.len() + 4).sum();
        if size > MAX_HEADER_BYTES {
            return Err(FetchError::Headers { what: "bytes", limit: MAX_HEADER_BYTES });
        }
        Ok(response)
    }

    /// The answer that stands at the end of the redirects.
    async fn answer(
        &self,
        request: &FetchRequest,
        trail: RedirectChain,
        mut response: Response,
    ) -> Result<Fetched, FetchError> {
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        let final_url = trail.url.to_string();
        let found = Validators::from_headers(&headers, &final_url);
        let announced = announced(&headers, &final_url);
        let links = hub_links(&headers, &final_url);
        let mut fetched = Fetched {
            announced,
            links,
            answer: FetchAnswer::NotModified,
            status,
            validators: found,
            freshness: freshness::freshness(&headers, request.now),
            final_url,
            moved_to: trail.moved_to.map(String::from),
            wire_bytes: 0,
            notes: trail.notes,
        };
        match status {
            304 if !has_conditions(request, &trail.url) => Err(FetchError::Unasked304),
            304 => {
                fetched.validators = fetched.validators.or(&request.validators);
                Ok(fetched)
            }
            200 | 203 | 226 => {
                let delta = status == 226;
                if delta && request.deltas && !begins_there(&headers, request, &trail.url) {
                    return Err(FetchError::DeltaBase);
                }
                let wire = body::read(response, &self.limits).await?;
                fetched.wire_bytes = u64::try_from(wire.bytes.len()).unwrap_or(u64::MAX);
                fetched.answer = if !delta && request.known_wire == Some(wire.print) {
                    FetchAnswer::Same
                } else {
                    FetchAnswer::Document(Box::pin(self.document(wire, &headers, delta)).await?)
                };
                Ok(fetched)
            }
            code => {
                let retry_after = freshness::retry_after(&headers, request.now);
                let is_other = trail.hops > 0 || request.start.is_some();
                let redirected_to = is_other.then_some(fetched.final_url);
                Err(FetchError::Status { code, retry_after, redirected_to })
            }
        }
    }

    async fn document(
        &self,
        wire: body::Wire,
        headers: &HeaderMap,
        delta: bool,
    ) -> Result<FetchedDocument, FetchError> {
        let applied = headers.get_all(CONTENT_ENCODING).into_iter();
        let codings = decode::codings(applied.map(|v| v.to_str().unwrap_or("an unreadable one")))
            .map_err(|error| FetchError::Decode { why: error.to_string() })?;
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.filter(|text| text.len() <= MAX_CONTENT_TYPE_BYTES);
        let (bytes, print) = body::open(wire.bytes, codings, self.limits.decoded_bytes).await?;
        Ok(FetchedDocument {
            bytes,
            content_type: content_type.map(str::to_owned),
            prints: BodyPrints { wire: wire.print, body: print },
            delta,
        })
    }
}

/// Whether a request to `url` has conditions: none where the validators are another address's.
fn has_conditions(request: &FetchRequest, url: &Url) -> bool {
    let validators = &request.validators;
    !validators.is_empty() && validators.answered_by.as_deref() == Some(url.as_str())
}

/// The conditions of a request to `url`.
fn conditions(request: &FetchRequest, url: &Url) -> HeaderMap {
    let validators = &request.validators;
    let mut headers = HeaderMap::new();
    if has_conditions(request, url) {
        let mut set = |name: HeaderName, value: Option<&String>| {
            let value = value.and_then(|text| HeaderValue::from_bytes(text.as_bytes()).ok());
            if let Some(value) = value {
                headers.insert(name, value);
            }
        };
        set(IF_NONE_MATCH, validators.etag.as_ref());
        set(IF_MODIFIED_SINCE, validators.last_modified.as_ref());
        if request.deltas && headers.contains_key(IF_NONE_MATCH) {
            headers.insert(A_IM, HeaderValue::from_static("feed"));
        }
    }
    headers
}

/// Whether a delta leads on from the document that is known. One that does not say what it begins
/// with begins with the one that was named (RFC 3229 section 10.5.1).
fn begins_there(headers: &HeaderMap, request: &FetchRequest, url: &Url) -> bool {
    let text = |value: Option<&HeaderValue>| {
        let text = value.and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
        text.map(|tag| tag.trim().trim_start_matches("W/").to_owned())
    };
    let named = text(conditions(request, url).get(IF_NONE_MATCH));
    let base = text(headers.get(DELTA_BASE));
    named.is_some() && base.is_none_or(|base| Some(base) == named)
}

/// How the gateway names itself where nothing else is configured.
const USER_AGENT: &str = concat!("Tidegate/", env!("CARGO_PKG_VERSION"));

fn user_agent(settings: &FetchSettings) -> String {
    let sendable = |text: &&str| HeaderValue::from_str(text).is_ok();
    let about = settings.about_url.as_deref().filter(sendable);
    let name = settings.user_agent.as_deref().filter(sendable).unwrap_or(USER_AGENT);
    about.map_or_else(|| name.to_owned(), |about| format!("{name} (+{about})"))
}

/// Clients that give out their connections to addresses that `openness` admits, and whether they know
/// root certificates.
fn clients(
    agent: &str,
    openness: Openness,
    limits: &FetchLimits,
) -> Result<(Clients, bool), FetchError> {
    let resolver = Arc::new(GuardedResolver::new(openness));
    let (keeping, has_roots) = client(agent, &resolver, 1, limits)?;
    let (closing, _) = client(agent, &resolver, 0, limits)?;
    Ok((Clients { keeping, closing }, has_roots))
}

/// A client that keeps so many idle connections to one host, and whether it knows root certificates. A
/// machine without any must still be able to poll `http` addresses.
fn client(
    agent: &str,
    resolver: &Arc<GuardedResolver>,
    idle: usize,
    limits: &FetchLimits,
) -> Result<(Client, bool), FetchError> {
    let builder = || {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(CODINGS));
        Client::builder()
            .user_agent(agent)
            .default_headers(headers)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .dns_resolver(Arc::clone(resolver))
            .connect_timeout(limits.connect)
            .read_timeout(limits.idle)
            .pool_idle_timeout(KEPT_IDLE)
            .pool_max_idle_per_host(idle)
            .http1_max_headers(MAX_HEADERS)
            .http2_max_header_list_size(u32::try_from(MAX_HEADER_BYTES).unwrap_or(u32::MAX))
    };
    if let Ok(client) = builder().build() {
        return Ok((client, true));
    }
    let without = builder().tls_certs_only([]).build();
    let failed = |error| FetchError::Client { what: "be set up", why: root_cause(&error) };
    Ok((without.map_err(failed)?, false))
}

/// Why no response came.
pub(super) fn unreached(
    error: reqwest::Error,
    url: &Url,
    hop: usize,
    limits: &FetchLimits,
) -> FetchError {
    let error = error.without_url();
    if let Some(refusal) = cause::<Refusal>(&error) {
        return FetchError::Refused { hop, refusal: refusal.clone() };
    }
    let host = url.host_str().unwrap_or_default().to_owned();
    if let Some(unresolved) = cause::<Unresolved>(&error) {
        return FetchError::Name { host, why: unresolved.why.clone() };
    }
    if let Some(tls) = cause::<rustls::Error>(&error) {
        return match tls {
            rustls::Error::InvalidCertificate(_) => {
                FetchError::Certificate { host, why: tls.to_string() }
            }
            _ => FetchError::Connect { host, why: tls.to_string() },
        };
    }
    match cause::<hyper::Error>(&error) {
        Some(error) if error.is_parse_too_large() => {
            return FetchError::Headers { what: "fields", limit: MAX_HEADERS };
        }
        Some(error) if error.is_parse() => {
            let why = format!("{} does not speak HTTP: {}", shown(url), root_cause(error));
            return FetchError::CutOff { why };
        }
        _ => {}
    }
    if error.is_connect() && error.is_timeout() {
        return FetchError::Timeout { what: "accept a connection", limit: limits.connect };
    }
    if error.is_connect() {
        return FetchError::Connect { host, why: root_cause(&error) };
    }
    broken(error, limits)
}

/// Why a response ended before its time.
pub(super) fn broken(error: reqwest::Error, limits: &FetchLimits) -> FetchError {
    let error = error.without_url();
    if error.is_timeout() {
        FetchError::Timeout { what: "send anything", limit: limits.idle }
    } else {
        FetchError::CutOff { why: root_cause(&error) }
    }
}

/// The first cause of type `E` below an error. I/O errors hide theirs from `source()`.
fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    /// How deep causes are looked for.
    const MAX_DEPTH: usize = 16;
    let mut at = Some(error);
    for _ in 0..MAX_DEPTH {
        let here = at?;
        if let Some(found) = here.downcast_ref::<E>() {
            return Some(found);
        }
        at = match here.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => here.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests;
