//! Validators and the requests that carry them (RFC 9110 sections 8.8 and 13).

use super::delta::DeltaToken;
use super::negotiate::Encoding;
use super::rendition::EncodedBody;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use std::time::SystemTime;
use tidegate_core::model::Time;

/// The longest `If-None-Match` that is looked at, in bytes, over all its lines.
const LIST_LIMIT: usize = 8 * 1024;

/// A strong entity tag: a hash of the representation's bytes, encoding included; behind it, where
/// deltas can begin with this representation, the state of the feed that it shows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ETag(String);

impl ETag {
    /// The tag of these bytes (XXH3, 128 bits) and the state that they show.
    pub(super) fn from_bytes(bytes: &[u8], token: Option<DeltaToken>) -> Self {
        Self::from_hash(xxhash_rust::xxh3::xxh3_128(bytes), token)
    }

    /// The same of bytes with this hash.
    pub(super) fn from_hash(hash: u128, token: Option<DeltaToken>) -> Self {
        match token {
            Some(token) => Self(format!("\"{hash:032x}{token}\"")),
            None => Self(format!("\"{hash:032x}\"")),
        }
    }

    /// Whether it is this one, as it is written.
    pub(super) fn is(&self, tag: &str) -> bool {
        self.0 == tag
    }

    /// As a header's value.
    pub(super) fn value(&self) -> HeaderValue {
        // Quotes, points and hexadecimal digits are always a valid value.
        HeaderValue::from_str(&self.0).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
    }
}

/// A representation that is to be answered: what every 200 and 304 is made of.
pub(super) struct Representation<'a> {
    /// The headers that a 200 and a 304 have in common, but for the validators.
    pub(super) headers: HeaderMap,
    pub(super) body: &'a EncodedBody,
    pub(super) media_type: &'static str,
    pub(super) encoding: Encoding,
    /// `Last-Modified`.
    pub(super) modified: Option<Time>,
    /// Whether a client that names that date has this representation.
    pub(super) is_dated: bool,
}

impl Representation<'_> {
    /// The answer that carries it, or the 304 that says that the client has it.
    pub(super) fn answer(self, asked: &HeaderMap) -> Response {
        let Self { mut headers, body, modified, .. } = self;
        headers.insert(header::ETAG, body.etag.value());
        if let Some(modified) = modified {
            add(&mut headers, header::LAST_MODIFIED, &modified.rfc822());
        }
        if is_not_modified(asked, &body.etag, modified.filter(|_| self.is_dated)) {
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        describe(&mut headers, body, self.media_type, self.encoding);
        body.answer(StatusCode::OK, headers)
    }
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

/// Whether the client has this representation already, so that 304 is the answer to its GET or
/// HEAD. `If-None-Match` goes before `If-Modified-Since` (section 13.2.2).
pub(super) fn is_not_modified(headers: &HeaderMap, etag: &ETag, modified: Option<Time>) -> bool {
    if headers.contains_key(header::IF_NONE_MATCH) {
        return none_match(headers, etag);
    }
    let since = headers.get(header::IF_MODIFIED_SINCE).and_then(|value| value.to_str().ok());
    match (since.and_then(http_date), modified) {
        (Some(since), Some(modified)) => modified <= since,
        _ => false,
    }
}

/// Weak comparison against a list (sections 8.8.3.2 and 13.1.2): `W/` makes no difference.
fn none_match(headers: &HeaderMap, etag: &ETag) -> bool {
    tags(headers).any(|tag| tag == "*" || etag.is(tag))
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
    use http::HeaderName;

    fn with(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name.clone(), HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn the_table_of_conditional_requests() {
        let etag = ETag::from_bytes(b"body", None);
        let tag = etag.0.clone();
        let other = ETag::from_bytes(b"other", None).0;
        let shown = Time::parse_rfc3339("2026-11-20T16:20:05Z").unwrap();
        let match_ = header::IF_NONE_MATCH;
        let since = header::IF_MODIFIED_SINCE;
        let same = "Fri, 20 Nov 2026 16:20:05 GMT";
        let before = "Fri, 20 Nov 2026 16:20:04 GMT";
        let weak = format!("W/{tag}");
        let list = format!("{other}, \"a,b\", {weak}");
        for (request, expected) in [
            (vec![], false),
            (vec![(match_.clone(), tag.as_str())], true),
            (vec![(match_.clone(), weak.as_str())], true),
            (vec![(match_.clone(), list.as_str())], true),
            (vec![(match_.clone(), "*")], true),
            (vec![(match_.clone(), other.as_str())], false),
            (vec![(match_.clone(), tag.trim_matches('"'))], false),
            (vec![(match_.clone(), "")], false),
            (vec![(match_.clone(), other.as_str()), (match_.clone(), tag.as_str())], true),
            (vec![(since.clone(), same)], true),
            (vec![(since.clone(), "Friday, 20-Nov-26 16:20:05 GMT")], true),
            (vec![(since.clone(), "Fri Nov 20 16:20:05 2026")], true),
            (vec![(since.clone(), before)], false),
            (vec![(since.clone(), "yesterday")], false),
            (vec![(since.clone(), "2026-11-20T16:20:05Z")], false),
            // If-None-Match goes before If-Modified-Since, whichever way they point.
            (vec![(match_.clone(), other.as_str()), (since.clone(), same)], false),
            (vec![(match_.clone(), tag.as_str()), (since.clone(), before)], true),
        ] {
            let headers = with(&request);
            assert_eq!(is_not_modified(&headers, &etag, Some(shown)), expected, "{request:?}");
        }
        let dated = with(&[(since, same)]);
        assert!(!is_not_modified(&dated, &etag, None), "a date needs a date to compare with");
    }

    #[test]
    fn tags_are_strong_and_differ_with_the_bytes() {
        assert_ne!(ETag::from_bytes(b"a", None), ETag::from_bytes(b"b", None));
        let value = ETag::from_bytes(b"a", None).value();
        let text = value.to_str().unwrap();
        assert!(text.starts_with('"') && text.ends_with('"') && text.len() == 34);
    }
}
