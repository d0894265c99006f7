//! Error answers as pages, for who looks at them in a browser; programs get the problem document.

use super::audience::TOKEN_PATH;
use super::html;
use super::negotiate::prefers_html;
use super::problem::Problem;
use super::session::sign_in_address;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, StatusCode, header};
use maud::{Markup, html};

/// Answers, and shows a problem as a page to a client that would rather have HTML than anything else.
/// Administration answers programs alone.
pub(super) async fn show(request: Request, next: Next) -> Response {
    let is_page = is_wanted(&request);
    let to = request.uri().path_and_query().map(PathAndQuery::as_str);
    // Signing in leads back to what was asked for; nobody signs in below a token.
    let to = to.filter(|to| request.method() == Method::GET && !to.starts_with(TOKEN_PATH));
    let to = to.unwrap_or("/").to_owned();
    let response = next.run(request).await;
    if is_page { as_page(response, Some(&to)) } else { response }
}

/// Whether who asks would rather have a page than a problem document.
pub(super) fn is_wanted<B>(request: &http::Request<B>) -> bool {
    prefers_html(request.headers()) && !request.uri().path().starts_with(super::API)
}

/// The answer, as a page where it is a problem; where none of our other pages is, it leads nowhere.
pub(super) fn lone_page(response: Response) -> Response {
    as_page(response, None)
}

fn as_page(response: Response, to: Option<&str>) -> Response {
    let Some(problem) = response.extensions().get::<Problem>() else { return response };
    let (title, content) = (title(problem.status()), content(problem, to));
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    let html = HeaderValue::from_static(html::MEDIA_TYPE);
    parts.headers.insert(header::CONTENT_TYPE, html);
    let page = match to {
        Some(_) => html::document(title, &content),
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
