//! Behind a proxy that serves the gateway below a path (`public_url = "https://example.org/feeds"`) and
//! takes that path off what it asks.
//!
//! Pages and redirects name addresses from the root (`/feeds/news`). Here, in one place, the path is put
//! before them, so that no page has to know of it. What documents name is absolute and has it anyway. So has
//! what a reader gets below the path of a token: all of it leads on below that path.

use super::audience::Audience;
use super::html;
use super::relay::IsRelayed;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, StatusCode, header};
use std::sync::Arc;
use url::Url;

/// The longest page that is rewritten, in bytes: pages are made whole in memory, and bounded there.
const PAGE_LIMIT: usize = 64 << 20;
/// How attributes of our pages begin that name an address from the root. A text from outside has no
/// quote that is not escaped.
const ATTRIBUTES: [&str; 2] = [" href=\"/", " action=\"/"];

/// The path below which the gateway is served, without a slash at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prefix(Arc<str>);

impl Prefix {
    /// Of a public address; `None` where that has no path.
    pub(super) fn from_public_url(public_url: &str) -> Option<Self> {
        let url = Url::parse(public_url).ok()?;
        let path = url.path().trim_end_matches('/');
        (!path.is_empty()).then(|| Self(path.into()))
    }

    /// Puts the path before the address that a header names from the root, behind `before`.
    fn header(&self, value: &mut HeaderValue, before: &str) {
        let target = value.to_str().ok().and_then(|value| value.strip_prefix(before));
        let target = target.filter(|target| target.starts_with('/') && !target.starts_with("//"));
        let with = target.map(|target| format!("{before}{}{target}", self.0));
        if let Some(with) = with.and_then(|with| HeaderValue::from_str(&with).ok()) {
            *value = with;
        }
    }

    /// A page with the path before all addresses from the root.
    fn page(&self, page: &str) -> String {
        ATTRIBUTES.iter().fold(page.to_owned(), |page, attribute| {
            let begin = attribute.strip_suffix('/').unwrap_or(attribute);
            page.replace(attribute, &format!("{begin}{}/", self.0))
        })
    }
}

/// About how long the body is that an answer to HEAD does not have; an extension of the answer.
#[derive(Clone, Copy)]
pub(super) struct AboutLength(pub(super) u64);

/// The length that a header says.
pub(super) fn content_length(value: &HeaderValue) -> Option<u64> {
    value.to_str().ok()?.parse().ok()
}

/// Puts the path before what an answer names from the root; before it is compressed.
pub(super) async fn put_before(
    State(prefix): State<Option<Prefix>>,
    request: Request,
    next: Next,
) -> Response {
    let is_head = request.method() == Method::HEAD;
    let (mut parts, body) = next.run(request).await.into_parts();
    let audience = parts.extensions.get::<Audience>();
    let own = audience.filter(|audience| audience.reader().is_some());
    let prefix = match own {
        Some(own) => Prefix::from_public_url(&own.site().at("")),
        None => prefix,
    };
    // What is led to on each page depends on who looks at it.
    let navigation = audience.and_then(html::navigation);
    let is_done = parts.extensions.get::<IsRelayed>().is_some();
    if is_done || (prefix.is_none() && navigation.is_none()) {
        return Response::from_parts(parts, body);
    }
    for (name, before) in [(header::LOCATION, ""), (header::LINK, "<")] {
        if let (Some(values), Some(prefix)) = (parts.headers.get_mut(name), &prefix) {
            prefix.header(values, before);
        }
    }
    let kind = parts.headers.get(header::CONTENT_TYPE);
    if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html")) {
        return Response::from_parts(parts, body);
    }
    if parts.headers.contains_key(header::CONTENT_ENCODING) {
        tracing::error!("a page was packed before its addresses were put in; it is left as it is");
        return Response::from_parts(parts, body);
    }
    // Of an answer to HEAD, what is left is its headers; of what was said of its length, about how long it is.
    let length = parts.headers.remove(header::CONTENT_LENGTH).filter(|_| is_head);
    if let Some(length) = length.as_ref().and_then(content_length) {
        parts.extensions.insert(AboutLength(length));
        return Response::from_parts(parts, body);
    }
    let Ok(page) = to_bytes(body, PAGE_LIMIT).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let mut page = String::from_utf8_lossy(&page).into_owned();
    if let Some((everybodys, own)) = navigation {
        page = page.replace(everybodys, own);
    }
    if let Some(prefix) = prefix {
        page = prefix.page(&page);
    }
    Response::from_parts(parts, Body::from(page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_address_may_have_a_path() {
        let path = |url: &str| Prefix::from_public_url(url).map(|prefix| prefix.0.to_string());
        assert_eq!(path("https://example.org"), None);
        assert_eq!(path("https://example.org/"), None);
        assert_eq!(path("https://example.org/a/b/"), Some("/a/b".to_owned()));
    }

    #[tokio::test]
    async fn headers_lead_below_the_path() {
        use axum::{Router, middleware::from_fn_with_state, routing::get};
        use tower::ServiceExt;
        let to = |target: &'static str| {
            get(move || async move { (StatusCode::SEE_OTHER, [(header::LOCATION, target)]) })
        };
        let prefix = Prefix::from_public_url("https://example.org/p");
        let mut link = HeaderValue::from_static("</x>; rel=\"up\"");
        prefix.as_ref().unwrap().header(&mut link, "<");
        assert_eq!(link, "</p/x>; rel=\"up\"");
        let router = Router::new()
            .route("/here", to("/x?y"))
            .route("/there", to("https://other.example/"))
            .layer(from_fn_with_state(prefix, put_before));
        for (path, expected) in [("/here", "/p/x?y"), ("/there", "https://other.example/")] {
            let request = Request::builder().uri(path).body(Body::empty()).unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            assert_eq!(response.headers().get(header::LOCATION).unwrap(), expected);
        }
    }

    #[test]
    fn only_addresses_from_the_root_are_ours() {
        let prefix = Prefix::from_public_url("https://example.org/p").unwrap();
        let page = "<a href=\"/x\"></a><a class=\"y\" href=\"https://z/\"></a><form action=\"/f\">\
                    <a href=\"#top\"></a><a href=\"/\"></a>a href=&quot;/t&quot;";
        assert_eq!(
            prefix.page(page),
            "<a href=\"/p/x\"></a><a class=\"y\" href=\"https://z/\"></a><form action=\"/p/f\">\
             <a href=\"#top\"></a><a href=\"/p/\"></a>a href=&quot;/t&quot;"
        );
    }
}
