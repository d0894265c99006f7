//! Where foreign answers may lead: by their redirects, and by the addresses that their documents name. Pure.
//!
//! Private addresses are for the operator to name. Who publishes elsewhere must not choose what this gateway asks for
//! behind its walls, and publishes.

use super::error::FetchError;
use super::guard::{AllowPrivate, Refusal, is_same_place, read_url, shown, strip_credentials};
use crate::origin::spelled_below;
use tidegate_core::model::FeedRecord;
use url::Url;

/// On whose word an address is asked for. By default it is that of who asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeadScope {
    /// The addresses that led to this one, each of which was named by the one before, or which it is itself.
    pub(super) named_by: Vec<String>,
    /// The site that the operator admits, where a request made the feed that leads there.
    pub site: Option<String>,
}

impl LeadScope {
    /// Of a feed's own address, and of what its documents and answers name. Messages tell of an address that the operator
    /// keeps secret no more than its origin.
    pub fn of_feed(feed: &FeedRecord) -> Self {
        let site = feed.on_demand.as_ref().map(|made| made.site.clone());
        let hides = site.is_none() && feed.options.secret == Some(true);
        let origin = read_url(&feed.url).ok().filter(|_| hides);
        let origin = origin.map(|url| url.origin().ascii_serialization());
        Self { named_by: vec![origin.unwrap_or_else(|| feed.url.clone())], site }
    }

    /// Whether an answer may lead to an address, as far as the addresses themselves tell. What is asked for in the end
    /// passes the guard all the same.
    pub fn admits(&self, to: &Url, allow: &AllowPrivate) -> bool {
        let is_led =
            |trail: LeadTrail| trail.stays(to) || trail.may_leave() && allow.is_own_host(&trail.at);
        let last = self.named_by.last().cloned().into_iter().collect();
        let by = Self { named_by: last, ..self.clone() };
        !allow.is_own_host(to) || LeadTrail::begin(&by, to.as_str()).is_ok_and(is_led)
    }

    /// Of what the answer of an address names that is asked for on this word.
    pub fn by_answer(mut self, address: &str) -> Self {
        self.named_by.push(address.to_owned());
        self
    }

    /// The same of a feed that a list added.
    pub fn added_by(self, list: &FeedRecord) -> Self {
        let named_by = [Self::of_feed(list).named_by, self.named_by].concat();
        Self { named_by, site: self.site }
    }
}

/// What can be done where a feed leads to an address that is not public, and may not.
fn advice(site: Option<&Url>) -> String {
    match site.map(shown) {
        Some(site) => format!(
            "a feed that a request made leads to its site, {site}, and to public addresses alone; if \
             that is meant, put a feed with this address into the configuration"
        ),
        None => {
            "what is published at a public address leads to public addresses alone; if that is \
             meant, give the feed an address at a host that polling.allow_private lists"
                .to_owned()
        }
    }
}

/// An address on the way, as it is asked for.
pub(super) fn read_named(address: &str) -> Result<Url, Refusal> {
    read_url(address).map(without_credentials)
}

/// An address without credentials, which nobody has a right to bring who names it, and without fragment.
pub(super) fn without_credentials(mut url: Url) -> Url {
    strip_credentials(&mut url);
    url.set_fragment(None);
    url
}

/// The way from the address that may be private to where answers lead.
pub(super) struct LeadTrail {
    /// Where it is.
    pub(super) at: Url,
    from: Option<Url>,
    /// Whether a request made the feed.
    is_on_demand: bool,
    site: Option<Url>,
    is_confined: bool,
    /// Why nobody can tell now whether where it is may be private.
    unknown: Option<FetchError>,
}

impl LeadTrail {
    /// Begins where somebody named an address who may.
    pub(super) fn begin(scope: &LeadScope, asked: &str) -> Result<Self, Refusal> {
        let at = read_named(scope.named_by.first().map_or(asked, String::as_str))?;
        let site = scope.site.as_deref().and_then(|site| read_url(site).ok());
        let is_on_demand = scope.site.is_some();
        Ok(Self { at, from: None, is_on_demand, site, is_confined: false, unknown: None })
    }

    /// Whether it is at public addresses alone from now on.
    pub(super) const fn is_confined(&self) -> bool {
        self.is_confined
    }

    /// Whether the next address needs no more leave than this one: it is at the same host and port, or at the same
    /// site where a request made the feed.
    pub(super) fn stays(&self, to: &Url) -> bool {
        if self.is_on_demand {
            let is_at = |site: &Url, url: &Url| spelled_below(url.clone(), site).is_some();
            let is_within = |url: &Url| self.site.as_ref().is_some_and(|site| is_at(site, url));
            return self.at == *to || is_within(&self.at) && is_within(to);
        }
        is_same_place(&self.at, to)
    }

    /// Whether a private host may lead to another one.
    pub(super) const fn may_leave(&self) -> bool {
        !self.is_confined && !self.is_on_demand
    }

    /// Goes on; `is_free`: to an address that may be private.
    pub(super) fn go(&mut self, to: &Url, is_free: bool) {
        self.is_confined |= !is_free;
        if self.at != *to {
            self.from = Some(std::mem::replace(&mut self.at, to.clone()));
            self.unknown = None;
        }
    }

    /// Goes on to public addresses alone, since nobody can tell now whether it may be to others.
    pub(super) fn go_unknown(&mut self, to: &Url, why: FetchError) {
        self.go(to, false);
        self.unknown = Some(why);
    }

    /// A refusal of where it is, with who led there.
    pub(super) fn explained(&self, error: FetchError) -> FetchError {
        let FetchError::Refused { hop, refusal: Refusal::Address { what, .. } } = &error else {
            return error;
        };
        match (&self.unknown, &self.from) {
            (Some(why), _) => why.clone(),
            (None, Some(from)) if self.is_confined => {
                let (from, to, advice) = (shown(from), shown(&self.at), advice(self.site.as_ref()));
                let why = format!("{from} leads to {to}, which has {what}; {advice}");
                FetchError::Refused { hop: *hop, refusal: Refusal::Led(why) }
            }
            _ => error,
        }
    }
}

#[cfg(test)]
mod tests;
