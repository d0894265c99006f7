//! Discovers the updates document of a feed (SUP section 6).

use super::links::{HEADER_LIMIT, links};
use crate::model::SupId;
use url::Url;

/// The link relation from a feed to the updates document that lists it (section 6.2).
pub const RELATION: &str = "http://api.friendfeed.com/2008/03#sup";

/// The updates document of a feed, and the feed's id in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SupAnnouncement {
    /// The address of the updates document.
    pub document: String,
    /// The feed's id in it.
    pub id: SupId,
}

/// Parses `X-SUP-ID` (section 6.1): an absolute address whose fragment is the SUP id. Without a fragment it names no
/// feed (READINGS 4, row 6).
pub fn in_header(value: &str) -> Option<SupAnnouncement> {
    (value.len() <= HEADER_LIMIT).then(|| Url::parse(value.trim()).ok()).flatten().and_then(place)
}

/// Parses the target of a link element (section 6.2). `base`: the address of the feed.
pub fn in_link(href: &str, base: &str) -> Option<SupAnnouncement> {
    let base = Url::parse(base).ok()?;
    base.join(href.trim()).ok().and_then(place)
}

/// Parses a `Link` header (section 6.3, RFC 8288). `base`: the address of the feed.
pub fn in_links(value: &str, base: &str) -> Option<SupAnnouncement> {
    links(value).find(|link| link.is(RELATION)).and_then(|link| in_link(link.target, base))
}

fn place(mut url: Url) -> Option<SupAnnouncement> {
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    let id = SupId::new(url.fragment()?).ok()?;
    url.set_fragment(None);
    // A publisher must not choose the credentials that we send.
    url.set_username("").and_then(|()| url.set_password(None)).ok()?;
    Some(SupAnnouncement { document: url.into(), id })
}
