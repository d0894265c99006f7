//! A request to an origin and its answer, both with bodies as streams.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use std::error::Error;
use std::fmt;
use url::Url;

/// Why a body broke off.
pub type BodyError = Box<dyn Error + Send + Sync>;

/// A body on its way.
pub type PassedBody = UnsyncBoxBody<Bytes, BodyError>;

/// A request to be passed on.
pub struct PassRequest {
    pub method: Method,
    pub url: Url,
    /// The same address with path and query as the client wrote them; `None`: as the address has them.
    pub target: Option<Uri>,
    /// The headers for the origin. A missing `Host` is taken from the address.
    pub headers: HeaderMap,
    /// `None`: the request has no body.
    pub body: Option<PassedBody>,
}

impl fmt::Debug for PassRequest {
    // Headers may hold credentials, and the address keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

/// What the origin answered.
#[derive(Debug)]
pub struct PassAnswer {
    pub status: StatusCode,
    /// The headers, unchanged.
    pub headers: HeaderMap,
    pub body: PassedBody,
}

/// An origin's whole answer with status 200.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeAnswer {
    pub headers: HeaderMap,
    /// The body as transferred, with the content codings of the headers.
    pub body: Bytes,
}
