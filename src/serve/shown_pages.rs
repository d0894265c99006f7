//! Answers as browsers are to have them: problems as pages, and addresses below the path of `public_url`.
//!
//! Pages and redirects name addresses from the root (`/feeds/news`). Behind a proxy that serves the gateway below a path
//! (`public_url = "https://example.org/feeds"`) and takes it off what it asks, that path is put before them here, in one
//! place, so that no page has to know of it. What documents name is absolute and has it anyway. So has what a reader gets
//! below the path of a token: all of it leads on below that path.

use super::audience::TOKEN_PATH;
use super::negotiate::prefers_html;
use super::{Audience, Problem, html, sign_in_address};
use axum::body::{Body, to_bytes};
use axum::response::{IntoResponse, Response};
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, StatusCode, header};
use maud::{Markup, html};
use std::borrow::Cow;
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
#[derive(Clone)]
pub(super) struct AboutLength(pub(super) HeaderValue);

/// Puts the path before what an answer names from the root; before it is compressed.
pub(super) async fn put_before(
    prefix: Option<&Prefix>,
    method: &Method,
    response: Response,
) -> Response {
    let audience = response.extensions().get::<Audience>();
    let own = audience.filter(|audience| audience.reader().is_some());
    let prefix = match own {
        Some(own) => Prefix::from_public_url(&own.site().at("")).map(Cow::Owned),
        None => prefix.map(Cow::Borrowed),
    };
    // What is led to on each page depends on who looks at it.
    let navigation = audience.and_then(html::navigation);
    if prefix.is_none() && navigation.is_none() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    for (name, before) in [(header::LOCATION, ""), (header::LINK, "<")] {
        if let (Some(values), Some(prefix)) = (parts.headers.get_mut(name), &prefix) {
            prefix.header(values, before);
        }
    }
    if !html::is_page(&parts.headers) {
        return Response::from_parts(parts, body);
    }
    if parts.headers.contains_key(header::CONTENT_ENCODING) {
        tracing::error!("a page was packed before its addresses were put in; it is left as it is");
        return Response::from_parts(parts, body);
    }
    // Of an answer to HEAD, what is left is its headers, and they say the length before addresses are put in.
    if method == Method::HEAD
        && let Some(length) = parts.headers.remove(header::CONTENT_LENGTH)
    {
        parts.extensions.insert(AboutLength(length));
        return Response::from_parts(parts, body);
    }
    parts.headers.remove(header::CONTENT_LENGTH);
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

/// Whether who asks would rather have a page than a problem document: administration answers programs alone.
pub(super) fn is_page_wanted<B>(request: &Request<B>) -> bool {
    prefers_html(request.headers()) && !request.uri().path().starts_with(super::API)
}

/// Where signing in leads back to, for who would rather have a page than a problem document: to what was asked for, but
/// nobody signs in below a token.
pub(super) fn way_back<B>(request: &Request<B>) -> Option<String> {
    let to = request.uri().path_and_query().map(PathAndQuery::as_str);
    let to = to.filter(|to| request.method() == Method::GET && !to.starts_with(TOKEN_PATH));
    is_page_wanted(request).then(|| to.unwrap_or("/").to_owned())
}

/// The answer, as a page where it is a problem; `to`: where signing in leads back to. Without that it is among pages that
/// are none of ours, and leads nowhere.
pub(super) fn show_problem(response: Response, to: Option<&str>) -> Response {
    let Some(problem) = response.extensions().get::<Problem>() else { return response };
    let (title, content) = (title(problem.status()), content(problem, to));
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    let html = HeaderValue::from_static(html::MEDIA_TYPE);
    parts.headers.insert(header::CONTENT_TYPE, html);
    let page = match to {
        Some(_) => html::document(title, &html! {}, &content),
        None => html::lone_document(title, &content),
    };
    let mut response = (parts.status, parts.headers, page).into_response();
    // What it is about is known outside still.
    response.extensions_mut().extend(parts.extensions);
    response
}

/// What happened, in the words of who sees it.
fn title(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "There is nothing here",
        StatusCode::GONE => "This feed was deleted",
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "Not allowed",
        StatusCode::SERVICE_UNAVAILABLE => "Not just now",
        status if status.is_server_error() => "Something failed here",
        _ => "That cannot be answered",
    }
}

fn content(problem: &Problem, to: Option<&str>) -> Markup {
    let status = problem.status();
    let may_sign_in = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    html! {
        p.lead { (html::text(problem.detail())) "." }
        @if let Some(wait) = problem.retry_after() {
            p { "Ask again in " (wait.as_secs()) " seconds." }
        }
        @if let Some(to) = to {
            p.links {
                a href="/" { "All feeds" }
                @if may_sign_in { a href=(sign_in_address(to)) { "Sign in" } }
            }
        }
        p.quiet { "HTTP status " (status.as_u16()) }
    }
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
        let prefix = Prefix::from_public_url("https://example.org/p").unwrap();
        let mut link = HeaderValue::from_static("</x>; rel=\"up\"");
        prefix.header(&mut link, "<");
        assert_eq!(link, "</p/x>; rel=\"up\"");
        let other = "https://other.example/";
        for (to, expected) in [("/x?y", "/p/x?y"), (other, other)] {
            let answer = (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response();
            let answer = put_before(Some(&prefix), &Method::GET, answer).await;
            assert_eq!(answer.headers().get(header::LOCATION).unwrap(), expected);
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
