//! All outgoing requests, as boxed services.
//!
//! [`Fetch`] gets one document ([`FetchRequest`] to [`Fetched`]). [`Call`] makes one request to a page, a hub or a
//! callback ([`CallRequest`] to [`Called`]). [`Pass`] forwards requests to origins ([`PassRequest`] to [`PassAnswer`]).
//! [`ApiClient`] asks a server that the operator names.
//!
//! All of them share one SSRF guard. It checks the URL of each hop and resolves names to admitted addresses only, and
//! exactly these are connected to. Foreign answers may lead to fewer addresses than the operator may name
//! ([`LeadScope`]). Bodies are read within limits and still compressed, so that an unchanged one is recognized before
//! decompression. This module does not know feeds, schedules or the store.

mod access;
mod api;
mod body;
mod call;
mod challenge;
mod client;
mod clients;
mod error;
mod freshness;
mod guard;
mod handover;
mod lead;
mod message;
mod pass;
mod redirect;
mod resolver;

pub use access::{RequestAccess, find_secret, secret_header};
pub use api::{ApiAnswer, ApiClient, status_of};
pub use body::{DecodeError, MAX_CODINGS, decoded};
pub use call::{CallBody, CallRequest, Called};
pub use client::services;
pub use clients::KEPT_IDLE;
pub use error::{FetchBlame, FetchError, PauseRequest, Retry};
pub use freshness::MAX_STATED;
pub use guard::{
    AllowPrivate, MAX_ALLOWED_HOSTS, MAX_URL_BYTES, NonPublicKind, Openness, Refusal, admits_proxy,
    bare, check, host_and_port, read_url, shown, with_credentials,
};
pub use handover::Handover;
pub use lead::LeadScope;
pub use message::{
    FetchAnswer, FetchRequest, Fetched, FetchedDocument, MAX_VALIDATOR_BYTES, Validators,
};
pub use redirect::MAX_REDIRECTS;
pub use resolver::MAX_ADDRESSES;

use crate::origin::{OriginSite, PassAnswer, PassRequest};
use http::HeaderMap;
use std::future::ready;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::ProxyAddress;

/// Fetches a document; boxed, so that polls can be tested with a scripted service.
pub type Fetch = tower::util::BoxCloneSyncService<FetchRequest, Fetched, FetchError>;

/// Calls a page, a hub or a callback; boxed for the same reason.
pub type Call = tower::util::BoxCloneSyncService<CallRequest, Called, FetchError>;

/// Forwards requests to origins; boxed for the same reason. Cheap to clone, because each request has a clone.
pub type Pass = Arc<dyn Fn(PassRequest) -> Passage + Send + Sync>;

/// The future answer of an origin.
pub type Passage = Pin<Box<dyn Future<Output = Result<PassAnswer, FetchError>> + Send>>;

/// The three services, which share clients and guard.
#[derive(Clone)]
pub struct Services {
    /// Fetches documents.
    pub fetch: Fetch,
    /// Calls pages, hubs and callbacks.
    pub call: Call,
    /// Passes requests on to origins.
    pub passing: Passing,
}

/// The service for passing requests on, and what connects it with polls.
#[derive(Clone)]
pub struct Passing {
    pub pass: Pass,
    /// Documents that on-demand feeds' polls use instead of asking the publisher.
    pub handover: Handover,
    /// The headers of every poll that identify the gateway and say what it reads.
    pub polled_with: HeaderMap,
}

impl Default for Passing {
    /// Refuses every request: there are no origins.
    fn default() -> Self {
        let why = "this gateway has no origins".to_owned();
        let refused = FetchError::Client { what: "pass a request on", why };
        let refuse = move |_| -> Passage { Box::pin(ready(Err(refused.clone()))) };
        Self {
            pass: Arc::new(refuse),
            handover: Handover::default(),
            polled_with: HeaderMap::new(),
        }
    }
}

/// The limits of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// The time from the first connection to the last byte, redirects included.
    pub total: Duration,
    /// The time to resolve the name, connect and agree on TLS, per hop.
    pub connect: Duration,
    /// The longest silence within a response.
    pub idle: Duration,
    /// The most bytes of a body as transferred.
    pub wire_bytes: usize,
    /// The most bytes of a body once decompressed.
    pub decoded_bytes: usize,
    /// The most fetches at the same time.
    pub at_once: usize,
    /// The time for a call of a page, a hub or a callback.
    pub call: Duration,
    /// The most calls at the same time.
    pub calls_at_once: usize,
    /// For passed requests: how long an origin may neither read the request nor send its answer.
    pub pass_idle: Duration,
    /// For passed requests: how long sending the body may take.
    pub pass_upload: Duration,
}

impl FetchLimits {
    /// The limits of a running gateway.
    pub const STANDARD: Self = Self {
        total: Duration::from_secs(60),
        connect: Duration::from_secs(10),
        idle: Duration::from_secs(20),
        wire_bytes: 32 * 1024 * 1024,
        decoded_bytes: 32 * 1024 * 1024,
        at_once: 128,
        call: Duration::from_secs(15),
        calls_at_once: 512,
        pass_idle: Duration::from_secs(60),
        pass_upload: Duration::from_secs(3600),
    };
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self::STANDARD
    }
}

/// The settings of the client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FetchSettings {
    /// The `User-Agent`; by default the program's name and version.
    pub user_agent: Option<String>,
    /// The address in `User-Agent` where publishers can learn who asks.
    pub about_url: Option<String>,
    /// Which upstreams may have private addresses.
    pub allow_private: AllowPrivate,
    /// The proxy of all requests without their own route; the operator's own hosts are reached directly.
    pub proxy: Option<ProxyAddress>,
    /// Whether names that do not resolve here are left to the proxy.
    pub proxy_resolves: bool,
    /// A file with certificates that are trusted in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// The sites in front of which this gateway stands. Each request tells them their public name.
    pub sites: Vec<Arc<OriginSite>>,
    pub limits: FetchLimits,
}
