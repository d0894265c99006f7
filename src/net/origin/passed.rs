//! A request on its way to an origin, and the answer on its way back; both with bodies as streams.

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
    /// As the origin gets them. `Host` is that of the address where they have none.
    pub headers: HeaderMap,
    /// `None`: it has none.
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
    /// As they came.
    pub headers: HeaderMap,
    pub body: PassedBody,
}

/// An origin's whole answer with status 200.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeAnswer {
    pub headers: HeaderMap,
    /// As it came over the wire, in the codings of the headers.
    pub body: Bytes,
}
