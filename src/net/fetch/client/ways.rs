//! Chooses the client of a request after its address has passed the guard, and maps our public addresses to the sites
//! behind.

use super::Core;
use crate::fetch::FetchLimits;
use crate::fetch::access::ReadyProxy;
use crate::fetch::clients::HttpVersions;
use crate::fetch::error::{ACCEPTING, FetchBlame, FetchError, unreached};
use crate::fetch::guard::{self, AllowPrivate, Openness, kind};
use crate::fetch::lead::{LeadScope, LedRequest};
use crate::fetch::pass::Passers;
use crate::fetch::redirect::target;
use crate::fetch::resolver::LookupError;
use crate::origin::site_of;
use http::header::HeaderMap;
use reqwest::Client;
use tidegate_core::model::ProxyRoute;
use url::{Host, Position, Url};
use xxhash_rust::xxh3::xxh3_64;

/// How a request is sent.
#[derive(Clone, Copy)]
pub(in crate::fetch) struct RequestWay<'r> {
    /// Its own route; `None`: that of the gateway.
    pub(in crate::fetch) route: Option<&'r ProxyRoute>,
    /// The allowed versions of HTTP.
    pub(in crate::fetch) versions: HttpVersions,
    /// Whether only public addresses may be connected to.
    pub(in crate::fetch) is_public: bool,
}

/// The client for a request, with its proxy.
pub(in crate::fetch) struct ClientForRequest {
    pub(in crate::fetch) client: Client,
    /// The proxy's address for messages.
    proxy: Option<String>,
}

impl Core {
    /// Checks an address and returns the clients that pass requests on; `None` if these must use the proxy.
    pub(in crate::fetch) fn passers(
        &self,
        url: &Url,
        versions: HttpVersions,
    ) -> Result<Option<&Passers>, FetchError> {
        let openness = self.admit(url, 0, false)?;
        if self.proxy.is_some() && !self.allow.is_own_host(url) {
            return Ok(None);
        }
        let [public, opened] = &self.passers;
        let [all, hosted] = if openness == Openness::Public { public } else { opened };
        let place = if versions == HttpVersions::All { all } else { hosted };
        Ok(Some(place.get_or_init(|| self.maker.passers(openness, versions))))
    }

    /// Checks an address with the guard. `is_public`: refuses all that is not public.
    fn admit(&self, url: &Url, hop: usize, is_public: bool) -> Result<Openness, FetchError> {
        let allow = if is_public { &AllowPrivate::No } else { &self.allow };
        let openness =
            guard::check(url, allow).map_err(|refusal| FetchError::Refused { hop, refusal })?;
        if url.scheme() == "https" && !self.maker.trust.has_authorities {
            return Err(FetchError::NoRoots);
        }
        Ok(openness)
    }

    /// Checks an address and returns the client to use. `soon`: the host is asked again within
    /// [`KEPT_IDLE`](crate::fetch::KEPT_IDLE).
    pub(in crate::fetch) async fn client_for(
        &self,
        url: &Url,
        hop: usize,
        soon: bool,
        way: RequestWay<'_>,
    ) -> Result<ClientForRequest, FetchError> {
        let RequestWay { route, versions, is_public } = way;
        let openness = self.admit(url, hop, is_public)?;
        let proxy = match route {
            Some(ProxyRoute::Direct) => None,
            Some(ProxyRoute::Proxy(proxy)) => Some(ReadyProxy::read_soon(proxy).await?),
            // The operator's own hosts are reached directly.
            None => self.proxy.clone().filter(|_| !self.allow.is_own_host(url)),
        };
        if let Some(proxy) = &proxy {
            self.check_name(url, hop, openness, proxy).await?;
        }
        let clients = self.maker.clients(proxy.as_ref(), openness, versions)?;
        let host = xxh3_64(url[..Position::BeforePath].as_bytes());
        let client = if self.kept.admit(host, soon) { clients.keeping } else { clients.closing };
        Ok(ClientForRequest { client, proxy: proxy.map(|proxy| proxy.shown()) })
    }

    /// Determines whether `to` may be private, given the scope in which it was named. `from`: the address that led
    /// there, unless it is the first hop. `is_secret`: messages show only origins.
    pub(in crate::fetch) async fn lead(
        &self,
        (scope, is_secret): (LeadScope, bool),
        from: Option<Url>,
        to: &Url,
    ) -> LedRequest {
        let from = from.or_else(|| scope.named_by(to).cloned());
        let (is_within, unknown) = match self.is_within(&scope, to).await {
            Ok(is_within) => (is_within, None),
            // If the address of a list cannot be resolved, it is unknown whether the list is private.
            Err(unknown) => {
                let is_listed = matches!(&scope, LeadScope::Places(places) if places.len() > 1);
                (false, Some(unknown).filter(|_| is_listed))
            }
        };
        LedRequest { scope, from, to: to.clone(), is_secret, is_within, unknown }
    }

    async fn is_within(&self, scope: &LeadScope, to: &Url) -> Result<bool, FetchError> {
        let LeadScope::Places(places) = scope else { return Ok(scope.contains(to, |_| false)) };
        for at in places {
            let there = self.behind_our_address(at);
            let at = there.as_ref().unwrap_or(at);
            if !guard::is_same_place(at, to) && !self.is_own(at).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether an address is at a host of the operator's own. If all private addresses are allowed, a name is so if it
    /// resolves to private ones only.
    async fn is_own(&self, url: &Url) -> Result<bool, FetchError> {
        if self.allow.is_own_host(url) {
            return Ok(true);
        }
        let (AllowPrivate::All, Some(Host::Domain(name))) = (&self.allow, url.host()) else {
            return Ok(false);
        };
        match self.maker.resolver(Openness::Private).look_up(name).await {
            Ok(found) => {
                let is_private = found.iter().all(|address| kind(address.ip()).is_some());
                Ok(is_private && !found.is_empty())
            }
            Err(LookupError::Refused(_)) => Ok(false),
            Err(LookupError::Unresolved(why)) => {
                Err(FetchError::Name { host: name.to_owned(), why })
            }
        }
    }

    /// Resolves a name before a proxy is asked to connect to it, and refuses it unless the guard admits an address.
    async fn check_name(
        &self,
        url: &Url,
        hop: usize,
        openness: Openness,
        proxy: &ReadyProxy,
    ) -> Result<(), FetchError> {
        let Some(Host::Domain(name)) = url.host() else { return Ok(()) };
        match self.maker.resolver(openness).look_up(name).await {
            Ok(found) if !found.is_empty() => Ok(()),
            Err(LookupError::Refused(refusal)) => Err(FetchError::Refused { hop, refusal }),
            _ if self.proxy_resolves && !proxy.resolves_here() => Ok(()),
            Err(LookupError::Unresolved(why)) => Err(unresolved_name(name, &why)),
            Ok(_) => Err(unresolved_name(name, "it has none")),
        }
    }
}

/// Public names of the sites in front of which the gateway stands.
impl Core {
    /// Tells the site of an address its public name, by headers.
    pub(in crate::fetch) fn say_name(&self, url: &Url, headers: &mut HeaderMap) {
        let site = site_of(&self.sites, url);
        if let Some(name) = site.and_then(|site| site.public_name()) {
            name.write(headers);
        }
    }

    /// Maps one of our public addresses to the site behind, so that the gateway never asks itself.
    pub(super) fn behind_our_address(&self, url: &Url) -> Option<Url> {
        let mut named = self.sites.iter().filter(|site| site.public_name().is_some());
        named.find_map(|site| site.upstream_of(url))
    }

    /// Returns the remembered new address within the site behind `ours`; `None` if it is outside by now.
    pub(super) fn moved_within_site(&self, ours: &Url, to: &Url) -> Option<Url> {
        let at = self.behind_our_address(ours)?;
        site_of(&self.sites, &at)?.there(to)
    }

    /// Returns where a redirect leads within the site of `from`, also if the site used its public name; `None` if it
    /// leads elsewhere or `from` belongs to no site.
    pub(in crate::fetch) fn within_site(&self, led: Option<&[u8]>, from: &Url) -> Option<Url> {
        let site = site_of(&self.sites, from).filter(|site| site.public_name().is_some())?;
        site.there(&target(led, from)?)
    }
}

impl ClientForRequest {
    /// Explains why no response came.
    pub(in crate::fetch) fn unreached(
        &self,
        error: reqwest::Error,
        url: &Url,
        hop: usize,
        limits: &FetchLimits,
    ) -> FetchError {
        let error = unreached(error, url, hop, limits);
        match (error, &self.proxy) {
            (FetchError::Connect { host, why } | FetchError::Name { host, why }, Some(proxy)) => {
                let is_refused = why.ends_with("proxy authorization required");
                let blame = if is_refused { FetchBlame::Operator } else { FetchBlame::Network };
                let why = format!("the proxy {proxy} gave no connection to {host}: {why}");
                FetchError::Unusable { blame, why }
            }
            (FetchError::Timeout { what: ACCEPTING, limit }, Some(proxy)) => {
                let (host, limit) = (url.host_str().unwrap_or_default(), limit.as_secs_f32());
                let why =
                    format!("the proxy {proxy} gave no connection to {host} within {limit} s");
                FetchError::Unusable { blame: FetchBlame::Network, why }
            }
            (error, _) => error,
        }
    }
}

/// Refuses a name that cannot be resolved here before a proxy is asked for it.
fn unresolved_name(host: &str, why: &str) -> FetchError {
    FetchError::operator(format!(
        "the name {host} leads to no address here ({why}), so that nobody knows whether the proxy would \
         find a private one; say polling.proxy_resolves = true if only the proxy knows names"
    ))
}

#[cfg(test)]
mod tests;
