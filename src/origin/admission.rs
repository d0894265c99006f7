//! Which answers of an origin may become feeds. Only what everybody gets does: no answer to somebody who
//! named himself, and none that says that it is for one client.

use http::header::{self, HeaderMap, HeaderName};
use http::{Method, StatusCode};

/// Headers of a request that say who asks.
const PERSONAL: [HeaderName; 2] = [header::COOKIE, header::AUTHORIZATION];
/// Headers that programs send with every request. Those that say who asks, and by what name, are replaced.
const PLAIN: [&str; 18] = [
    "host",
    "a-im",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "range",
    "user-agent",
    "accept",
    "accept-encoding",
    "connection",
    "cache-control",
    "pragma",
    "te",
    "via",
    "forwarded",
    "x-real-ip",
];
/// Headers by which browsers say more of who asks and of what he likes. A site may answer by them without saying so.
const OF_BROWSERS: [&str; 8] = [
    "accept-language",
    "dnt",
    "from",
    "priority",
    "referer",
    "save-data",
    "upgrade-insecure-requests",
    "x-requested-with",
];
/// Those of which the answer must not depend if it is to be everybody's first document.
const NEUTRAL: [&str; 2] = ["accept-encoding", "origin"];
/// Media types of feeds, and of XML and JSON as they are served that nobody configured.
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

/// Whether a request's answer may make a feed: one that everybody gets. Where it has conditions or asks for a part, an
/// answer with status 200 is whole all the same.
pub fn may_make_feed(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::GET && !PERSONAL.iter().any(|name| headers.contains_key(name))
}

/// Whether a request has no header but those of every reader and browser. An answer to any other header may be
/// another for everybody else.
pub fn is_usual(headers: &HeaderMap) -> bool {
    let mut names = headers.keys().map(HeaderName::as_str);
    names.all(|name| is_plain_name(name) || OF_BROWSERS.contains(&name) || name.starts_with("sec-"))
}

/// Whether a request has no header that may make its answer another than that to the gateway's own question, but for
/// how who asks names itself (`User-Agent`) and what it reads (`Accept`).
pub fn is_plain(headers: &HeaderMap) -> bool {
    headers.keys().map(HeaderName::as_str).all(is_plain_name)
}

fn is_plain_name(name: &str) -> bool {
    PLAIN.contains(&name) || name.starts_with("x-forwarded-")
}

/// Whether an answer is the same whoever asks and however, as far as it says so itself.
pub fn is_neutral(headers: &HeaderMap) -> bool {
    words(headers, header::VARY).all(|word| is_one_of(word, &NEUTRAL))
}

/// Whether an answer may become a feed, as far as status and headers tell; its document decides then. Every other
/// is passed on and never stored.
pub fn may_be_feed(status: StatusCode, headers: &HeaderMap) -> bool {
    status == StatusCode::OK && says_feed(headers) && is_for_everybody(headers)
}

/// Whether an answer may be read by everybody, as far as its headers tell.
pub fn is_for_everybody(headers: &HeaderMap) -> bool {
    let is_private = words(headers, header::CACHE_CONTROL)
        .filter_map(|word| word.split('=').next())
        .any(|directive| is_one_of(directive, &["private", "no-store"]));
    let is_personal =
        words(headers, header::VARY).any(|word| is_one_of(word, &["*", "cookie", "authorization"]));
    !is_private && !is_personal && !headers.contains_key(header::SET_COOKIE)
}

/// Whether a media type may be a feed's.
fn says_feed(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|kind| is_one_of(kind, &TYPES))
}

/// Whether a media type is a page's.
pub fn says_page(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|kind| is_one_of(kind, &PAGES))
}

fn media_type(headers: &HeaderMap) -> Option<&str> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    kind.split(';').next().map(str::trim)
}

/// The elements of a header that is a list.
fn words(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

/// Whether a word is one of these, which are in lower case, whatever its own case.
fn is_one_of(word: &str, known: &[&str]) -> bool {
    known.iter().any(|known| word.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn only_what_everybody_asks_may_make_a_feed() {
        let may = |pairs: &[(&'static str, &str)]| may_make_feed(&Method::GET, &map(pairs));
        assert!(may(&[]) && may(&[("accept", "*/*"), ("accept-encoding", "gzip")]));
        for name in ["cookie", "authorization"] {
            assert!(!may(&[(name, "x")]), "{name}");
        }
        assert!(may(&[("if-none-match", "x"), ("a-im", "feed")]));
        assert!(!may_make_feed(&Method::HEAD, &HeaderMap::new()));
        assert!(!may_make_feed(&Method::POST, &HeaderMap::new()));
    }

    #[test]
    fn a_header_that_may_choose_another_answer_is_not_usual() {
        for usual in ["user-agent", "sec-fetch-mode", "accept-language", "x-forwarded-for"] {
            assert!(is_usual(&map(&[(usual, "x")])), "{usual}");
        }
        for other in [
            "x-original-url",
            "x-api-key",
            "private-token",
            "x-http-method-override",
            "forwarded-host",
            "x_forwarded_host",
        ] {
            assert!(!is_usual(&map(&[("host", "x"), (other, "x")])), "{other}");
        }
        // What a site may answer by without saying so makes a feed, and not its first document.
        for name in ["accept-language", "sec-ch-ua-platform", "save-data", "referer"] {
            let asked = map(&[("host", "x"), ("user-agent", "x"), (name, "x")]);
            assert!(is_usual(&asked) && !is_plain(&asked), "{name}");
        }
        let reader = ["host", "user-agent", "accept", "if-none-match", "x-forwarded-for", "via"];
        assert!(is_plain(&map(&reader.map(|name| (name, "x")))));
        assert!(is_neutral(&map(&[("vary", "Accept-Encoding, Origin")])));
        assert!(!is_neutral(&map(&[("vary", "Accept-Language")])));
    }

    #[test]
    fn only_what_everybody_gets_may_be_a_feed() {
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
        for closed in [
            ("cache-control", "max-age=0, Private"),
            ("cache-control", "private=\"x\""),
            ("cache-control", "no-store"),
            ("vary", "accept, Cookie"),
            ("vary", "authorization"),
            ("vary", "*"),
            ("set-cookie", "a=b"),
            ("content-type", "text/html"),
        ] {
            assert!(!of(&[closed]), "{closed:?}");
        }
        let rss = map(&[("content-type", "application/rss+xml")]);
        assert!(!may_be_feed(StatusCode::NOT_FOUND, &rss));
        assert!(!may_be_feed(StatusCode::OK, &HeaderMap::new()));
    }
}
