//! Decides which answers of an origin may become feeds: only those that everybody gets. Answers to requests with
//! credentials or cookies, and answers marked as for one client, do not.

use http::header::{self, HeaderMap, HeaderName};
use http::{Method, StatusCode};
use url::Url;

/// Request headers that identify the client.
const PERSONAL: [HeaderName; 2] = [header::COOKIE, header::AUTHORIZATION];
/// Marks of an answer that is not for everybody: the header, the word in it, and both for messages.
const CLOSED: [(&str, &str, &str); 5] = [
    ("cache-control", "private", "Cache-Control: private"),
    ("cache-control", "no-store", "Cache-Control: no-store"),
    ("vary", "*", "Vary: *"),
    ("vary", "cookie", "Vary: Cookie"),
    ("vary", "authorization", "Vary: Authorization"),
];
/// Values of `Vary` that do not say that a client chooses between documents. Many servers say `User-Agent` of every
/// answer, because of browsers that could not take compressed ones.
const NEUTRAL: [&str; 3] = ["accept-encoding", "origin", "user-agent"];
/// Media types of feeds, and the XML and JSON types of servers without configuration for feeds.
const TYPES: [&str; 8] = [
    "application/atom+xml",
    "application/rss+xml",
    "application/rdf+xml",
    "application/feed+json",
    "application/json",
    "application/xml",
    "text/xml",
    "application/x-rss+xml",
];
const PAGES: [&str; 2] = ["text/html", "application/xhtml+xml"];

/// Whether the answer to a request may create a feed, because everybody gets it. Conditional and range requests
/// qualify: an answer with status 200 is whole all the same.
pub fn may_make_feed(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::GET && !PERSONAL.iter().any(|name| headers.contains_key(name))
}

/// Whether an address has no alternative spellings. Queries, path parameters and empty segments, also escaped, allow
/// arbitrarily many addresses for one document.
pub fn is_definite(url: &Url) -> bool {
    let path = url.path().to_ascii_lowercase();
    url.query().is_none() && !MADE_UP.iter().any(|part| path.contains(part))
}

/// Parts of paths that anybody can vary.
const MADE_UP: [&str; 5] = ["//", ";", "%2f", "%5c", "%3b"];

/// Whether an answer claims to be the same for every client and request, but for [`is_by_program`].
pub fn is_neutral(headers: &HeaderMap) -> bool {
    words(headers, &header::VARY).all(|word| is_one_of(word, &NEUTRAL))
}

/// Whether an answer may be another one for a client that names another program.
pub fn is_by_program(headers: &HeaderMap) -> bool {
    words(headers, &header::VARY).any(|word| word.eq_ignore_ascii_case("user-agent"))
}

/// Whether an answer may become a feed by its status and headers; its document decides then. All other answers are
/// passed on and never stored.
pub fn may_be_feed(status: StatusCode, headers: &HeaderMap) -> bool {
    status == StatusCode::OK && says_feed(headers) && is_for_everybody(headers)
}

/// Whether everybody may read an answer, by its headers.
pub fn is_for_everybody(headers: &HeaderMap) -> bool {
    check_for_everybody(headers).is_ok()
}

/// Like [`is_for_everybody`]; the error names the header that denies it.
pub fn check_for_everybody(headers: &HeaderMap) -> Result<(), NotForEverybody> {
    let said = CLOSED.iter().find(|(name, word, _)| {
        words(headers, &HeaderName::from_static(name))
            // Some sites separate directives by semicolons.
            .flat_map(|said| said.split(';'))
            .filter_map(|said| said.split('=').next())
            .any(|said| said.trim().eq_ignore_ascii_case(word))
    });
    match said {
        Some((_, _, told)) => Err(NotForEverybody(told)),
        None if headers.contains_key(header::SET_COOKIE) => Err(NotForEverybody("Set-Cookie")),
        None => Ok(()),
    }
}

/// The error for an answer that is not for everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the site says that this is not for everybody ({0})")]
pub struct NotForEverybody(&'static str);

/// Whether the media type may be that of a feed.
fn says_feed(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|kind| is_one_of(kind, &TYPES))
}

/// Whether the media type is that of a page.
pub fn says_page(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|kind| is_one_of(kind, &PAGES))
}

fn media_type(headers: &HeaderMap) -> Option<&str> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    kind.split(';').next().map(str::trim)
}

/// Returns the elements of a list header (RFC 9110 section 5.6.1).
pub(crate) fn words<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

/// Whether `word` is one of `known`, ignoring case.
fn is_one_of(word: &str, known: &[&str]) -> bool {
    known.iter().any(|known| word.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers as map;

    #[test]
    fn only_what_everybody_asks_at_a_definite_address_may_make_a_feed() {
        let may = |pairs: &[(&'static str, &str)]| may_make_feed(&Method::GET, &map(pairs));
        assert!(may(&[]) && may(&[("accept", "*/*"), ("accept-encoding", "gzip")]));
        assert!(may(&[("if-none-match", "x"), ("a-im", "feed")]));
        assert!(!may(&[("cookie", "x")]) && !may(&[("authorization", "x")]));
        for method in [Method::HEAD, Method::POST] {
            assert!(!may_make_feed(&method, &HeaderMap::new()));
        }
        // An answer by which a site chooses is not everybody's.
        for (vary, neutral, by_program) in [
            ("Accept-Encoding, Origin", true, false),
            ("Accept-Encoding,User-Agent", true, true),
            ("Accept", false, false),
            ("Accept-Encoding, Accept-Language", false, false),
        ] {
            let headers = map(&[("vary", vary)]);
            let is = (is_neutral(&headers), is_by_program(&headers));
            assert_eq!(is, (neutral, by_program), "{vary}");
        }
        // Nor is an address definite of which anybody can make more.
        let is_definite = |path: &str| is_definite(&Url::parse(path).unwrap());
        assert!(is_definite("https://a.example/blog/atom.xml"));
        assert!(is_definite("https://a.example/"));
        for more in
            "atom.xml?x=1 atom.xml? /atom.xml blog//atom.xml atom.xml;a=1 %2Fatom.xml".split(' ')
        {
            assert!(!is_definite(&format!("https://a.example/{more}")), "{more}");
        }
        // Only what everybody gets may be a feed.
        let of = |pairs: &[(&'static str, &str)]| {
            let mut all = map(pairs);
            all.entry(header::CONTENT_TYPE)
                .or_insert("application/rss+xml; charset=utf-8".parse().unwrap());
            may_be_feed(StatusCode::OK, &all)
        };
        for open in [
            &[][..],
            &[("cache-control", "public, max-age=60")],
            &[("vary", "Accept-Encoding")],
            &[("content-type", "Text/XML")],
        ] {
            assert!(of(open), "{open:?}");
        }
        let said = |what: &str| format!("the site says that this is not for everybody ({what})");
        for (header, value, what) in [
            ("cache-control", "max-age=0, Private", "Cache-Control: private"),
            ("cache-control", "private=\"x\"", "Cache-Control: private"),
            ("cache-control", "no-store", "Cache-Control: no-store"),
            ("cache-control", "private;max-age=0", "Cache-Control: private"),
            ("cache-control", "max-age=0; No-Store ;x", "Cache-Control: no-store"),
            ("vary", "accept, Cookie", "Vary: Cookie"),
            ("vary", "authorization", "Vary: Authorization"),
            ("vary", "*", "Vary: *"),
            ("set-cookie", "a=b", "Set-Cookie"),
        ] {
            let why = check_for_everybody(&map(&[(header, value)])).unwrap_err().to_string();
            assert_eq!((of(&[(header, value)]), why), (false, said(what)), "{value}");
        }
        assert!(!of(&[("content-type", "text/html")]));
        let rss = map(&[("content-type", "application/rss+xml")]);
        assert!(!may_be_feed(StatusCode::NOT_FOUND, &rss));
        assert!(!may_be_feed(StatusCode::OK, &HeaderMap::new()));
    }
}
