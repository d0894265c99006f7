//! Fetches one document: a boxed [`tower::Service`] from [`FetchRequest`] to [`Fetched`]. A second
//! one makes one request, to a page, a hub or a callback, from [`CallRequest`] to [`Called`]; a third passes requests on
//! to origins, from [`PassRequest`] to [`PassAnswer`]. [`ApiClient`] asks a server that the operator names.
//!
//! Every request of this gateway goes through here, and here through one guard: each hop's URL is
//! checked, names are resolved to admitted addresses only, and those are what is connected to. What a
//! foreign answer leads to has less leave than what the operator names ([`LeadScope`]).
//! Bodies are read within limits, still compressed, so that an unchanged one is known before it is
//! decompressed. What is absent: what a feed is, when to ask again, what is stored.

mod access;
mod address;
mod api;
mod body;
mod call;
mod challenge;
mod client;
mod clients;
mod decode;
mod error;
mod freshness;
mod guard;
mod handover;
mod kept_hosts;
mod lead;
mod message;
mod pass;
mod passers;
mod redirect;
mod resolver;

pub use access::{RequestAccess, find_secret, secret_header};
pub use address::NonPublicKind;
pub use api::{ApiAnswer, ApiClient, status_of};
pub use call::{CallBody, CallRequest, Called};
pub use client::services;
pub use decode::{DecodeError, MAX_CODINGS, decoded};
pub use error::{FetchBlame, FetchError, PauseRequest, Retry};
pub use freshness::MAX_STATED;
pub use guard::{
    AllowPrivate, MAX_ALLOWED_HOSTS, MAX_URL_BYTES, Openness, Refusal, admits_proxy, bare, check,
    host_and_port, read_url, shown, with_credentials,
};
pub use handover::Handover;
pub use kept_hosts::KEPT_IDLE;
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

/// Fetching, boxed at the door so that polls can be tested with a scripted one.
pub type Fetch = tower::util::BoxCloneSyncService<FetchRequest, Fetched, FetchError>;

/// Calling pages, hubs and callbacks, boxed for the same reason.
pub type Call = tower::util::BoxCloneSyncService<CallRequest, Called, FetchError>;

/// Passing requests on to origins, boxed for the same reason. A copy of it costs nothing, as each request has one.
#[derive(Clone)]
pub struct Pass(Arc<dyn Fn(PassRequest) -> Passage + Send + Sync>);

/// A request on its way to an origin.
pub type Passage = Pin<Box<dyn Future<Output = Result<PassAnswer, FetchError>> + Send>>;

impl Pass {
    /// Passes each request on in this way.
    pub fn new(pass: impl Fn(PassRequest) -> Passage + Send + Sync + 'static) -> Self {
        Self(Arc::new(pass))
    }

    /// Passes a request on.
    pub fn send(&self, request: PassRequest) -> Passage {
        (self.0)(request)
    }
}

/// The services, over the same clients and the same guard.
#[derive(Clone)]
pub struct Services {
    /// Fetches documents.
    pub fetch: Fetch,
    /// Calls pages, hubs and callbacks.
    pub call: Call,
    /// Passes requests on to origins.
    pub passing: Passing,
}

/// Passing requests on, and what polls take of the answers.
#[derive(Clone)]
pub struct Passing {
    pub pass: Pass,
    /// What a poll of a feed that requests made takes instead of asking the publisher.
    pub handover: Handover,
    /// What every poll says of the gateway: how it names itself and what it reads.
    pub polled_with: HeaderMap,
}

impl Default for Passing {
    /// Passes nothing on.
    fn default() -> Self {
        let why = "this gateway has no origins".to_owned();
        let refused = FetchError::Client { what: "pass a request on", why };
        let refuse = move |_| -> Passage { Box::pin(ready(Err(refused.clone()))) };
        Self {
            pass: Pass::new(refuse),
            handover: Handover::default(),
            polled_with: HeaderMap::new(),
        }
    }
}

/// What one fetch may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// From the first connection to the last byte, redirects included.
    pub total: Duration,
    /// To resolve the name, connect and agree on TLS, for each hop.
    pub connect: Duration,
    /// Between two pieces of a response.
    pub idle: Duration,
    /// Of the body as it comes over the wire, in bytes.
    pub wire_bytes: usize,
    /// Of the body once decompressed, in bytes.
    pub decoded_bytes: usize,
    /// Fetches at the same time.
    pub at_once: usize,
    /// To call a page, a hub or a callback.
    pub call: Duration,
    /// Calls at the same time.
    pub calls_at_once: usize,
    /// How long an origin may take nothing of such a request, and send nothing of its answer.
    pub pass_idle: Duration,
    /// How long the body of such a request may take.
    pub pass_upload: Duration,
}

impl FetchLimits {
    /// The limits that the gateway runs with.
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

/// What the client must be told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FetchSettings {
    /// How the gateway names itself in `User-Agent`; by default its name and version.
    pub user_agent: Option<String>,
    /// The address where publishers can learn who asks; stands in `User-Agent`.
    pub about_url: Option<String>,
    /// Whether upstreams may be private.
    pub allow_private: AllowPrivate,
    /// The way out of every request that has none of its own; the operator's own hosts are reached
    /// without it.
    pub proxy: Option<ProxyAddress>,
    /// Whether hosts whose names lead to no address here are left to the proxy.
    pub proxy_resolves: bool,
    /// A file with certificates that are believed beside the system's.
    pub ca_file: Option<PathBuf>,
    /// The sites that this gateway stands in front of. Each is told its public name with every request.
    pub sites: Vec<Arc<OriginSite>>,
    pub limits: FetchLimits,
}
