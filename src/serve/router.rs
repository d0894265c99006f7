//! What a listener answers: the routes by who may ask (`routes.rs`), what goes around all of them, and what is an
//! origin's.

use super::observe::{self, AnswerFacts};
use super::problem::Problem;
use super::routes::{self, Access, ROUTES};
use super::shown_pages::{self, Prefix};
use super::{
    API, Listener, REQUEST_BODY_LIMIT, SharedState, audience, auth, client, origins, query,
    request_rules,
};
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::header;
use http_body::Body as _;
use std::convert::Infallible;
use std::sync::Arc;
use tidegate_core::model::mask_token;
use tower::{ServiceExt, service_fn};

/// How many characters of an unknown path are said back.
const PATH_SHOWN: usize = 200;

/// The site, as one listener answers it.
#[derive(Clone)]
pub(super) struct ListenerSite {
    pub(super) room: SharedState,
    listener: Listener,
    prefix: Option<Prefix>,
    routes: Router,
}

impl ListenerSite {
    /// That of a listener.
    pub(super) fn new(room: SharedState, listener: Listener) -> Self {
        let prefix = Prefix::from_public_url(&room.site.at(""));
        let routes = own_routes(&room, listener);
        Self { room, listener, prefix, routes }
    }

    /// Answers a request. What is passed on to an origin goes through here, and through nothing that is around our own
    /// routes.
    pub(super) async fn answer(&self, mut request: Request) -> Response {
        let method = request.method().clone();
        client::identify(&self.room, &mut request);
        if request_rules::must_wait_for_store(&self.room, &request) {
            request_rules::wait_for_store(&self.room, &mut request).await;
        }
        // What is refused is counted and logged with our own routes.
        let is_own = self.listener == Listener::Operators || request_rules::is_refused(&request);
        let answer = match is_own {
            true => self.route(request).await,
            false => origins::enter(&self.room, request, self).await,
        };
        complete(answer, &method)
    }

    /// Answers what is no origin's: what is done to every answer stands here in its order.
    pub(super) async fn route(&self, request: Request) -> Response {
        let facts = AnswerFacts::new(&request);
        let page = shown_pages::way_back(&request);
        let mut answer = match request_rules::check_host(&request) {
            Ok(()) => audience::enter(self, request).await,
            Err(problem) => problem.into_response(),
        };
        if let Some(way_back) = &page {
            answer = shown_pages::show_problem(answer, Some(way_back));
        }
        answer = shown_pages::put_before(self.prefix.as_ref(), &facts.method, answer).await;
        answer = observe::pack(&self.room, &facts, answer).await;
        answer = observe::count(&self.room, &facts, answer).await;
        observe::note(&self.room, &facts, &mut answer);
        // For HEAD the routes have cut off the body before anybody says how long that is: a length of 0 tells nothing.
        let headers = answer.headers_mut();
        if facts.is_head() && headers.get(header::CONTENT_LENGTH).is_some_and(|it| it == "0") {
            headers.remove(header::CONTENT_LENGTH);
        }
        answer
    }

    /// Has a route answer, for a listener and an audience that are known.
    pub(super) async fn find_route(&self, request: Request) -> Response {
        let Ok(answer) = self.routes.clone().oneshot(request).await;
        answer
    }

    /// Whose listener it is.
    pub(super) const fn listener(&self) -> Listener {
        self.listener
    }

    /// The same as a router.
    pub(super) fn into_router(self) -> Router {
        Router::new().fallback_service(service_fn(move |request| {
            let site = self.clone();
            async move { Ok::<_, Infallible>(site.answer(request).await) }
        }))
    }
}

/// What a router does to each answer, for those that come from none: a length that is known is said, and no body
/// goes to HEAD. What is empty there may have been cut off.
fn complete(mut answer: Response, method: &Method) -> Response {
    let is_head = *method == Method::HEAD;
    if let Some(length) = answer.body().size_hint().exact()
        && !(is_head && length == 0)
        && !answer.headers().contains_key(header::CONTENT_LENGTH)
    {
        answer.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
    if is_head {
        *answer.body_mut() = Body::empty();
    }
    answer
}

/// What a listener answers that is no origin's. What is not for it is as unknown there as what is nowhere.
fn own_routes(room: &SharedState, listener: Listener) -> Router {
    let operators = match listener {
        Listener::Everybody | Listener::Operators => routes::router(Access::Operator)
            .merge(routes::router(Access::Form))
            .nest(API, administration(room)),
        Listener::Readers => {
            let forms = ROUTES.iter().filter(|route| route.access == Access::Form);
            forms.fold(Router::new(), |router, form| router.route(&form.path, post(unknown)))
        }
    };
    let readable = routes::router(Access::Anywhere)
        .method_not_allowed_fallback(wrong_method)
        .route_layer(from_fn(request_rules::readable_anywhere));
    let pages = routes::router(Access::Page)
        .route_layer(from_fn_with_state(Arc::clone(room), audience::pages));
    Router::new()
        .merge(readable)
        .merge(pages)
        .merge(operators)
        .merge(routes::router(Access::Everybody))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(REQUEST_BODY_LIMIT))
        .layer(from_fn(observe::routed))
        .with_state(Arc::clone(room))
}

/// What is below the address of administration. Whatever is asked there, the token is asked for first.
fn administration(room: &SharedState) -> Router<SharedState> {
    routes::router(Access::Api)
        .fallback(unknown_administration)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn(query::known_only))
        .layer(from_fn_with_state(Arc::clone(room), auth::require))
}

async fn unknown(request: Request) -> Result<Response, Problem> {
    let elsewhere = request_rules::readable_without_slash(&request);
    elsewhere.ok_or_else(|| nothing_at(request.uri().path()))
}

/// The same below the administration's address, which the routes there do not see.
async fn unknown_administration(uri: Uri) -> Problem {
    nothing_at(&format!("{API}{}", if uri.path() == "/" { "" } else { uri.path() }))
}

/// What is said where nothing is.
pub(super) fn nothing_at(path: &str) -> Problem {
    let path: String = mask_token(path).chars().take(PATH_SHOWN).collect();
    Problem::not_found(format!("there is nothing at {path}"))
}

async fn wrong_method(method: Method) -> Problem {
    let said = match query::known_method(&method) {
        Some(method) => format!("{method} is not for this address; see the header Allow"),
        None => "this method is not for this address; see the header Allow".to_owned(),
    };
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn an_answer_says_its_length_and_has_no_body_for_head() {
        let completed = |method: &Method, body: Body| {
            let answer = complete(Response::new(body), method);
            let length = answer.headers().get(header::CONTENT_LENGTH);
            let length = length.map(|length| length.to_str().unwrap().to_owned());
            (length, answer.body().size_hint().exact())
        };
        let said = |length: &str| Some(length.to_owned());
        assert_eq!(completed(&Method::GET, Body::from("abc")), (said("3"), Some(3)));
        assert_eq!(completed(&Method::HEAD, Body::from("abc")), (said("3"), Some(0)));
        assert_eq!(completed(&Method::GET, Body::empty()), (said("0"), Some(0)));
        // It may be a stream that a router has cut off.
        assert_eq!(completed(&Method::HEAD, Body::empty()), (None, Some(0)));
        // Nobody knows how long the rest of a stream is.
        let stream =
            || Body::from_stream(futures_util::stream::pending::<Result<Bytes, axum::Error>>());
        assert_eq!(completed(&Method::GET, stream()), (None, None));
        assert_eq!(completed(&Method::HEAD, stream()), (None, Some(0)));
    }
}
