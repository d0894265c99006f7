//! The routers: what a listener answers, by who may ask (`routes.rs`), and what goes around all of it.

use super::problem::Problem;
use super::routes::{self, Access, ROUTES};
use super::{
    API, Listener, REQUEST_BODY_LIMIT, SharedState, audience, auth, compressed, error_page,
    observe, prefix, query, request_rules, unsent_bodies,
};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::post;
use std::sync::Arc;
use tidegate_core::model::mask_token;

/// How many characters of an unknown path are said back.
const PATH_SHOWN: usize = 200;

/// What a listener answers that is no origin's. What is not for it is as unknown there as what is nowhere.
pub(super) fn own_routes(room: SharedState, listener: Listener) -> Router {
    let prefix = prefix::Prefix::from_public_url(&room.site.at(""));
    let operators = match listener {
        Listener::Everybody | Listener::Operators => routes::router(Access::Operator)
            .merge(routes::router(Access::Form))
            .nest(API, administration(&room)),
        Listener::Readers => {
            let forms = ROUTES.iter().filter(|route| route.access == Access::Form);
            forms.fold(Router::new(), |router, form| router.route(&form.path, post(unknown)))
        }
    };
    let readable = routes::router(Access::Anywhere)
        .method_not_allowed_fallback(wrong_method)
        .route_layer(from_fn(request_rules::readable_anywhere));
    let pages = routes::router(Access::Page)
        .route_layer(from_fn_with_state(Arc::clone(&room), audience::pages));
    let site = Router::new()
        .merge(readable)
        .merge(pages)
        .merge(operators)
        .merge(routes::router(Access::Everybody))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(REQUEST_BODY_LIMIT))
        .layer(from_fn(observe::routed))
        .with_state(Arc::clone(&room));
    // Around the routing: the path that is routed has no token in it.
    Router::new()
        .fallback_service(site)
        .layer(from_fn_with_state((Arc::clone(&room), listener), audience::enter))
        .layer(from_fn(error_page::show))
        .layer(from_fn_with_state(prefix, prefix::put_before))
        .layer(from_fn(request_rules::one_host))
        .layer(from_fn_with_state(Arc::clone(&room), compressed::answer))
        .layer(from_fn_with_state(Arc::clone(&room), unsent_bodies::count))
        .layer(from_fn_with_state(room, observe::answer))
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
