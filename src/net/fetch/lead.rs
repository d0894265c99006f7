//! Limits where foreign answers may lead, by redirects and by addresses in documents. Pure.
//!
//! Only the operator may name private addresses. Otherwise a foreign publisher could choose what this gateway fetches
//! inside the private network and publishes.

use super::error::FetchError;
use super::guard::{AllowPrivate, Refusal, is_same_place, read_url, shown, strip_credentials};
use crate::origin::spelled_below;
use std::fmt;
use tidegate_core::model::FeedRecord;
use url::Url;

/// Which private addresses may be requested, among those that `polling.allow_private` admits.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum LeadScope {
    /// All: the requester named the address personally.
    #[default]
    Allowed,
    /// What the requested address itself may lead to: [`Self::Places`] with this address.
    Own,
    /// Addresses to which each of these may lead: its own host and port, and any other if its host is the operator's
    /// own.
    Places(Vec<Url>),
    /// Addresses below the site of an on-demand feed, which the operator configured.
    Site(Url),
    /// No private addresses.
    Public,
}

impl fmt::Debug for LeadScope {
    // The address of a feed or callback may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = |url: &Url| url.origin().ascii_serialization();
        match self {
            Self::Allowed => f.write_str("Allowed"),
            Self::Own => f.write_str("Own"),
            Self::Places(places) => f.debug_list().entries(places.iter().map(origin)).finish(),
            Self::Site(site) => f.debug_tuple("Site").field(&origin(site)).finish(),
            Self::Public => f.write_str("Public"),
        }
    }
}

impl LeadScope {
    /// Returns the scope of a feed's own address and of what its documents and answers name. A secret address is
    /// reduced to its origin, because messages show it.
    pub fn of_feed(feed: &FeedRecord) -> Self {
        if let Some(made) = &feed.on_demand {
            return read_url(&made.site).map_or(Self::Public, Self::Site);
        }
        let is_secret = feed.options.secret == Some(true);
        read_url(&feed.url).map_or(Self::Public, |url| Self::of_address(url, is_secret))
    }

    /// Returns what an address and its answers may lead to.
    pub(super) fn of_address(url: Url, is_secret: bool) -> Self {
        Self::Places(vec![scope_address(url, is_secret)])
    }

    /// Restricts the scope of a feed by that of the list that added it.
    pub fn added_by(self, list: &FeedRecord) -> Self {
        match (Self::of_feed(list), self) {
            (Self::Places(list), Self::Places(feed)) => Self::Places([list, feed].concat()),
            _ => Self::Public,
        }
    }

    /// Whether an answer may lead to an address, judging by the addresses alone; the guard checks again before the
    /// request.
    pub fn admits(&self, to: &Url, allow: &AllowPrivate) -> bool {
        !allow.is_own_host(to) || self.contains(to, |place| allow.is_own_host(place))
    }

    /// Whether `to` may be private. `is_own`: whether an address is at a host of the operator's own.
    pub(super) fn contains(&self, to: &Url, is_own: impl Fn(&Url) -> bool) -> bool {
        match self {
            Self::Allowed => true,
            Self::Places(places) => places.iter().all(|at| is_same_place(at, to) || is_own(at)),
            Self::Site(site) => spelled_below(to.clone(), site).is_some(),
            Self::Public | Self::Own => false,
        }
    }

    /// Returns the address that leads to `to`, for messages.
    pub(super) fn named_by(&self, to: &Url) -> Option<&Url> {
        match self {
            Self::Places(places) => places.iter().rev().find(|place| *place != to),
            Self::Site(site) => Some(site),
            Self::Allowed | Self::Own | Self::Public => None,
        }
    }
}

/// An address about to be requested.
pub(super) struct LedRequest {
    /// The scope in which it was named.
    pub(super) scope: LeadScope,
    /// The address that leads to it.
    pub(super) from: Option<Url>,
    pub(super) to: Url,
    /// Whether messages show only origins.
    pub(super) is_secret: bool,
    /// Whether it may be private.
    pub(super) is_within: bool,
    /// Why that cannot be determined now, if so.
    pub(super) unknown: Option<FetchError>,
}

impl LedRequest {
    /// Returns the scope of what its answer may lead to.
    pub(super) fn into_scope(self) -> LeadScope {
        match self.scope {
            LeadScope::Site(site) if self.is_within => LeadScope::Site(site),
            _ if self.is_within => LeadScope::of_address(self.to, self.is_secret),
            _ => LeadScope::Public,
        }
    }

    /// Extends a refusal of the address by what led to it and what can be done.
    pub(super) fn explain(&self, error: FetchError) -> FetchError {
        let FetchError::Refused { hop, refusal: Refusal::Address { what, .. } } = &error else {
            return error;
        };
        let from = match (&self.unknown, &self.from) {
            _ if self.is_within => return error,
            (Some(unknown), _) => return unknown.clone(),
            (None, None) => return error,
            (None, Some(from)) => shown(&scope_address(from.clone(), self.is_secret)),
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
        let to = shown(&scope_address(self.to.clone(), self.is_secret));
        let why = format!("{from} leads to {to}, which has {what}; {advice}");
        FetchError::Refused { hop: *hop, refusal: Refusal::Led(why) }
    }
}

/// Returns an address as scopes and messages use it: without credentials; only the origin if secret.
fn scope_address(url: Url, is_secret: bool) -> Url {
    let mut url = without_credentials(url);
    if is_secret {
        url.set_path("");
        url.set_query(None);
    }
    url
}

/// Returns an address without fragment and without credentials, which a foreign document has no right to supply.
pub(super) fn without_credentials(mut url: Url) -> Url {
    strip_credentials(&mut url);
    url.set_fragment(None);
    url
}

#[cfg(test)]
mod tests;
