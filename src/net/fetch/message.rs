//! The requests and answers of [`Fetch`](super::Fetch).

use super::{LeadScope, RequestAccess, freshness};
use crate::origin::says_page;
use bytes::Bytes;
use http::HeaderMap;
use http::header::{ETAG, HeaderName, LAST_MODIFIED};
use std::fmt;
use std::time::Duration;
use tidegate_core::model::{BodyPrints, FeedRecord, Time};
use tidegate_core::sup::{SupAnnouncement, in_header, in_links};
use tidegate_core::websub::HubLinks;

/// The longest validator that is stored and sent back, in bytes.
pub const MAX_VALIDATOR_BYTES: usize = 1024;

/// `ETag` and `Last-Modified`, verbatim, and where they belong.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Validators {
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    /// The address that sent them; they are sent to no other.
    pub answered_by: Option<String>,
    /// Identifies the credentials of the request that got them, within this process; 0: none. With other credentials
    /// the document may differ, so they are not sent.
    pub credentials_id: u64,
}

impl Validators {
    /// Reads the validators of a response. One that is too long or not UTF-8 is dropped, because it could not be sent
    /// back verbatim.
    pub fn from_headers(headers: &HeaderMap, answered_by: &str, credentials_id: u64) -> Self {
        let kept = |name: &HeaderName| {
            let value = headers.get(name)?.as_bytes();
            let text = std::str::from_utf8(value).ok()?;
            (!text.is_empty() && text.len() <= MAX_VALIDATOR_BYTES).then(|| text.to_owned())
        };
        Self {
            etag: kept(&ETAG),
            last_modified: kept(&LAST_MODIFIED),
            answered_by: Some(answered_by.to_owned()),
            credentials_id,
        }
    }

    /// Completes the validators of a 304, which may omit them, by the earlier ones. The known document keeps its ETag:
    /// another one names a document that was not received (RFC 9111 section 4.3.4). Then the server compared the dates
    /// alone, so none is sent next time.
    pub fn or(self, earlier: &Self) -> Self {
        let opaque = |tag: &String| tag.trim_start_matches("W/").to_owned();
        let tags = self.etag.as_ref().zip(earlier.etag.as_ref());
        let is_same = tags.is_none_or(|(new, known)| opaque(new) == opaque(known));
        let last_modified = self.last_modified.or_else(|| earlier.last_modified.clone());
        Self {
            etag: earlier.etag.clone(),
            last_modified: last_modified.filter(|_| is_same),
            answered_by: self.answered_by.or_else(|| earlier.answered_by.clone()),
            credentials_id: self.credentials_id,
        }
    }

    /// Parses `Last-Modified`; `None` if it is no date.
    pub fn modified_at(&self) -> Option<Time> {
        self.last_modified.as_deref().and_then(freshness::date)
    }

    pub const fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}

/// A request for a document.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FetchRequest {
    /// The configured address; its credentials are sent only to its own origin.
    pub url: String,
    /// Where to begin instead: the target of an earlier permanent redirect.
    pub start: Option<String>,
    /// The validators of the last answer; empty to get the whole document.
    pub validators: Validators,
    /// Whether a delta from that document is acceptable (RFC 3229, `A-IM: feed`).
    pub deltas: bool,
    /// The fingerprint of the last body as transferred.
    pub known_wire: Option<u128>,
    /// Whether the host will probably be asked again within [`KEPT_IDLE`](super::KEPT_IDLE).
    pub soon: bool,
    /// The feed's own credentials, headers and route, if any.
    pub access: Option<RequestAccess>,
    /// Whether an answer that is not for everybody is refused.
    pub for_everybody: bool,
    /// Whether messages show only the origin of the address.
    pub is_secret: bool,
    /// The scope in which the address was named.
    pub leads: LeadScope,
    pub now: Time,
}

impl FetchRequest {
    /// Creates an unconditional request.
    pub fn whole(url: String, now: Time) -> Self {
        Self { url, now, ..Self::default() }
    }

    /// Applies the feed's access and secrecy, and the scope of what it may lead to. The answer for an on-demand feed
    /// without credentials must be for everybody.
    pub fn for_feed(self, feed: &FeedRecord, leads: LeadScope) -> Self {
        let access = feed.access.as_ref().map(|access| RequestAccess::new(&feed.url, access));
        let for_everybody = feed.on_demand.is_some() && !feed.private && access.is_none();
        let is_secret = feed.options.secret == Some(true);
        Self { access, for_everybody, is_secret, leads, ..self }
    }
}

impl fmt::Debug for FetchRequest {
    // The URL may contain credentials, so it is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchRequest")
            .field("start", &self.start)
            .field("validators", &self.validators)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// A completely received document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedDocument {
    /// The decompressed bytes.
    pub bytes: Bytes,
    /// `Content-Type`, verbatim.
    pub content_type: Option<String>,
    /// What its references are relative to: the address that answered, without credentials, or the one at which readers
    /// have the document of a site with a host of its own here.
    pub url: String,
    pub prints: BodyPrints,
    /// Whether it is a delta (status 226, RFC 3229).
    pub delta: bool,
}

/// The publisher's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchAnswer {
    /// Status 304.
    NotModified,
    /// The same transferred bytes as last time.
    Same,
    Document(FetchedDocument),
}

/// An answer with its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    pub answer: FetchAnswer,
    pub status: u16,
    /// The validators to send next time.
    pub validators: Validators,
    /// How long the answer is fresh, if stated.
    pub freshness: Option<Duration>,
    /// The address that answered, without credentials.
    pub final_url: String,
    /// The target of permanent redirects (301, 308) before any temporary one.
    pub moved_to: Option<String>,
    /// The bytes of the body as transferred.
    pub wire_bytes: u64,
    /// Notes for the operator, such as a redirect from HTTPS to HTTP.
    pub notes: Vec<String>,
    /// Whether the site sent it to a reader ([`Handover`](super::Handover)), so that it says nothing about the
    /// gateway's own requests.
    pub is_from_reader: bool,
    /// The scope of addresses that its document and headers may lead to.
    pub leads: LeadScope,
    /// How long the host accepts no more requests, if it says so.
    pub rate_reset: Option<Duration>,
    /// The SUP document named in its headers (SUP sections 6.1 and 6.3).
    pub announced: Option<SupAnnouncement>,
    /// The hubs and the topic named in its headers (WebSub section 4).
    pub links: HubLinks,
    /// The `Link` headers of an answer that declares itself a page.
    pub page_links: Vec<String>,
}

impl Fetched {
    /// Reads what the headers of an answer to `request` say. `print` identifies the credentials of the request. For the
    /// caller remain what the answer is, how it was reached, and where it may lead to.
    pub(crate) fn from_headers(
        (status, headers): (u16, &HeaderMap),
        final_url: String,
        request: &FetchRequest,
        print: u64,
    ) -> Self {
        let links = || texts(headers, "link");
        let header = texts(headers, "x-sup-id").find_map(in_header);
        let page_links = links().filter(|_| says_page(headers)).map(str::to_owned);
        Self {
            answer: FetchAnswer::NotModified,
            status,
            validators: Validators::from_headers(headers, &final_url, print),
            freshness: freshness::freshness(headers, request.now),
            moved_to: None,
            wire_bytes: 0,
            notes: Vec::new(),
            is_from_reader: false,
            leads: LeadScope::Public,
            rate_reset: freshness::rate_reset(headers, request.now),
            announced: header.or_else(|| links().find_map(|value| in_links(value, &final_url))),
            links: HubLinks::in_headers(links(), &final_url),
            page_links: page_links.collect(),
            final_url,
        }
    }
}

fn texts<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter().take(32);
    values.filter_map(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validators_that_are_long_or_no_text_are_not_kept() {
        let mut headers = HeaderMap::new();
        headers.insert(ETAG, "x".repeat(MAX_VALIDATOR_BYTES + 1).parse().unwrap());
        headers.insert(LAST_MODIFIED, http::HeaderValue::from_bytes(b"\xe9t\xe9").unwrap());
        assert!(Validators::from_headers(&headers, "http://e.org/", 0).is_empty());
        // Nor does a request show its credentials.
        let request = FetchRequest::whole("http://me:secret@e.org/".into(), Time::from_unix(0));
        assert!(!format!("{request:?}").contains("secret"));
    }

    #[test]
    fn a_304_without_another_etag_keeps_the_date() {
        let new = |etag: Option<&str>, date: Option<&str>| Validators {
            etag: etag.map(str::to_owned),
            last_modified: date.map(str::to_owned),
            ..Validators::default()
        };
        for (etag, known) in [
            (None, Some("\"1\"")),
            (Some("W/\"1\""), Some("\"1\"")),
            // It may be that of a document that was not received.
            (Some("\"2\""), None),
        ] {
            let next = new(etag, None).or(&new(known, Some("then")));
            assert_eq!(next, new(known, Some("then")), "{etag:?}");
        }
    }

    #[test]
    fn a_sup_document_is_found_in_either_header() {
        let of = |pairs: &[(&str, &str)]| {
            let headers = crate::testing::headers(pairs);
            let url = "http://e.org/feed".to_owned();
            let request = FetchRequest::whole(url.clone(), Time::from_unix(0));
            let fetched = Fetched::from_headers((200, &headers), url, &request, 0);
            fetched.announced.map(|place| place.document)
        };
        let link = format!("</sup#1>; rel=\"{}\"", tidegate_core::sup::RELATION);
        let found = |address: &str| Some(address.to_owned());
        assert_eq!(of(&[("link", "</>; rel=self"), ("link", &link)]), found("http://e.org/sup"));
        let header = ("x-sup-id", "http://o.org/s#1");
        assert_eq!(of(&[("link", &link), header]), found("http://o.org/s"));
        assert_eq!(of(&[("link", &link), ("x-sup-id", "none")]), found("http://e.org/sup"));
        assert_eq!(of(&[("link", "</sup#1>; rel=sup")]), None);
    }
}
