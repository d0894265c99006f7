//! What the sites that the gateway stands in front of are told of their public names, and what they say by them.

use super::Core;
use crate::fetch::call::location;
use crate::fetch::guard::read_url;
use crate::origin::site_of;
use http::header::{HeaderMap, HeaderValue};
use url::Url;

impl Core {
    /// Has the site of an address learn its public name.
    pub(in crate::fetch) fn say_name(&self, url: &Url, headers: &mut HeaderMap) {
        let site = site_of(&self.sites, url);
        if let Some(name) = site.and_then(|site| site.public_name()) {
            name.write(headers);
        }
    }

    /// The address at a site of one of ours that is the site's, so that the gateway never asks itself.
    pub(super) fn behind_our_address(&self, url: &Url) -> Option<Url> {
        let mut named = self.sites.iter().filter(|site| site.public_name().is_some());
        named.find_map(|site| site.upstream_of(url))
    }

    /// Where the site of an address of ours has moved it, as remembered; `None` where that is no more at the site.
    pub(super) fn moved_within_site(&self, ours: &str, to: &Url) -> Option<Url> {
        let at = self.behind_our_address(&read_url(ours).ok()?)?;
        site_of(&self.sites, &at)?.there(to)
    }

    /// Where a redirect of a site leads at the site, also where the site says it by its public name; `None` where it
    /// leads elsewhere, or `from` is of no site.
    pub(in crate::fetch) fn within_site(
        &self,
        led: Option<&HeaderValue>,
        from: &Url,
    ) -> Option<Url> {
        let site = site_of(&self.sites, from).filter(|site| site.public_name().is_some())?;
        site.there(&location(led, from)?)
    }
}

#[cfg(test)]
mod tests;
