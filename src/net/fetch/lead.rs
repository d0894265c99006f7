//! Where foreign answers may lead: by their redirects, and by the addresses that their documents name. Pure.
//!
//! Private addresses are for the operator to name. Who publishes elsewhere must not choose what this gateway asks for
//! behind its walls, and publishes.

use super::error::FetchError;
use super::guard::{AllowPrivate, Refusal, is_same_place, read_url, shown, strip_credentials};
use crate::origin::spelled_below;
use std::fmt;
use tidegate_core::model::FeedRecord;
use url::Url;

/// Which addresses that are not public may be asked for, of those that `polling.allow_private` admits.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum LeadScope {
    /// All of them: whoever asks names the address himself.
    #[default]
    Allowed,
    /// Those to which each of these addresses may lead: to its own host and port, and elsewhere if its host is the
    /// operator's own.
    Places(Vec<Url>),
    /// Those of the site that the operator admits, whose feed a request made.
    Site(Url),
    /// None.
    Public,
}

impl fmt::Debug for LeadScope {
    // The address of a feed or of a callback may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = |url: &Url| url.origin().ascii_serialization();
        match self {
            Self::Allowed => f.write_str("Allowed"),
            Self::Places(places) => f.debug_list().entries(places.iter().map(origin)).finish(),
            Self::Site(site) => f.debug_tuple("Site").field(&origin(site)).finish(),
            Self::Public => f.write_str("Public"),
        }
    }
}

impl LeadScope {
    /// Of a feed's own address, and of what its documents and answers name. Messages tell of an address that the operator
    /// keeps secret no more than its origin.
    pub fn of_feed(feed: &FeedRecord) -> Self {
        if let Some(made) = &feed.on_demand {
            return read_url(&made.site).map_or(Self::Public, Self::Site);
        }
        let is_secret = feed.options.secret == Some(true);
        read_url(&feed.url).map_or(Self::Public, |url| Self::Places(vec![named(url, is_secret)]))
    }

    /// The same of a feed that a list added.
    pub fn added_by(self, list: &FeedRecord) -> Self {
        match (Self::of_feed(list), self) {
            (Self::Places(list), Self::Places(feed)) => Self::Places([list, feed].concat()),
            _ => Self::Public,
        }
    }

    /// Whether an answer may lead to an address, as far as the addresses themselves tell. What is asked for in the end
    /// passes the guard all the same.
    pub fn admits(&self, to: &Url, allow: &AllowPrivate) -> bool {
        !allow.is_own_host(to) || self.contains(to, |place| allow.is_own_host(place))
    }

    /// Whether an address may be private. `is_own`: whether an address is at a host of the operator's own.
    pub(super) fn contains(&self, to: &Url, is_own: impl Fn(&Url) -> bool) -> bool {
        match self {
            Self::Allowed => true,
            Self::Places(places) => places.iter().all(|at| is_same_place(at, to) || is_own(at)),
            Self::Site(site) => spelled_below(to.clone(), site).is_some(),
            Self::Public => false,
        }
    }

    /// Who names an address.
    pub(super) fn named_by(&self, to: &Url) -> Option<&Url> {
        match self {
            Self::Places(places) => places.iter().rev().find(|place| *place != to),
            Self::Site(site) => Some(site),
            Self::Allowed | Self::Public => None,
        }
    }
}

/// An address that is about to be asked for.
pub(super) struct LedRequest {
    /// Within which it is named.
    pub(super) scope: LeadScope,
    /// Who leads there.
    pub(super) from: Option<Url>,
    pub(super) to: Url,
    /// Whether messages name no address but its origin.
    pub(super) is_secret: bool,
    /// Whether it may be private.
    pub(super) is_within: bool,
    /// Why nobody can tell that now.
    pub(super) unknown: Option<FetchError>,
}

impl LedRequest {
    /// Which addresses its answer may lead to.
    pub(super) fn into_scope(self) -> LeadScope {
        match self.scope {
            LeadScope::Site(site) if self.is_within => LeadScope::Site(site),
            _ if self.is_within => LeadScope::Places(vec![named(self.to, self.is_secret)]),
            _ => LeadScope::Public,
        }
    }

    /// A refusal of the address, with who led there and what can be done.
    pub(super) fn explain(&self, error: FetchError) -> FetchError {
        let FetchError::Refused { hop, refusal: Refusal::Address { what, .. } } = &error else {
            return error;
        };
        let from = match (&self.unknown, &self.from) {
            _ if self.is_within => return error,
            (Some(unknown), _) => return unknown.clone(),
            (None, None) => return error,
            (None, Some(from)) => shown(&named(from.clone(), self.is_secret)),
        };
        let advice = match &self.scope {
            LeadScope::Site(site) => format!(
                "a feed that a request made leads to its site, {}, and to public addresses alone; if \
                 that is meant, put a feed with this address into the configuration",
                shown(site)
            ),
            _ => {
                "what is published at a public address leads to public addresses alone; if that is \
                  meant, give the feed an address at a host that polling.allow_private lists"
                    .to_owned()
            }
        };
        let to = shown(&named(self.to.clone(), self.is_secret));
        let why = format!("{from} leads to {to}, which has {what}; {advice}");
        FetchError::Refused { hop: *hop, refusal: Refusal::Led(why) }
    }
}

/// An address as scopes and messages name it: without credentials; of a secret one no more than its origin.
fn named(url: Url, is_secret: bool) -> Url {
    let mut url = without_credentials(url);
    if is_secret {
        url.set_path("");
        url.set_query(None);
    }
    url
}

/// An address without credentials, which nobody has a right to bring who names it, and without fragment.
pub(super) fn without_credentials(mut url: Url) -> Url {
    strip_credentials(&mut url);
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests;
