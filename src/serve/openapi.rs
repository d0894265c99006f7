//! `GET /api/v1/openapi.json`: what this gateway answers, in OpenAPI 3.1.
//!
//! The document is written by hand. A test compares it with the router, and another with the answers of a
//! gateway.

use super::address::Site;
use super::{SharedState, html};
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Value, json};
use std::sync::OnceLock;

/// Where it is. Anybody may read it.
pub(super) const ROUTE: &str = "/api/v1/openapi.json";
/// What is written, without the version of the program and the address of the gateway.
const WRITTEN: &str = include_str!("openapi.json");

/// The document of this gateway, once somebody has asked for it.
pub(super) struct ApiDescription {
    base: String,
    text: OnceLock<Bytes>,
}

impl ApiDescription {
    /// The document of a gateway at this address.
    pub(super) fn new(site: &Site) -> Self {
        Self { base: site.at(""), text: OnceLock::new() }
    }

    fn text(&self) -> Bytes {
        self.text.get_or_init(|| written(&self.base).to_string().into()).clone()
    }
}

/// The document of this program, at this address.
fn written(base: &str) -> Value {
    // It is part of the program, and a test reads it.
    let mut document: Value = serde_json::from_str(WRITTEN).unwrap_or_default();
    if let Some(version) = document.pointer_mut("/info/version") {
        *version = json!(env!("CARGO_PKG_VERSION"));
    }
    if let Some(servers) = document.pointer_mut("/servers") {
        *servers = json!([{ "url": base }]);
    }
    document
}

/// `GET /api/v1/openapi.json`.
pub(super) async fn document(State(room): State<SharedState>, asked: HeaderMap) -> Response {
    html::whole(&asked, "application/json", "public, max-age=3600", room.description.text())
}
