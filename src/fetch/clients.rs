//! The clients: one pair for each way out, made once and kept within a limit.

use super::access::ReadyProxy;
use super::error::{FetchError, root_cause};
use super::guard::Openness;
use super::kept_hosts::KEPT_IDLE;
use super::resolver::GuardedResolver;
use super::{FetchLimits, FetchSettings};
use http::header::{
    ACCEPT, ACCEPT_ENCODING, HOST, HeaderMap, HeaderValue, USER_AGENT as USER_AGENT_HEADER,
};
use reqwest::{Certificate, Client};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// What this gateway can read, best first.
const ACCEPTED: &str = "application/atom+xml, application/rss+xml, application/feed+json;q=0.9, \
     application/rdf+xml;q=0.9, application/xml;q=0.8, text/xml;q=0.8, */*;q=0.1";
/// The codings that this gateway undoes.
const CODINGS: &str = "gzip, br, zstd, deflate";
/// The most header fields of a response.
pub(super) const MAX_HEADERS: usize = 200;
/// The largest header section of a response, in bytes.
pub(super) const MAX_HEADER_BYTES: usize = 64 * 1024;
/// The most proxies, each with its credentials, for which clients are kept. Of more, those that were
/// not used for longest are made anew.
pub const MAX_PROXY_CLIENTS: usize = 32;
/// The largest file with certificates, in bytes.
pub const CA_FILE_LIMIT: u64 = 1024 * 1024;

/// The versions of HTTP that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HttpVersions {
    All,
    /// HTTP/1.1 alone, where `Host` is another one than that of the address: HTTP/2 names the host in the address
    /// (RFC 9113 section 8.3.1).
    Http1,
}

impl HttpVersions {
    /// For a request with these headers.
    pub(super) fn of_request(headers: &HeaderMap) -> Self {
        if headers.contains_key(HOST) { Self::Http1 } else { Self::All }
    }
}

/// Two clients with one resolver.
#[derive(Clone)]
pub(super) struct Clients {
    /// Keeps a connection to each host open for [`KEPT_IDLE`].
    pub(super) keeping: Client,
    /// Keeps none.
    pub(super) closing: Client,
}

/// What all clients are made with.
pub(super) struct ClientMaker {
    headers: HeaderMap,
    limits: FetchLimits,
    certificates: Vec<CertificateDer<'static>>,
    /// Those for proxies, the one that was used last at the end.
    proxied: Mutex<Vec<(ProxyKey, Clients)>>,
}

/// By what clients for proxies are told apart.
type ProxyKey = (ReadyProxy, Openness, HttpVersions);

impl ClientMaker {
    pub(super) fn new(settings: &FetchSettings) -> Result<Self, FetchError> {
        let certificates = settings.ca_file.as_deref().map(read_certificates).transpose();
        let certificates =
            certificates.map_err(|why| FetchError::Client { what: "read polling.ca_file", why })?;
        Ok(Self {
            headers: own_headers(settings),
            limits: settings.limits,
            certificates: certificates.unwrap_or_default(),
            proxied: Mutex::default(),
        })
    }

    /// Clients that give out their connections to addresses that `openness` admits, and whether they
    /// know root certificates.
    pub(super) fn direct(
        &self,
        openness: Openness,
        versions: HttpVersions,
    ) -> Result<(Clients, bool), FetchError> {
        self.make(None, versions, GuardedResolver::new(openness))
    }

    /// Clients for a proxy. The proxy may have any address, since the operator named it.
    pub(super) fn by_proxy(
        &self,
        proxy: &ReadyProxy,
        openness: Openness,
        versions: HttpVersions,
    ) -> Result<Clients, FetchError> {
        let key = (proxy.clone(), openness, versions);
        let mut proxied = self.proxied.lock().unwrap_or_else(PoisonError::into_inner);
        let clients = match proxied.iter().position(|(known, _)| *known == key) {
            Some(at) => proxied.remove(at).1,
            None => {
                let resolver = GuardedResolver::new(openness).with_named(proxy.host());
                self.make(Some(proxy), versions, resolver)?.0
            }
        };
        if proxied.len() >= MAX_PROXY_CLIENTS {
            proxied.remove(0);
        }
        proxied.push((key, clients.clone()));
        Ok(clients)
    }

    fn make(
        &self,
        proxy: Option<&ReadyProxy>,
        versions: HttpVersions,
        resolver: GuardedResolver,
    ) -> Result<(Clients, bool), FetchError> {
        let resolver = Arc::new(resolver);
        let (keeping, has_roots) = self.client(proxy, versions, (&resolver, 1))?;
        let (closing, _) = self.client(proxy, versions, (&resolver, 0))?;
        Ok((Clients { keeping, closing }, has_roots))
    }

    /// The certificates that the operator names.
    pub(super) fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }

    pub(super) const fn limits(&self) -> &FetchLimits {
        &self.limits
    }

    /// A client that keeps so many idle connections to a host, and whether it knows root certificates. A machine without any must still be able to poll `http` addresses.
    fn client(
        &self,
        proxy: Option<&ReadyProxy>,
        versions: HttpVersions,
        (resolver, idle): (&Arc<GuardedResolver>, usize),
    ) -> Result<(Client, bool), FetchError> {
        let limits = &self.limits;
        let failed = |error: reqwest::Error| {
            let why = root_cause(&error.without_url());
            FetchError::Client { what: "be set up", why }
        };
        let proxy = proxy.map(|proxy| reqwest::Proxy::all(proxy.url().clone()));
        let proxy = proxy.transpose().map_err(failed)?;
        let own = self.certificates.iter().map(|der| Certificate::from_der(der));
        let own = own.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let builder = || {
            let builder = Client::builder()
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
                .http2_max_header_list_size(u32::try_from(MAX_HEADER_BYTES).unwrap_or(u32::MAX));
            let builder = match versions {
                HttpVersions::All => builder,
                HttpVersions::Http1 => builder.http1_only(),
            };
            match &proxy {
                Some(proxy) => builder.proxy(proxy.clone()),
                None => builder,
            }
        };
        let merged = builder().tls_certs_merge(own.iter().cloned());
        if let Ok(client) = merged.build() {
            return Ok((client, true));
        }
        let client = builder().tls_certs_only(own).build().map_err(failed)?;
        Ok((client, !self.certificates.is_empty()))
    }
}

/// The certificates in a file; else what is wrong.
pub(super) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unread =
        |error: std::io::Error| format!("the file {} cannot be read: {error}", path.display());
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unread)?;
    file.take(CA_FILE_LIMIT + 1).read_to_end(&mut bytes).map_err(unread)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > CA_FILE_LIMIT {
        return Err(format!(
            "the file {} is larger than {CA_FILE_LIMIT} bytes, the limit",
            path.display()
        ));
    }
    match CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>() {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(format!("the file {} has no certificate in PEM", path.display())),
    }
}

/// Checks that a file has certificates; else what is wrong.
pub fn check_certificates(path: &Path) -> Result<(), String> {
    read_certificates(path).map(|_| ())
}

/// How the gateway names itself where nothing else is configured.
const USER_AGENT: &str = concat!("Tidegate/", env!("CARGO_PKG_VERSION"));

/// What every request says of the gateway: how it names itself and what it reads.
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

#[cfg(test)]
mod tests;
