//! Answers as browsers are to have them: problems as pages, and addresses below the path of `public_url`.
//!
//! Pages and redirects name addresses from the root (`/feeds/news`). Behind a proxy that serves the gateway below a path
//! (`public_url = "https://example.org/feeds"`) and takes it off what it asks, that path is put before them when a page
//! gets its frame (`html::document`), so that no page has to know of it. What documents name is absolute and has it anyway.
//! So has what a reader gets below the path of a token: all of it leads on below that path.

use super::{Audience, Problem, TOKEN_PATH, html, prefers_html, sign_in_address};
use axum::response::{IntoResponse, Response};
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, StatusCode, header};
use maud::{Markup, html};

/// The beginnings of attributes with a root-relative address in our pages. Text from outside cannot contain one,
/// because its quotes are escaped.
const ATTRIBUTES: [&str; 2] = [" href=\"/", " action=\"/"];

/// A page with the path of its site before all addresses from the root.
pub(super) fn prefix_links_with_path(path: &str, page: String) -> String {
    if path.is_empty() {
        return page;
    }
    ATTRIBUTES.iter().fold(page, |page, attribute| {
        let begin = attribute.strip_suffix('/').unwrap_or(attribute);
        page.replace(attribute, &format!("{begin}{path}/"))
    })
}

/// Puts the path of the site that its audience has before what the headers of an answer name from the root.
pub(super) fn prefix_headers_with_path(response: &mut Response) {
    let audience = response.extensions().get::<Audience>();
    let path = audience.map_or("", |audience| audience.site.path()).to_owned();
    if path.is_empty() {
        return;
    }
    for (name, before) in [(header::LOCATION, ""), (header::LINK, "<")] {
        if let Some(value) = response.headers_mut().get_mut(name)
            && let Some(led) = lead_below(&path, before, value)
        {
            *value = led;
        }
    }
}

/// The value of a header that names an address from the root behind `before`, with the path before that address.
fn lead_below(path: &str, before: &str, value: &HeaderValue) -> Option<HeaderValue> {
    let target = value.to_str().ok()?.strip_prefix(before)?;
    let is_from_root = target.starts_with('/') && !target.starts_with("//");
    let led = is_from_root.then(|| format!("{before}{path}{target}"))?;
    HeaderValue::from_str(&led).ok()
}

/// Whether who asks would rather have a page than a problem document: administration answers programs alone.
pub(super) fn is_page_wanted<B>(request: &Request<B>) -> bool {
    prefers_html(request.headers()) && !request.uri().path().starts_with(super::API)
}

/// The address to return to after signing in: the one of a GET, else `/`; also `/` below a reader's token, where nobody
/// signs in. `None` for a client that does not prefer pages.
pub(super) fn way_back<B>(request: &Request<B>) -> Option<String> {
    let to = request.uri().path_and_query().map(PathAndQuery::as_str);
    let to = to.filter(|to| request.method() == Method::GET && !to.starts_with(TOKEN_PATH));
    is_page_wanted(request).then(|| to.unwrap_or("/").to_owned())
}

/// Renders a problem as a page; any other answer stays as it is. `to`: the address to return to after signing in;
/// `None`: the page appears among those of an origin, and has no links.
pub(super) fn show_problem(response: Response, to: Option<&str>) -> Response {
    let Some(problem) = response.extensions().get::<Problem>() else { return response };
    let (title, content) = (title(problem.status), content(problem, to));
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    let html = HeaderValue::from_static(html::MEDIA_TYPE);
    parts.headers.insert(header::CONTENT_TYPE, html);
    let page = match (to, parts.extensions.get::<Audience>()) {
        (Some(_), Some(audience)) => html::document(audience, title, &html! {}, &content),
        _ => html::lone_document(title, &content),
    };
    let mut response = (parts.status, parts.headers, page).into_response();
    // Outer middleware still needs the extensions (audience, route, problem).
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
    let status = problem.status;
    let may_sign_in = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    html! {
        p.lead { (html::text(&problem.detail)) "." }
        @if let Some(wait) = problem.retry_after {
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
    fn headers_lead_below_the_path() {
        for (before, value, expected) in [
            ("<", "</x>; rel=\"up\"", Some("</p/x>; rel=\"up\"")),
            ("", "/x?y", Some("/p/x?y")),
            ("", "//other.example/", None),
            ("", "https://other.example/", None),
        ] {
            let led = lead_below("/p", before, &HeaderValue::from_static(value));
            assert_eq!(led.as_ref().map(|led| led.to_str().unwrap()), expected, "{value}");
        }
        // That those of pages do is shown by a walk through all of them (`tests/pages.rs`).
    }
}
