//! The HTTP client. It follows redirects itself, so that every hop passes the guard.

mod ways;

pub(super) use ways::RequestWay;

use super::access::{ReadyProxy, RequestIdentity};
use super::call::PAGES;
use super::clients::{ClientMaker, HttpVersions, KeptHosts, MAX_HEADER_BYTES, own_headers};
use super::error::{ANSWERING, FetchBlame, FetchError};
use super::guard::{AllowPrivate, Openness, read_url};
use super::handover::Handover;
use super::lead::LeadScope;
use super::message::{FetchAnswer, FetchRequest, Fetched, FetchedDocument};
use super::pass::Passers;
use super::redirect::RedirectChain;
use super::{FetchLimits, FetchSettings, Passage, Passing, Services, body, challenge, freshness};
use crate::origin::{OriginSite, address_at_host, check_for_everybody};
use bytes::Bytes;
use cookie_store::CookieStore;
use http::StatusCode;
use http::header::{
    ACCEPT, CONTENT_RANGE, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, LOCATION, SET_COOKIE,
};
use reqwest::Response;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tidegate_core::model::BodyPrints;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder};
use url::Url;
use xxhash_rust::xxh3::xxh3_128;

/// Requests a delta from the document of the validators (RFC 3229 section 10.5.3).
const A_IM: HeaderName = HeaderName::from_static("a-im");
/// Names the document that a delta applies to (RFC 3229 section 10.5.1).
const DELTA_BASE: HeaderName = HeaderName::from_static("delta-base");

/// Creates the services over shared clients.
pub fn services(settings: FetchSettings) -> Result<Services, FetchError> {
    let limits = settings.limits;
    let polled_with = own_headers(&settings);
    let core = Arc::new(Core::new(settings)?);
    let handover = core.handover.clone();
    let (documents, calls) = (Arc::clone(&core), Arc::clone(&core));
    // Boxed here, because each layer around it moves the future.
    let fetch = move |request| Box::pin(Arc::clone(&documents).fetch(request));
    let call = move |request| Arc::clone(&calls).call(request);
    let pass = move |request| -> Passage { Box::pin(Arc::clone(&core).pass(request)) };
    Ok(Services {
        fetch: limited(fetch, limits.at_once, ("send the whole document", limits.total)),
        call: limited(call, limits.calls_at_once, (ANSWERING, limits.call)),
        passing: Passing { pass: Arc::new(pass), handover, polled_with },
    })
}

/// Limits the concurrency of a service, and the time in which a publisher must do `what`.
fn limited<R, A, F>(
    send: impl Fn(R) -> F + Clone + Send + Sync + 'static,
    at_once: usize,
    (what, limit): (&'static str, Duration),
) -> BoxCloneSyncService<R, A, FetchError>
where
    R: 'static,
    A: 'static,
    F: Future<Output = Result<A, FetchError>> + Send + 'static,
{
    let service = ServiceBuilder::new()
        .map_err(move |error: BoxError| match error.downcast::<FetchError>() {
            Ok(error) => *error,
            Err(_) => FetchError::Timeout { what, limit },
        })
        .concurrency_limit(at_once.max(1))
        .timeout(limit)
        .service(tower::service_fn(send));
    BoxCloneSyncService::new(service)
}

pub(super) struct Core {
    /// Creates clients. Hosts that may be private have their own clients, so that no other URL reaches their resolver
    /// or connections.
    maker: ClientMaker,
    allow: AllowPrivate,
    kept: KeptHosts,
    pub(super) limits: FetchLimits,
    /// The proxy of all requests without their own route.
    proxy: Option<ReadyProxy>,
    proxy_resolves: bool,
    /// Clients that pass requests on, created on demand: to public and to other hosts, each first for all versions of
    /// HTTP and then for requests with their own `Host`.
    passers: [[OnceLock<Passers>; 2]; 2],
    pub(super) handover: Handover,
    sites: Vec<Arc<OriginSite>>,
}

impl Core {
    pub(super) fn new(settings: FetchSettings) -> Result<Self, FetchError> {
        // Fails if a provider is installed already; any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let maker = ClientMaker::new(&settings)?;
        let limits = settings.limits;
        let proxy = settings.proxy.as_ref().map(ReadyProxy::read).transpose()?;
        let proxy_resolves = settings.proxy_resolves;
        let core = Self {
            maker,
            allow: settings.allow_private,
            kept: KeptHosts::default(),
            limits,
            proxy,
            proxy_resolves,
            passers: Default::default(),
            handover: Handover::default(),
            sites: settings.sites,
        };
        // Fail early if no client can be created.
        core.maker.clients(None, Openness::Public, HttpVersions::All)?;
        Ok(core)
    }

    async fn fetch(self: Arc<Self>, request: FetchRequest) -> Result<Fetched, FetchError> {
        let refused = |refusal| FetchError::Refused { hop: 0, refusal };
        let configured = read_url(&request.url).map_err(refused)?;
        let moved = request.start.as_deref().map(read_url).transpose().map_err(refused)?;
        let mut chain = RedirectChain::new(moved.as_ref().unwrap_or(&configured), moved.is_some());
        let identity = RequestIdentity::read(&configured, request.access.as_ref()).await?;
        let is_anybodys = !identity.is_known_to(&chain.url);
        // Requests without credentials to our own public addresses go to the site behind, and may lead further within
        // it.
        let ours = self.behind_our_address(&chain.url);
        let ours = ours.or_else(|| self.moved_within_site(&configured, &chain.url));
        let ours = ours.filter(|_| is_anybodys);
        let mut is_ours = ours.is_some();
        if let Some(there) = ours {
            chain.url = there;
        }
        let leads = match &request.leads {
            LeadScope::Own => LeadScope::of_address(configured, request.is_secret),
            named => named.clone(),
        };
        let scope = (leads, request.is_secret);
        let mut led_request = self.lead(scope, None, &chain.url).await;
        let cookies = CookieStore::default();
        let mut identified = IdentifiedRequest { request: &request, identity, cookies };
        // Takes the document that a reader's request left for this poll, if the poll has no identity of its own.
        if request.for_everybody
            && let Some(handed) = self.handover.take(&request.url)
        {
            let response = http::Response::new(handed.body);
            let (mut head, body) = response.into_parts();
            head.headers = handed.headers;
            let response = Response::from(http::Response::from_parts(head, body));
            let answer = self.answer(&identified, chain, response).await?;
            return Ok(Fetched { is_from_reader: true, leads: led_request.into_scope(), ..answer });
        }
        // Ends at the latest by the limit in `follow`.
        loop {
            let is_public = !led_request.is_within && !is_ours;
            let asking = self.ask(&identified, &chain, is_public);
            let response = asking.await.map_err(|error| led_request.explain(error))?;
            let code = response.status().as_u16();
            if !matches!(code, 301 | 302 | 303 | 307 | 308) {
                let answer = self.answer(&identified, chain, response).await?;
                return Ok(Fetched { leads: led_request.into_scope(), ..answer });
            }
            let led = response.headers().get(LOCATION).map(HeaderValue::as_bytes);
            let within = self.within_site(led, &chain.url);
            is_ours &= within.is_some();
            let within = within.as_ref().map(|url| url.as_str().as_bytes());
            chain.sets_cookies |= response.headers().contains_key(SET_COOKIE);
            identified.take_cookies(&chain.url, response.headers());
            let from = chain.url.clone();
            chain.follow(code, within.or(led))?;
            let scope = (led_request.into_scope(), request.is_secret);
            led_request = self.lead(scope, Some(from), &chain.url).await;
        }
    }

    /// Makes one hop. `is_public`: only public addresses may be connected to.
    async fn ask(
        &self,
        identified: &IdentifiedRequest<'_>,
        chain: &RedirectChain,
        is_public: bool,
    ) -> Result<Response, FetchError> {
        let url = &chain.url;
        let request = identified.request;
        // A redirect within the host is its next request.
        let soon = request.soon || chain.hops > 0;
        let route = request.access.as_ref().and_then(|own| own.access.route.as_ref());
        let mut headers = identified.conditions(url);
        self.say_name(url, &mut headers);
        identified.identity.apply(url, &mut headers);
        identified.add_cookies(url, &mut headers);
        let way = RequestWay { route, versions: HttpVersions::of_request(&headers), is_public };
        let chosen = self.client_for(url, chain.hops, soon, way).await?;
        let send = async |headers| {
            let sent = chosen.client.get(url.clone()).headers(headers).send().await;
            sent.map_err(|error| chosen.unreached(error, url, chain.hops, &self.limits))
        };
        let mut response = match send(headers.clone()).await {
            // A kept connection may have been closed just then.
            Err(FetchError::CutOff { .. }) if request.soon => send(headers.clone()).await?,
            sent => sent?,
        };
        if response.status() == StatusCode::NOT_ACCEPTABLE && !headers.contains_key(ACCEPT) {
            // Some servers send feeds only to clients that accept pages.
            headers.insert(ACCEPT, PAGES);
            response = send(headers).await?;
        }
        let size: usize =
            response.headers().iter().map(|(k, v)| k.as_str().len() + v.len() + 4).sum();
        if size > MAX_HEADER_BYTES {
            return Err(FetchError::headers(MAX_HEADER_BYTES, "bytes"));
        }
        Ok(response)
    }

    /// Interprets the response after the last redirect.
    async fn answer(
        &self,
        identified: &IdentifiedRequest<'_>,
        chain: RedirectChain,
        mut response: Response,
    ) -> Result<Fetched, FetchError> {
        let IdentifiedRequest { request, identity, .. } = identified;
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        let is_document = match status {
            200 | 201 | 203 | 226 => true,
            206 => is_whole(&headers),
            _ => false,
        };
        if request.for_everybody && (is_document || status == 304) {
            check_for_everybody(&headers).map_err(|why| FetchError::upstream(why.to_string()))?;
        }
        let url = chain.url.to_string();
        let mut fetched = Fetched {
            moved_to: chain.moved_to.as_ref().map(Url::to_string),
            notes: chain.notes.clone(),
            ..Fetched::from_headers((status, &headers), url, request, identity.print)
        };
        match status {
            304 if !identified.has_conditions(&chain.url) => Err(FetchError::Unasked304),
            304 => {
                fetched.validators = fetched.validators.or(&request.validators);
                Ok(fetched)
            }
            _ if is_document => {
                let delta = status == 226;
                if delta && request.deltas && !identified.applies_to_known(&headers, &chain.url) {
                    let why = "the publisher answered with a delta from a document that is not the one that was named";
                    return Err(FetchError::upstream(why));
                }
                let wire = body::read_whole(response, self.limits.wire_bytes, &self.limits).await?;
                let print = xxh3_128(&wire);
                fetched.wire_bytes = u64::try_from(wire.len()).unwrap_or(u64::MAX);
                if !delta && request.known_wire == Some(print) {
                    fetched.answer = FetchAnswer::Same;
                    return Ok(fetched);
                }
                // What a site says relative to itself is where its readers have it.
                let here = address_at_host(&self.sites, &chain.url);
                let url = here.unwrap_or_else(|| fetched.final_url.clone());
                let document = Box::pin(self.document((wire, print), &headers, url, delta)).await?;
                if let Some(service) = challenge::in_page(&headers, &document.bytes) {
                    let (code, redirected_to) = (status, identified.redirected(&chain));
                    let says = Some(explain_challenge(service, code));
                    return Err(FetchError::Status {
                        code,
                        retry_after: None,
                        redirected_to,
                        says,
                    });
                }
                fetched.answer = FetchAnswer::Document(document);
                Ok(fetched)
            }
            code => {
                let rate_reset = fetched.rate_reset.filter(|_| matches!(code, 429 | 503));
                let retry_after = freshness::retry_after(&headers, request.now).or(rate_reset);
                let redirected_to = identified.redirected(&chain);
                let start = match challenge::needs_body(code, &headers) {
                    true => body::beginning(response, &headers, challenge::LOOKED_AT).await,
                    false => Bytes::new(),
                };
                let service = challenge::recognize(code, &headers, &start);
                let says = service.map(|service| explain_challenge(service, code));
                let refusal =
                    || explain_refusal(code, &chain.url, identity, redirected_to.is_some());
                let says = says.or_else(refusal);
                Err(FetchError::Status { code, retry_after, redirected_to, says })
            }
        }
    }

    async fn document(
        &self,
        (wire, print): (Bytes, u128),
        headers: &HeaderMap,
        url: String,
        delta: bool,
    ) -> Result<FetchedDocument, FetchError> {
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.filter(|text| text.len() <= 256);
        let (bytes, body) = body::open(wire, headers.clone(), self.limits.decoded_bytes).await?;
        Ok(FetchedDocument {
            bytes,
            content_type: content_type.map(str::to_owned),
            url,
            prints: BodyPrints { wire: print, body },
            delta,
        })
    }
}

/// Explains a response that is the challenge or block page of a protection service.
fn explain_challenge(service: &str, code: u16) -> (FetchBlame, String) {
    let why = format!(
        "the publisher answered {code} with the challenge of {service}, which protects it from \
         programs; ask the publisher to let this gateway's address or User-Agent pass, or set a \
         cookie or a user_agent for the feed that {service} lets pass"
    );
    (FetchBlame::Upstream, why)
}

/// Explains a refusal that the operator can resolve: credentials are wrong, or were not sent to another origin.
fn explain_refusal(
    code: u16,
    url: &Url,
    identity: &RequestIdentity,
    is_redirected: bool,
) -> Option<(FetchBlame, String)> {
    let why = match identity.withheld_from(url) {
        Some(origin) if is_redirected && matches!(code, 401 | 403) => format!(
            "a redirect of the publisher leads to {}, which answered {code}; the credentials of this \
             feed go to {origin} alone: if that host is to have them, make its address the url of the feed",
            url.host_str().unwrap_or_default()
        ),
        _ if code == 401 && identity.is_known_to(url) => {
            "the publisher answered 401 to the credentials of this feed: it does not take them; give the feed \
             those that hold now"
                .to_owned()
        }
        _ => return None,
    };
    Some((FetchBlame::Operator, why))
}

/// A request with its credentials.
struct IdentifiedRequest<'a> {
    request: &'a FetchRequest,
    identity: RequestIdentity,
    /// The cookies set by earlier hops.
    cookies: CookieStore,
}

impl IdentifiedRequest<'_> {
    /// Keeps the cookies that a hop sets, unless the answer must be for everybody: then it may not depend on a cookie.
    fn take_cookies(&mut self, url: &Url, headers: &HeaderMap) {
        let set = headers.get_all(SET_COOKIE).iter().filter(|_| !self.request.for_everybody);
        for cookie in set.filter_map(|value| std::str::from_utf8(value.as_bytes()).ok()) {
            // A cookie that its host may not set is dropped.
            let _ = self.cookies.parse(cookie, url);
        }
    }

    /// Adds the cookies of earlier hops to those that the operator configured.
    fn add_cookies(&self, url: &Url, headers: &mut HeaderMap) {
        let set = self.cookies.get_request_values(url);
        let set: Vec<_> = set.map(|(name, value)| format!("{name}={value}").into_bytes()).collect();
        if set.is_empty() {
            return;
        }
        let given = headers.get(COOKIE).map(|given| given.as_bytes().to_vec());
        let all = given.into_iter().chain(set).collect::<Vec<_>>().join(&b"; "[..]);
        if let Ok(mut all) = HeaderValue::from_bytes(&all) {
            all.set_sensitive(true);
            headers.insert(COOKIE, all);
        }
    }

    /// Whether a request to `url` is conditional: only if the validators came from this address, for the same
    /// credentials.
    fn has_conditions(&self, url: &Url) -> bool {
        let validators = &self.request.validators;
        !validators.is_empty()
            && validators.answered_by.as_deref() == Some(url.as_str())
            && validators.credentials_id == self.identity.print
    }

    /// Returns the conditional headers of a request to `url`.
    fn conditions(&self, url: &Url) -> HeaderMap {
        let validators = &self.request.validators;
        let mut headers = HeaderMap::new();
        if self.has_conditions(url) {
            let mut set = |name: HeaderName, value: Option<&String>| {
                let value = value.and_then(|text| HeaderValue::from_bytes(text.as_bytes()).ok());
                if let Some(value) = value {
                    headers.insert(name, value);
                }
            };
            set(IF_NONE_MATCH, validators.etag.as_ref());
            set(IF_MODIFIED_SINCE, validators.last_modified.as_ref());
            if self.request.deltas && headers.contains_key(IF_NONE_MATCH) {
                headers.insert(A_IM, HeaderValue::from_static("feed"));
            }
        }
        headers
    }

    /// Whether a delta applies to the known document. One without `Delta-Base` applies to the document named in the
    /// request (RFC 3229 section 10.5.1).
    fn applies_to_known(&self, headers: &HeaderMap, url: &Url) -> bool {
        let text = |value: Option<&HeaderValue>| {
            let text = value.and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
            text.map(|tag| tag.trim().trim_start_matches("W/").to_owned())
        };
        let named = text(self.conditions(url).get(IF_NONE_MATCH));
        let base = text(headers.get(DELTA_BASE));
        named.is_some() && base.is_none_or(|base| Some(base) == named)
    }

    /// Returns the address that answered, if redirects led to another one.
    fn redirected(&self, chain: &RedirectChain) -> Option<String> {
        let is_led = chain.hops > 0 || self.request.start.is_some();
        is_led.then(|| match self.request.is_secret {
            true => chain.url.origin().ascii_serialization(),
            false => chain.url.to_string(),
        })
    }
}

/// Whether a partial response contains the whole document (RFC 9110 section 14.4).
fn is_whole(headers: &HeaderMap) -> bool {
    let Some(range) = headers.get(CONTENT_RANGE) else { return true };
    let range = range.to_str().ok().and_then(|range| range.trim().strip_prefix("bytes"));
    let parts = range.and_then(|range| range.trim_start().strip_prefix("0-")?.split_once('/'));
    let numbers = parts.and_then(|(last, all)| {
        Some((last.trim().parse::<u64>().ok()?, all.trim().parse::<u64>().ok()?))
    });
    numbers.is_some_and(|(last, all)| last.checked_add(1) == Some(all))
}

#[cfg(test)]
mod tests;
