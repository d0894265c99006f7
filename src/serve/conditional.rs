//! Validators and the requests that carry them (RFC 9110 sections 8.8 and 13).

use super::delta::DeltaToken;
use super::negotiate::Encoding;
use super::ready::{IsCurrent, RepeatableAnswer};
use super::rendition::EncodedBody;
use super::{DocumentKey, Rendition};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use std::sync::Weak;
use std::time::SystemTime;
use tidegate_core::model::Time;

/// The longest `If-None-Match` that is looked at, in bytes, over all its lines.
const LIST_LIMIT: usize = 8 * 1024;

/// A strong entity tag: a hash of the representation's bytes, encoding included; behind it, where
/// deltas can begin with this representation, the state of the feed that it shows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ETag(HeaderValue);

impl ETag {
    /// The tag of these bytes (XXH3, 128 bits) and the state that they show.
    pub(super) fn from_bytes(bytes: &[u8], token: Option<DeltaToken>) -> Self {
        Self::from_hash(xxhash_rust::xxh3::xxh3_128(bytes), token)
    }

    /// The same of bytes with this hash.
    pub(super) fn from_hash(hash: u128, token: Option<DeltaToken>) -> Self {
        let tag = match token {
            Some(token) => format!("\"{hash:032x}{token}\""),
            None => format!("\"{hash:032x}\""),
        };
        // Quotes, points and hexadecimal digits are always a valid value.
        Self(HeaderValue::try_from(tag).unwrap_or_else(|_| HeaderValue::from_static("\"\"")))
    }

    /// Whether `tag` is this one, also as compressing intermediaries change it: with a suffix (`-gzip`, `;gzip`), or
    /// without quotes. No two tags of ours are confused by that: behind the hash there is a dot or nothing.
    pub(super) fn matches(&self, tag: &str) -> bool {
        let [own, tag] = [self.0.to_str().unwrap_or_default(), tag].map(|it| it.trim_matches('"'));
        tag.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ';']))
    }

    /// As a header's value.
    pub(super) fn value(&self) -> HeaderValue {
        self.0.clone()
    }

    /// The weak tag, for answers that are compressed for each request: one tag for all encodings.
    pub(super) fn weak_value(&self) -> HeaderValue {
        let weak = [b"W/", self.0.as_bytes()].concat();
        HeaderValue::try_from(weak).unwrap_or_else(|_| self.value())
    }
}

/// `Last-Modified` of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastModified {
    at: Time,
    /// Whether a client that names this date has the document.
    identifies: bool,
}

impl LastModified {
    /// The date of a document that last changed at `shown`. A time in the future (ticks may be ahead of the clock)
    /// becomes `now`. Several documents may then have the same date, so it does not identify the document that a client
    /// has.
    pub(super) fn seen(shown: Time, now: Time) -> Self {
        Self { at: shown.min(now), identifies: shown <= now }
    }

    /// The date of a document that may change without a new date, so that the date identifies nothing.
    pub(super) const fn vague(at: Time) -> Self {
        Self { at, identifies: false }
    }
}

impl Rendition {
    /// The answer that carries it, or the 304 that says which representation of it the client has. `again`: lets
    /// `ready` repeat it to equal requests while that says so; with the key, if the document cache has it.
    pub(super) fn answer(
        &self,
        request_headers: &HeaderMap,
        modified: Option<LastModified>,
        again: Option<(Weak<Self>, Option<DocumentKey>, IsCurrent)>,
    ) -> Response {
        let encoding = self.encoding(request_headers);
        // The date that stands for the document.
        let date = modified.filter(|it| it.identifies).map(|it| it.at);
        let known = known(request_headers, self, encoding, date);
        let (mut headers, body) = (self.head.clone(), self.body(known.unwrap_or(encoding)));
        headers.insert(header::ETAG, body.etag.value());
        if let Some(LastModified { at, .. }) = modified {
            let date = if at == self.shown { self.shown_date.clone() } else { date_value(at) };
            headers.insert(header::LAST_MODIFIED, date);
        }
        let mut answer = match known {
            Some(_) => response(StatusCode::NOT_MODIFIED, headers, Body::empty()),
            None => {
                describe(&mut headers, body, self.media_type, encoding);
                body.answer(StatusCode::OK, headers)
            }
        };
        // Not repeatable: an answer whose date follows the clock, and a 304 for another encoding than the request
        // chose, which is for that client alone.
        if let Some((rendition, document, is_current)) = again
            && known.is_none_or(|it| it == encoding)
            && (modified.is_none() || date.is_some())
        {
            let again = RepeatableAnswer { rendition, document, encoding, date, is_current };
            answer.extensions_mut().insert(again);
        }
        answer
    }
}

/// An answer with just these headers.
pub(super) fn response(status: StatusCode, headers: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    response
}

/// A time as a header's value.
pub(super) fn date_value(at: Time) -> HeaderValue {
    // A date is always a valid value.
    HeaderValue::try_from(at.rfc822()).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Adds the headers that describe a body.
pub(super) fn describe(
    headers: &mut HeaderMap,
    body: &EncodedBody,
    media_type: &'static str,
    encoding: Encoding,
) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.content.len()));
    if let Some(token) = encoding.token() {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(token));
    }
}

/// An answer that nobody keeps.
pub(super) fn unkept(media_type: &'static str, body: impl Into<Body>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, body.into()).into_response()
}

/// Adds a header. Addresses of ours are made of checked URLs, names and times; one that is no header value
/// all the same is left out.
pub(super) fn add(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.append(name, value);
    }
}

/// The encoding in which the client has this document already, so that 304 is the answer to its GET or HEAD; `encoding`
/// is that of the answer otherwise. `If-None-Match` goes before `If-Modified-Since` (section 13.2.2), and compares
/// weakly (sections 8.8.3.2 and 13.1.2): `W/` makes no difference.
pub(super) fn known(
    headers: &HeaderMap,
    rendition: &Rendition,
    encoding: Encoding,
    modified: Option<Time>,
) -> Option<Encoding> {
    if headers.contains_key(header::IF_NONE_MATCH) {
        let all = [encoding, Encoding::Identity, Encoding::Gzip, Encoding::Zstd];
        let of = |tag: &str| all.into_iter().find(|it| rendition.body(*it).etag.matches(tag));
        return tags(headers).find_map(|tag| if tag == "*" { Some(encoding) } else { of(tag) });
    }
    let since = headers.get(header::IF_MODIFIED_SINCE).and_then(|value| value.to_str().ok());
    let (since, modified) = (since.and_then(http_date)?, modified?);
    (modified <= since).then_some(encoding)
}

/// The tags that a client has, as `If-None-Match` names them, without `W/`.
pub(super) fn tags(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::IF_NONE_MATCH).into_iter();
    let mut seen = 0_usize;
    let looked_at = values.take_while(move |value| {
        seen = seen.saturating_add(value.len());
        seen <= LIST_LIMIT
    });
    // A tag of ours holds neither comma nor space, so splitting at commas cannot make one out of a
    // foreign tag: its quotes would have to stand at both ends.
    let texts = looked_at.filter_map(|value| value.to_str().ok());
    let tags = texts.flat_map(|text| text.split(',')).map(str::trim);
    tags.map(|tag| tag.strip_prefix("W/").unwrap_or(tag))
}

/// Reads a date in any of the three forms of HTTP (section 5.6.7).
pub(super) fn http_date(text: &str) -> Option<Time> {
    let date = httpdate::parse_http_date(text).ok()?;
    let seconds = date.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
    i64::try_from(seconds).ok().map(Time::from_unix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_net::testing::headers as with;

    #[test]
    fn the_table_of_conditional_requests() {
        let document =
            Rendition::build_quickly("body".to_owned(), "text/plain", Time::from_unix(0)).unwrap();
        let tag = |encoding| document.body(encoding).etag.0.to_str().unwrap().to_owned();
        let (tag, gzip) = (tag(Encoding::Identity), tag(Encoding::Gzip));
        let other = ETag::from_bytes(b"other", None).0.to_str().unwrap().to_owned();
        let shown = Time::parse_rfc3339("2026-11-20T16:20:05Z").unwrap();
        let (match_, since) = ("if-none-match", "if-modified-since");
        let same = "Fri, 20 Nov 2026 16:20:05 GMT";
        let before = "Fri, 20 Nov 2026 16:20:04 GMT";
        let weak = format!("W/{tag}");
        let list = format!("{other}, \"a,b\", {weak}");
        for (request, expected) in [
            (vec![], false),
            (vec![(match_, tag.as_str())], true),
            (vec![(match_, weak.as_str())], true),
            (vec![(match_, list.as_str())], true),
            (vec![(match_, "*")], true),
            (vec![(match_, other.as_str())], false),
            (vec![(match_, "")], false),
            (vec![(match_, other.as_str()), (match_, tag.as_str())], true),
            (vec![(since, same)], true),
            (vec![(since, "Friday, 20-Nov-26 16:20:05 GMT")], true),
            (vec![(since, "Fri Nov 20 16:20:05 2026")], true),
            (vec![(since, before)], false),
            (vec![(since, "yesterday")], false),
            (vec![(since, "2026-11-20T16:20:05Z")], false),
            // If-None-Match goes before If-Modified-Since, whichever way they point.
            (vec![(match_, other.as_str()), (since, same)], false),
            (vec![(match_, tag.as_str()), (since, before)], true),
        ] {
            let headers = with(&request);
            let expected = expected.then_some(Encoding::Identity);
            let known = |modified| known(&headers, &document, Encoding::Identity, modified);
            assert_eq!(known(Some(shown)), expected, "{request:?}");
        }
        let dated = with(&[(since, same)]);
        assert_eq!(known(&dated, &document, Encoding::Identity, None), None, "no date of its own");
        // Of a tag that names another representation, that one is what the client has.
        let named = with(&[(match_, &gzip)]);
        assert_eq!(known(&named, &document, Encoding::Identity, None), Some(Encoding::Gzip));
        // A tag that an intermediary has changed names the same document.
        for encoding in [Encoding::Identity, Encoding::Gzip, Encoding::Zstd] {
            let tag = document.body(encoding).etag.0.to_str().unwrap().to_owned();
            let bare = tag.trim_matches('"');
            for (changed, expected) in [
                (bare.to_owned(), Some(encoding)),
                (format!("\"{bare}-gzip\""), Some(encoding)),
                (format!("W/\"{bare};gzip\""), Some(encoding)),
                (format!("\"{bare}--gzip\""), Some(encoding)),
                (format!("\"{bare}.1f\""), None),
                (format!("\"x{bare}\""), None),
                (format!("\"{}\"", bare.split_at(1).1), None),
            ] {
                let headers = with(&[(match_, changed.as_str())]);
                assert_eq!(known(&headers, &document, Encoding::Gzip, None), expected, "{changed}");
                let answer = document.answer(&headers, None, None);
                let status = expected.map_or(StatusCode::OK, |_| StatusCode::NOT_MODIFIED);
                assert_eq!(answer.status(), status, "{changed}");
                if expected.is_some() {
                    assert_eq!(answer.headers()[header::ETAG], tag.as_str(), "{changed}");
                }
            }
        }
    }
}
