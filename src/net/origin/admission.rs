//! Which answers of an origin may become feeds. Only what everybody gets does: no answer to somebody who
//! named himself, and none that says that it is for one client.

use http::header::{self, HeaderMap, HeaderName};
use http::{Method, StatusCode};
use url::Url;

/// Headers of a request that say who asks.
const PERSONAL: [HeaderName; 2] = [header::COOKIE, header::AUTHORIZATION];
/// Headers that programs send with every request. Those that say who asks, and by what name, are replaced.
const PLAIN: [&str; 36] = [
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
    "keep-alive",
    "cache-control",
    "pragma",
    "te",
    "via",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    // By which a request is found in logs, and nothing else is.
    "cdn-loop",
    "cf-ray",
    "fastly-ff",
    "traceparent",
    "tracestate",
    "x-amz-cf-id",
    "x-amzn-trace-id",
    "x-azure-ref",
    "x-azure-requestchain",
    "x-cloud-trace-context",
    "x-correlation-id",
    "x-request-id",
    "x-varnish",
    "x-vercel-id",
];
/// Headers by which browsers say more of who asks and of what he likes. A site may answer by them without saying so.
const OF_BROWSERS: [&str; 11] = [
    "accept-charset",
    "accept-language",
    "alt-used",
    "content-type",
    "dnt",
    "from",
    "priority",
    "referer",
    "save-data",
    "upgrade-insecure-requests",
    "x-requested-with",
];
/// What headers begin with that browsers alone write.
const BROWSERS_BEGIN: &str = "sec-";
/// Headers that name nobody, and that networks between add: where a request came from and how, and what its program is.
/// Anybody may write some, and a site may answer by them. Those that name the user (`X-Forwarded-User`, `Cf-Access-…`, `X-Amzn-Oidc-…`, `X-Goog-Authenticated-…`) are not among them.
const OF_NETWORKS: [&str; 60] = [
    "akamai-origin-hop",
    "b3",
    "baggage",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "cf-ew-via",
    "cf-ipcity",
    "cf-ipcontinent",
    "cf-ipcountry",
    "cf-iplatitude",
    "cf-iplongitude",
    "cf-metro-code",
    "cf-postal-code",
    "cf-pseudo-ipv4",
    "cf-region",
    "cf-region-code",
    "cf-timezone",
    "cf-visitor",
    "cf-worker",
    "cloudfront-forwarded-proto",
    "cloudfront-is-desktop-viewer",
    "cloudfront-is-mobile-viewer",
    "cloudfront-is-smarttv-viewer",
    "cloudfront-is-tablet-viewer",
    "cloudfront-viewer-address",
    "cloudfront-viewer-country",
    "cloudfront-viewer-http-version",
    "cloudfront-viewer-tls",
    "do-connecting-ip",
    "fastly-client",
    "fastly-client-ip",
    "fastly-orig-accept-encoding",
    "fastly-ssl",
    "fastly-temp-xff",
    "fly-client-ip",
    "fly-region",
    "fly-request-id",
    "front-end-https",
    "true-client-ip",
    "x-amzn-tls-cipher-suite",
    "x-amzn-tls-version",
    "x-appgw-trace-id",
    "x-azure-clientip",
    "x-azure-fdid",
    "x-azure-socketip",
    "x-b3-parentspanid",
    "x-b3-sampled",
    "x-b3-spanid",
    "x-b3-traceid",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-expected-rq-timeout-ms",
    "x-envoy-external-address",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-scheme",
    "x-forwarded-server",
    "x-forwarded-ssl",
    "x-original-forwarded-for",
    "x-scheme",
];
/// What an answer says that is not for everybody: a header, the word in it, and both as they are told.
const CLOSED: [(&str, &str, &str); 5] = [
    ("cache-control", "private", "Cache-Control: private"),
    ("cache-control", "no-store", "Cache-Control: no-store"),
    ("vary", "*", "Vary: *"),
    ("vary", "cookie", "Vary: Cookie"),
    ("vary", "authorization", "Vary: Authorization"),
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

/// The header of a request that keeps its address from becoming a feed: one that may say who asks, or choose another
/// document. Not those that every reader and browser sends, or a network between.
pub fn unusual(headers: &HeaderMap) -> Option<&HeaderName> {
    headers.keys().find(|name| {
        let name = name.as_str();
        !PLAIN.contains(&name)
            && !OF_BROWSERS.contains(&name)
            && !OF_NETWORKS.contains(&name)
            && !name.starts_with(BROWSERS_BEGIN)
    })
}

/// Whether a request has no header that may make its answer another than that to the gateway's own question, but for
/// how who asks names itself (`User-Agent`) and what it reads (`Accept`). Any other answer is no first document.
pub fn is_plain(headers: &HeaderMap) -> bool {
    headers.keys().all(|name| PLAIN.contains(&name.as_str()))
}

/// Whether an address is no other spelling of one: with a query, with parameters of steps or empty steps, also where
/// these are escaped, anybody can make up as many as he likes, most of which lead to the same document.
pub fn is_definite(url: &Url) -> bool {
    let path = url.path().to_ascii_lowercase();
    url.query().is_none() && !MADE_UP.iter().any(|part| path.contains(part))
}

/// What paths have that anybody can make up.
const MADE_UP: [&str; 5] = ["//", ";", "%2f", "%5c", "%3b"];

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
    check_for_everybody(headers).is_ok()
}

/// The same, with what of the answer says that it is not.
pub fn check_for_everybody(headers: &HeaderMap) -> Result<(), NotForEverybody> {
    let said = CLOSED.iter().find(|(name, word, _)| {
        words(headers, HeaderName::from_static(name))
            // Some sites write semicolons between what they forbid.
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

/// An answer that is for one client, or for some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the site says that this is not for everybody ({0})")]
pub struct NotForEverybody(&'static str);

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
        let prevents = |name: &'static str| {
            unusual(&map(&[("host", "x"), (name, "x")])).map(|name| name.as_str().to_owned())
        };
        for usual in ["user-agent", "sec-fetch-mode", "accept-language", "x-forwarded-for"] {
            assert_eq!(prevents(usual), None);
        }
        for other in [
            "x-original-url",
            "x-api-key",
            "private-token",
            "x-http-method-override",
            "forwarded-host",
            "x_forwarded_host",
            "x-original-host",
            "x-remote-user",
            "x-auth-request-email",
            "x-user-id",
            "x-forwarded-user",
            "x-forwarded-email",
            "x-forwarded-client-cert",
            "x-ssl-client-cert",
            "cf-access-jwt-assertion",
            "cf-access-authenticated-user-email",
            "x-amzn-oidc-identity",
            "x-amzn-mtls-clientcert",
            "x-goog-iap-jwt-assertion",
            "fastly-key",
            "proxy-authorization",
        ] {
            assert!(!is_plain(&map(&[("host", "x"), (other, "x")])), "{other}");
            assert_eq!(prevents(other).as_deref(), Some(other));
        }
        assert!(is_neutral(&map(&[("vary", "Accept-Encoding, Origin")])));
        assert!(!is_neutral(&map(&[("vary", "Accept-Language")])));
    }

    #[test]
    fn what_a_site_may_answer_by_makes_a_feed_and_not_its_first_document() {
        for traced in ["cf-ray", "cdn-loop", "x-amzn-trace-id", "x-request-id", "traceparent"] {
            assert!(is_plain(&map(&[(traced, "x")])), "{traced}");
        }
        let reader = ["host", "user-agent", "accept", "if-none-match", "x-forwarded-for", "via"];
        assert!(is_plain(&map(&reader.map(|name| (name, "x")))));
        for added in [
            "accept-language",
            "baggage",
            "cf-connecting-ip",
            "cf-visitor",
            "content-type",
            "referer",
            "save-data",
            "sec-ch-ua-platform",
            "true-client-ip",
            "x-forwarded-prefix",
        ] {
            let headers = map(&[("host", "x"), (added, "x")]);
            assert!(unusual(&headers).is_none() && !is_plain(&headers), "{added}");
        }
    }

    #[test]
    fn an_address_of_which_anybody_can_make_more_is_not_definite() {
        let of = |text: &str| is_definite(&Url::parse(text).unwrap());
        assert!(of("https://a.example/blog/atom.xml") && of("https://a.example/"));
        for more in [
            "atom.xml?x=1",
            "atom.xml?",
            "/atom.xml",
            "blog//atom.xml",
            "atom.xml;a=1",
            "%2Fatom.xml",
        ] {
            assert!(!of(&format!("https://a.example/{more}")), "{more}");
        }
    }

    #[test]
    fn it_is_said_why_an_answer_is_not_for_everybody() {
        let why = |pairs: &[(&'static str, &str)]| {
            check_for_everybody(&map(pairs)).map_err(|error| error.to_string())
        };
        let said =
            |what: &str| Err(format!("the site says that this is not for everybody ({what})"));
        assert_eq!(why(&[("cache-control", "max-age=0"), ("vary", "accept-encoding")]), Ok(()));
        assert_eq!(why(&[("cache-control", "Private, no-store")]), said("Cache-Control: private"));
        assert_eq!(why(&[("vary", "accept, Cookie")]), said("Vary: Cookie"));
        assert_eq!(why(&[("set-cookie", "a=b")]), said("Set-Cookie"));
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
            ("cache-control", "private;max-age=0"),
            ("cache-control", "max-age=0; No-Store ;x"),
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
