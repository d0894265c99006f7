//! Problem documents (RFC 9457): what every error answer of this module is.

use super::OperatorError;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;
use tidegate_store::StoreError;
use utoipa::ToSchema;

/// The media type of problem documents (RFC 9457 section 6.1).
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// How soon to ask again for something that is not there yet.
const RETRY_SOON: Duration = Duration::from_secs(30);

/// An error answer. `type` is left out: it is `about:blank`, the status says all of it
/// (RFC 9457 section 4.2.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct Problem {
    title: &'static str,
    #[serde(serialize_with = "as_number")]
    #[schema(value_type = u16, minimum = 400, maximum = 599)]
    pub(super) status: StatusCode,
    /// A sentence about this occurrence.
    pub(super) detail: String,
    /// Our extension: the parameter, key or part of the address at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    parameter: Option<String>,
    /// Further extensions (RFC 9457 section 3.2).
    #[serde(flatten)]
    members: BTreeMap<&'static str, serde_json::Value>,
    /// How soon to ask again.
    #[serde(skip)]
    pub(super) retry_after: Option<Duration>,
    #[serde(skip)]
    pub(super) cause: ProblemCause,
}

/// The cause of an error, for the middleware around the handler that returned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProblemCause {
    Any,
    /// The token of administration is asked for.
    NoToken,
    /// There is no feed of a name for who asks.
    UnknownFeed,
    /// The topic of a hub request is not the address of a view here.
    ForeignTopic,
    /// A topic of the hub is below a token that opens nothing.
    RevokedToken,
    /// The origin is still busy with earlier requests.
    LateSite,
    /// A feed was changed while it was read.
    ChangedFeed,
}

fn as_number<S: serde::Serializer>(status: &StatusCode, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u16(status.as_u16())
}

impl Problem {
    /// A problem of this status, with one sentence about this occurrence.
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            title: status.canonical_reason().unwrap_or("Error"),
            status,
            detail: detail.into(),
            parameter: None,
            members: BTreeMap::new(),
            retry_after: None,
            cause: ProblemCause::Any,
        }
    }

    /// 400 because of a parameter, key or path segment.
    pub(super) fn parameter(name: &str, detail: impl Into<String>) -> Self {
        Self { parameter: Some(name.to_owned()), ..Self::new(StatusCode::BAD_REQUEST, detail) }
    }

    /// 404.
    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// 404 of a name of which there is no feed for who asks.
    pub(super) fn unknown_feed() -> Self {
        let detail = "no feed of that name is published here";
        Self::not_found(detail).with_cause(ProblemCause::UnknownFeed)
    }

    /// 503, to be asked again soon.
    pub(super) fn later(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail).after(RETRY_SOON)
    }

    /// 503 of a feed of which no document has been taken in yet.
    pub(super) fn unread_feed() -> Self {
        Self::later("no document of this feed has been taken in yet")
    }

    /// 503 of what could not be made, for a reason that is for the operator's log.
    pub(super) fn not_made(what: &str, error: impl Display) -> Self {
        tracing::error!(%error, what, "what was asked for could not be made");
        Self::later(format!("the gateway could not make {what}"))
    }

    /// 401 with the challenge of RFC 6750 section 3.
    pub(super) fn unauthorized() -> Self {
        let detail = "administration needs the header Authorization: Bearer TOKEN with the gateway's \
                    admin token";
        Self::new(StatusCode::UNAUTHORIZED, detail).with_cause(ProblemCause::NoToken)
    }

    /// With a cause for the middleware around the handler.
    pub(super) const fn with_cause(mut self, cause: ProblemCause) -> Self {
        self.cause = cause;
        self
    }

    /// With a further member.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<serde_json::Value>) -> Self {
        self.members.insert(name, value.into());
        self
    }

    /// With `Retry-After`.
    pub(super) const fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// With the offending parameter, key or path segment.
    pub(super) fn about(mut self, name: &str) -> Self {
        self.parameter = Some(name.to_owned());
        self
    }
}

impl From<StoreError> for Problem {
    /// What a reader learns of an error of the store: whether it may be over soon, or that it is our fault. The rest is
    /// for the operator's log.
    fn from(error: StoreError) -> Self {
        let cause = &error as &dyn std::error::Error;
        match &error {
            StoreError::Closed => Self::later("the gateway is shutting down"),
            // The store itself has logged why, once.
            StoreError::Stopped(_) if error.is_passing() => {
                let detail = "the gateway's store stopped after a failure and is opened again; what was made before and did \
                            not change since is served meanwhile";
                Self::later(detail)
            }
            StoreError::Away { .. } => {
                let detail = "a reader is to ask again once the database answers";
                tracing::warn!(error = cause, "{detail}");
                Self::later(error.to_string())
            }
            StoreError::Outdated => {
                Self::later(error.to_string()).with_cause(ProblemCause::ChangedFeed)
            }
            _ if error.is_passing() => Self::later(error.to_string()),
            _ => {
                tracing::error!(error = cause, "the store failed a reader");
                Self::later("the gateway could not read its store")
            }
        }
    }
}

impl From<OperatorError> for Problem {
    fn from(error: OperatorError) -> Self {
        match error.status {
            StatusCode::SERVICE_UNAVAILABLE => return Self::later(error.to_string()),
            StatusCode::INTERNAL_SERVER_ERROR => {
                tracing::error!(error = &error as &dyn std::error::Error, "administration failed");
            }
            _ => {}
        }
        Self::new(error.status, error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        // Serialising three strings and a number cannot fail; an empty body would still carry
        // the status.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, PROBLEM_JSON);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(wait) = self.retry_after {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.cause == ProblemCause::NoToken {
            let realm = HeaderValue::from_static("Bearer realm=\"tidegate\"");
            headers.insert(header::WWW_AUTHENTICATE, realm);
        }
        // `shown_pages` shows it as a page, and `audience` and `observe` read its cause and detail.
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use tidegate_poll::PollError;
    use tidegate_store::CommitError;

    fn of_operator(error: impl Into<OperatorError>) -> Problem {
        Problem::from(error.into())
    }

    #[test]
    fn a_database_that_is_away_is_no_fault() {
        let source = || io::Error::other("db.example:5433: connection reset");
        let why = "does not answer, or fails over";
        let away = || StoreError::Away { doing: "read", why, source: source() };
        let fault = || StoreError::Io { doing: "read", source: source() };
        for (problem, status, says_why) in [
            (Problem::from(away()), 503, true),
            (of_operator(away()), 503, true),
            (of_operator(CommitError::Store(away())), 503, true),
            (of_operator(CommitError::Ambiguous(away())), 503, true),
            (of_operator(CommitError::Overtaken), 503, false),
            (of_operator(StoreError::Closed), 503, false),
            (of_operator(PollError::Stopped), 503, false),
            (of_operator(fault()), 500, false),
            (of_operator(CommitError::Ambiguous(fault())), 500, false),
        ] {
            assert_eq!(problem.status, status, "{problem:?}");
            assert_eq!(problem.detail.contains(why), says_why, "{problem:?}");
            assert!(!says_why || problem.retry_after == Some(RETRY_SOON), "{problem:?}");
            assert!(!problem.detail.contains("db.example"), "{problem:?}");
        }
    }
}
