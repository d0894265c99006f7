//! Sites that the configuration admits, and what is found there.

use http::HeaderMap;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_config::AllowConfig;
use tidegate_core::model::{FeedName, ShownAddress};
use tidegate_net::origin::{NotForEverybody, OriginPlace, OriginSite, WholeAnswer, spelled_below};
use url::Url;

/// A site that the configuration admits, and how many feeds it may get by requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmittedSite {
    pub url: Url,
    pub feeds: u32,
    /// The origin that it is, where it is one.
    origin: Option<Arc<OriginSite>>,
}

impl AdmittedSite {
    pub(super) fn of_origin(site: &Arc<OriginSite>) -> Self {
        let (url, feeds) = (site.config().url.clone(), site.config().feeds);
        Self { url, feeds, origin: Some(Arc::clone(site)) }
    }

    pub(super) fn allowed(allowed: &AllowConfig) -> Self {
        Self { url: allowed.url.clone(), feeds: allowed.feeds, origin: None }
    }

    /// What a request of the gateway's own to an address says of the site's public name.
    pub fn say_name(&self, url: &Url, headers: &mut HeaderMap) {
        let origin = self.origin.as_ref().filter(|origin| origin.holds(url));
        if let Some(name) = origin.and_then(|origin| origin.public_name()) {
            name.write(headers);
        }
    }

    /// The address at the site of one that is below it, or that is an origin's here, as [`spelled_below`] spells it;
    /// `None` where it is neither.
    pub fn there(&self, url: &Url) -> Option<Url> {
        match &self.origin {
            Some(origin) => origin.there(url),
            None => spelled_below(url.clone(), &self.url),
        }
    }

    /// Whether a feed with this address is the one at an address of the site, in whatever spelling.
    pub fn is_at(&self, feed: &str, url: &Url) -> bool {
        let there = || Url::parse(feed).ok().and_then(|feed| self.there(&feed));
        // Most addresses have one spelling, and are not read for this.
        let may_be =
            || feed.contains('%') || self.origin.as_ref().is_some_and(|site| site.is_public(feed));
        feed == url.as_str() || may_be() && there().is_some_and(|there| there == *url)
    }

    /// The address that a feed is named after: at a host of its own the one here, as no document names the other one.
    pub fn naming_address(&self, url: &Url) -> Url {
        let has_host =
            |site: &&Arc<OriginSite>| matches!(site.config().place, OriginPlace::Host(_));
        let here = self.origin.as_ref().filter(has_host).and_then(|site| site.public_address(url));
        here.and_then(|here| Url::parse(&here).ok()).unwrap_or_else(|| url.clone())
    }

    /// Whether an address has a key in it: whoever knows it has the document.
    pub fn shows_key(&self, url: &Url) -> bool {
        match &self.origin {
            Some(origin) => origin.shows_key(url),
            None => ShownAddress::new(url.as_str(), None).is_masked(),
        }
    }
}

/// What is known of a document that is a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedTraits {
    /// Whether it would be published with the ids that it has.
    pub keeps_ids: bool,
    pub is_json: bool,
}

/// A feed to which an address at a site leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveredFeed {
    /// The address behind the leading permanent redirects (301, 308), as far as no temporary one came before.
    pub permanent: Url,
    /// The address behind all redirects.
    pub end: Url,
    pub traits: FeedTraits,
    pub title: String,
    /// What is there.
    pub answer: WholeAnswer,
}

/// What is at an address that a reader names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundAddress {
    Feed(Box<DiscoveredFeed>),
    /// A page, with the feeds of its site that it names, each with its title.
    Page(Vec<(Url, String)>),
    /// A feed that is not for everybody.
    Closed(NotForEverybody),
    /// Neither, or nothing that can be had.
    Nothing,
}

/// Whether headers are such.
pub type HeaderRule<'r> = dyn Fn(&HeaderMap) -> bool + Send + Sync + 'r;

/// The sites that the gateway stands in front of.
#[derive(Clone, Default)]
pub struct OriginSettings {
    pub sites: Vec<Arc<OriginSite>>,
    pub allow: Vec<AllowConfig>,
    /// Feeds with a path of their own.
    pub paths: HashMap<FeedName, String>,
}
