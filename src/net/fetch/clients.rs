//! The HTTP clients: one pair per proxy and address class, created once and cached within a limit.

use super::access::ReadyProxy;
use super::error::{FetchError, root_cause};
use super::guard::Openness;
use super::resolver::GuardedResolver;
use super::{FetchLimits, FetchSettings};
use http::header::{
    ACCEPT, ACCEPT_ENCODING, HOST, HeaderMap, HeaderValue, USER_AGENT as USER_AGENT_HEADER,
};
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use reqwest::Client;
use rustls::client::Resumption;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::trust::{ServerTrust, read_certificates};

/// The `Accept` header: the formats this gateway reads, best first.
const ACCEPTED: &str = "application/atom+xml, application/rss+xml, application/feed+json;q=0.9, \
     application/rdf+xml;q=0.9, application/xml;q=0.8, text/xml;q=0.8, */*;q=0.1";
/// The content codings that this gateway decodes.
pub(super) const CODINGS: &str = "gzip, br, zstd, deflate";
/// The most header fields of a response.
pub(super) const MAX_HEADERS: usize = 200;
/// The largest header section of a response, in bytes.
pub(super) const MAX_HEADER_BYTES: usize = 64 * 1024;
/// The most cached pairs of clients. Other proxy credentials need another pair.
const MAX_CLIENTS: u64 = 32;

/// The HTTP versions of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum HttpVersions {
    All,
    /// HTTP/1.1 only, for requests whose `Host` differs from their address: HTTP/2 takes the host from the address (RFC
    /// 9113 section 8.3.1).
    Http1,
}

impl HttpVersions {
    /// Returns the versions allowed for a request with these headers.
    pub(super) fn of_request(headers: &HeaderMap) -> Self {
        if headers.contains_key(HOST) { Self::Http1 } else { Self::All }
    }

    /// Returns the ALPN protocols to offer (RFC 7301), best first.
    fn offered(self) -> Vec<Vec<u8>> {
        let all: &[&[u8]] = match self {
            Self::All => &[b"h2", b"http/1.1"],
            Self::Http1 => &[b"http/1.1"],
        };
        all.iter().map(|name| name.to_vec()).collect()
    }
}

#[derive(Clone)]
pub(super) struct Clients {
    /// Keeps a connection to each host open for [`KEPT_IDLE`].
    pub(super) keeping: Client,
    /// Keeps none.
    pub(super) closing: Client,
}

/// Creates and caches the clients.
pub(super) struct ClientMaker {
    headers: HeaderMap,
    pub(super) limits: FetchLimits,
    /// The trusted authorities. There may be none: such a machine must still be able to poll `http` addresses.
    pub(super) trust: ServerTrust,
    /// The resolvers for public, private and named hosts, each with its own cache.
    resolvers: [GuardedResolver; 3],
    /// The least recently used are evicted first. Those without a proxy never are in practice, since most feeds are
    /// read through them.
    made: Cache<(Option<ReadyProxy>, Openness, HttpVersions), Clients>,
}

impl ClientMaker {
    pub(super) fn new(settings: &FetchSettings) -> Result<Self, FetchError> {
        let own = settings.ca_file.as_deref().map(read_certificates).transpose();
        let own = own.map_err(|why| FetchError::Client { what: "read polling.ca_file", why })?;
        let trust = ServerTrust::with(&own.unwrap_or_default())
            .map_err(|error| FetchError::Client { what: "be set up", why: root_cause(&error) })?;
        let lru = EvictionPolicy::lru();
        Ok(Self {
            headers: own_headers(settings),
            limits: settings.limits,
            trust,
            resolvers: [Openness::Public, Openness::Private, Openness::Named]
                .map(GuardedResolver::new),
            made: Cache::builder().max_capacity(MAX_CLIENTS).eviction_policy(lru).build(),
        })
    }

    /// Returns the clients for a proxy, or none, whose connections go only to addresses admitted by `openness`. The
    /// proxy itself may have any address, because the operator named it.
    pub(super) fn clients(
        &self,
        proxy: Option<&ReadyProxy>,
        openness: Openness,
        versions: HttpVersions,
    ) -> Result<Clients, FetchError> {
        let make = || {
            let resolver = Arc::new(match proxy {
                Some(proxy) => GuardedResolver::of_proxy(openness, proxy.host()),
                None => self.resolver(openness).clone(),
            });
            let keeping = self.client(proxy, versions, (&resolver, 1))?;
            let closing = self.client(proxy, versions, (&resolver, 0))?;
            Ok(Clients { keeping, closing })
        };
        let made = self.made.try_get_with((proxy.cloned(), openness, versions), make);
        made.map_err(Arc::unwrap_or_clone)
    }

    /// Returns the resolver that admits addresses by `openness`.
    pub(super) const fn resolver(&self, openness: Openness) -> &GuardedResolver {
        let [public, private, named] = &self.resolvers;
        match openness {
            Openness::Public => public,
            Openness::Private => private,
            Openness::Named => named,
        }
    }

    /// Creates a client that keeps `idle` connections per host.
    fn client(
        &self,
        proxy: Option<&ReadyProxy>,
        versions: HttpVersions,
        (resolver, idle): (&Arc<GuardedResolver>, usize),
    ) -> Result<Client, FetchError> {
        let limits = &self.limits;
        let failed = |error: reqwest::Error| {
            let why = root_cause(&error.without_url());
            FetchError::Client { what: "be set up", why }
        };
        let proxy = proxy.map(|proxy| reqwest::Proxy::all(proxy.url.clone()));
        let proxy = proxy.transpose().map_err(failed)?;
        let mut tls = self.trust.config.clone();
        // Each client resumes only its own sessions.
        tls.resumption = Resumption::default();
        tls.alpn_protocols = versions.offered();
        let builder = Client::builder()
            .tls_backend_preconfigured(tls)
            .default_headers(self.headers.clone())
            .read_timeout(limits.idle)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .dns_resolver(Arc::clone(resolver))
            .connect_timeout(limits.connect)
            .pool_idle_timeout(KEPT_IDLE)
            .pool_max_idle_per_host(idle)
            .http1_max_headers(MAX_HEADERS)
            // RFC 9112 section 5.2 requires reading folded lines. Other clients read or skip the other bad lines too.
            .http1_allow_obsolete_multiline_headers_in_responses(true)
            .http1_allow_spaces_after_header_name_in_responses(true)
            .http1_ignore_invalid_headers_in_responses(true)
            .http2_max_header_list_size(u32::try_from(MAX_HEADER_BYTES).unwrap_or(u32::MAX));
        let builder = match versions {
            HttpVersions::All => builder,
            HttpVersions::Http1 => builder.http1_only(),
        };
        let builder = match proxy {
            Some(proxy) => builder.proxy(proxy),
            None => builder,
        };
        builder.build().map_err(failed)
    }
}

/// The default `User-Agent`.
const USER_AGENT: &str = concat!("Tidegate/", env!("CARGO_PKG_VERSION"));

/// Returns the headers of every request that identify the gateway and say what it reads.
pub(super) fn own_headers(settings: &FetchSettings) -> HeaderMap {
    let sendable = |text: &&str| HeaderValue::from_str(text).is_ok();
    let about = settings.about_url.as_deref().filter(sendable);
    let name = settings.user_agent.as_deref().filter(sendable).unwrap_or(USER_AGENT);
    let agent = about.map_or_else(|| name.to_owned(), |about| format!("{name} (+{about})"));
    let agent = HeaderValue::from_str(&agent).unwrap_or(HeaderValue::from_static(USER_AGENT));
    HeaderMap::from_iter([
        (USER_AGENT_HEADER, agent),
        (ACCEPT, HeaderValue::from_static(ACCEPTED)),
        (ACCEPT_ENCODING, HeaderValue::from_static(CODINGS)),
    ])
}

/// The most hosts with an open connection; at most half of them may be hosts not known to be asked again soon.
pub const MAX_KEPT_HOSTS: u64 = 2048;
/// How long an idle connection stays open: longer than the minute at which many feeds are polled.
pub const KEPT_IDLE: Duration = Duration::from_secs(90);

/// Fingerprints of the hosts to which a connection may be open, until it would be closed.
#[derive(Debug)]
pub(super) struct KeptHosts(Cache<u64, ()>);

impl Default for KeptHosts {
    fn default() -> Self {
        Self(Cache::builder().time_to_idle(KEPT_IDLE).build())
    }
}

impl KeptHosts {
    /// Whether the connection to a host asked now should stay open. `soon`: it will be asked again within
    /// [`KEPT_IDLE`].
    pub(super) fn admit(&self, host: u64, soon: bool) -> bool {
        if self.0.get(&host).is_some() {
            return true;
        }
        // Evict expired hosts first.
        self.0.run_pending_tasks();
        let limit = if soon { MAX_KEPT_HOSTS } else { MAX_KEPT_HOSTS / 2 };
        let has_room = self.0.entry_count() < limit;
        if has_room {
            self.0.insert(host, ());
        }
        has_room
    }
}

#[cfg(test)]
mod tests;
