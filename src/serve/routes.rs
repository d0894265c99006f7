//! The table of routes: each path with its handlers, who may ask, and its limits. The routers come from it, and so do the
//! API's description (OpenAPI), the keys that a query of administration may have, and the limits of bodies and answers.

use super::observe::{POLL_TIMEOUT, REQUEST_TIMEOUT};
use super::{
    API, REQUEST_BODY_LIMIT, SharedState, about, actions, add, address, admin, change_feed,
    conflicts, dashboard, edit, event_streams, feed_list, feeds, html, hub, item_list, items,
    openapi, operator, opml, past, probes, put, readers, session, subscribe, sup, webhook,
};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{MethodRouter, get, post};
use http::Method;
use std::sync::LazyLock;
use std::time::Duration;
use utoipa::openapi::path::{Operation, ParameterIn, PathItem};
use utoipa::openapi::{Components, OpenApi, RefOr, Schema};
use utoipa_axum::router::UtoipaMethodRouter;
use utoipa_axum::routes;

/// Who may ask for a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Everybody, and scripts of pages from anywhere.
    Anywhere,
    /// Everybody; where pages are closed (`server.pages`), operators, and readers by their tokens.
    Page,
    Everybody,
    /// Operators. The readers' listener does not have it.
    Operator,
    /// Operators: what a form sends that stands in a page which others may read.
    Form,
    /// Programs with the admin token. The readers' listener does not have it.
    Api,
}

/// A path, what is done there, and how.
pub(super) struct Route {
    pub(super) path: String,
    pub(super) access: Access,
    handlers: MethodRouter<SharedState>,
    /// How the API's description has it; `None` for pages and for what specifications of their own say.
    pub(super) operations: Option<PathItem>,
    /// Schemas that the operations refer to.
    schemas: Vec<(String, RefOr<Schema>)>,
    /// The longest body of a request, in bytes.
    body_limit: usize,
    /// Whether an answer waits for an upstream.
    is_slow: bool,
}

pub(super) static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let mut routes = read_by_programs();
    routes.extend(pages());
    routes.extend(administration());
    routes
});

fn read_by_programs() -> Vec<Route> {
    use Access::{Anywhere, Everybody};
    vec![
        Route::described(Anywhere, routes!(feeds::reader_view)),
        Route::described(Anywhere, routes!(feeds::sync_view)),
        Route::described(Anywhere, routes!(feeds::complete_view)),
        Route::described(Anywhere, routes!(past::archive)),
        Route::described(Anywhere, routes!(change_feed::show)),
        Route::described(Anywhere, routes!(opml::document)),
        Route::described(Anywhere, routes!(sup::document)),
        Route::described(Anywhere, routes!(event_streams::events::events)),
        Route::described(Anywhere, routes!(event_streams::changes)),
        Route::described(Anywhere, routes!(openapi::document)),
        Route::described(Everybody, routes!(probes::alive)),
        Route::described(Everybody, routes!(probes::ready)),
        Route::new(Everybody, "/websub", post(hub::request)),
        Route::new(Everybody, address::CLOUD_PATH, post(hub::register)),
        Route::new(Everybody, hub::CALLBACK, get(hub::verify).post(hub::push))
            .with_body(hub::PUSH_LIMIT),
    ]
}

fn pages() -> Vec<Route> {
    use Access::{Everybody, Form, Operator, Page};
    vec![
        Route::new(Page, "/", get(dashboard::page)),
        Route::new(Page, "/recent", get(dashboard::recent)),
        Route::new(Page, subscribe::PATH, get(subscribe::show).post(subscribe::send)).slow(),
        Route::new(Page, "/feeds/{name}/about", get(about::page)),
        Route::described(Page, routes!(item_list::show)),
        Route::described(Page, routes!(items::item)),
        Route::described(Page, routes!(conflicts::show)),
        Route::new(Form, "/feeds/{name}/about", post(actions::act)).slow(),
        Route::new(Form, "/feeds/{name}/items/{id}", post(items::act)),
        Route::new(Form, "/feeds/{name}/conflicts", post(conflicts::resolve))
            .with_body(edit::ENTRY_LIMIT),
        Route::new(
            Operator,
            "/feeds/{name}/edit",
            get(actions::show_form).post(actions::send_form),
        ),
        Route::new(Operator, "/add", get(add::show).post(add::send)).slow(),
        Route::new(Operator, "/add/list", get(add::show_import).post(add::upload))
            .with_body(add::UPLOAD_LIMIT),
        Route::new(Operator, "/session", get(session::show).post(session::begin)),
        Route::new(Operator, "/session/end", post(session::end)),
        Route::new(Everybody, "/assets/style.css", get(html::style)),
        Route::new(Everybody, "/robots.txt", get(html::robots)),
        Route::new(Everybody, html::ICON, get(html::icon)),
        Route::new(Everybody, "/favicon.ico", get(html::icon)),
    ]
}

fn administration() -> Vec<Route> {
    use Access::{Api, Operator};
    vec![
        Route::described(Operator, routes!(probes::metrics)),
        Route::described(Api, routes!(feed_list::list, add::create)),
        Route::described(Api, routes!(add::preview_address)).slow(),
        Route::described(Api, routes!(admin::show, put::put, put::patch, admin::delete)),
        Route::described(Api, routes!(admin::poll)).slow(),
        Route::described(Api, routes!(admin::hold)),
        Route::described(Api, routes!(admin::pause)),
        Route::described(Api, routes!(admin::backfill)),
        Route::described(Api, routes!(webhook::show, webhook::put, webhook::delete)),
        Route::described(Api, routes!(add::import_list)).with_body(operator::LIST_LIMIT),
        Route::described(Api, routes!(admin::export)),
        Route::described(Api, routes!(readers::list)),
        Route::described(Api, routes!(hub::list)),
        Route::described(Api, routes!(item_list::list, edit::create)).with_body(edit::ENTRY_LIMIT),
        Route::described(Api, routes!(items::detail, edit::update, edit::delete))
            .with_body(edit::ENTRY_LIMIT),
        Route::described(Api, routes!(edit::restore)).with_body(edit::ENTRY_LIMIT),
        Route::described(Api, routes!(edit::resolve)).with_body(edit::ENTRY_LIMIT),
        Route::described(Api, routes!(conflicts::list)),
        Route::described(Api, routes!(admin::delete_missing)),
        Route::described(Api, routes!(admin::redact)),
    ]
}

impl Route {
    /// A route that the API's description leaves out.
    fn new(access: Access, path: &str, handlers: MethodRouter<SharedState>) -> Self {
        Self {
            path: path.to_owned(),
            access,
            handlers,
            operations: None,
            schemas: Vec::new(),
            body_limit: REQUEST_BODY_LIMIT,
            is_slow: false,
        }
    }

    /// A route whose path and methods stand at its handlers, with their description.
    fn described(access: Access, described: UtoipaMethodRouter<SharedState>) -> Self {
        let (schemas, paths, handlers) = described;
        let (path, operations) = paths.paths.into_iter().next().unwrap_or_default();
        Self { operations: Some(operations), schemas, ..Self::new(access, &path, handlers) }
    }

    /// Takes bodies of other lengths than most.
    fn with_body(self, body_limit: usize) -> Self {
        Self { body_limit, ..self }
    }

    /// Answers when an upstream has answered.
    fn slow(self) -> Self {
        Self { is_slow: true, ..self }
    }

    fn operation(&self, method: &Method) -> Option<&Operation> {
        let operations = self.operations.as_ref()?;
        let operation = match *method {
            Method::GET | Method::HEAD => &operations.get,
            Method::POST => &operations.post,
            Method::PUT => &operations.put,
            Method::PATCH => &operations.patch,
            Method::DELETE => &operations.delete,
            _ => &None,
        };
        operation.as_ref()
    }
}

/// The router of those who have an access; that of administration is for below its address.
pub(super) fn router(access: Access) -> Router<SharedState> {
    let routes = ROUTES.iter().filter(|route| route.access == access);
    routes.fold(Router::new(), |router, route| {
        let handlers = route.handlers.clone();
        let handlers = match route.body_limit {
            REQUEST_BODY_LIMIT => handlers,
            limit => handlers.layer(DefaultBodyLimit::max(limit)),
        };
        let below = Some(&*route.path).filter(|_| access == Access::Api);
        let path = below.and_then(|path| path.strip_prefix(API)).unwrap_or(&route.path);
        router.route(path, handlers)
    })
}

fn at(path: &str) -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().filter(move |route| route.path == path)
}

/// The longest body of a request to a path of the table, in bytes.
pub(super) fn body_limit(path: &str) -> usize {
    at(path).map(|route| route.body_limit).max().unwrap_or(REQUEST_BODY_LIMIT)
}

/// How long an answer at a path of the table may take.
pub(super) fn time_limit(path: &str) -> Duration {
    static SLOW: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let slow = ROUTES.iter().filter(|route| route.is_slow);
        slow.map(|route| &*route.path).collect()
    });
    if SLOW.contains(&path) { POLL_TIMEOUT } else { REQUEST_TIMEOUT }
}

/// Whether the admin token is asked for at a path of the table.
pub(super) fn needs_token(path: &str) -> bool {
    at(path).any(|route| route.access == Access::Api)
}

/// The keys that the query of a request to a path of the table may have; `None` where that has no such method.
pub(super) fn query_keys(path: &str, method: &Method) -> Option<Vec<&'static str>> {
    let operation = at(path).find_map(|route| route.operation(method))?;
    let parameters = operation.parameters.iter().flatten();
    let keys = parameters.filter_map(|parameter| match parameter {
        RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query => {
            Some(&*parameter.name)
        }
        _ => None,
    });
    Some(keys.collect())
}

/// Adds the operations of all routes and the schemas that they refer to.
pub(super) fn describe(document: &mut OpenApi) {
    let components = document.components.get_or_insert_with(Components::new);
    for route in ROUTES.iter() {
        components.schemas.extend(route.schemas.iter().cloned());
        let operations = route.operations.iter().cloned();
        document.paths.paths.extend(operations.map(|it| (route.path.clone(), it)));
    }
}
