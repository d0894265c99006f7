//! Passes a request on to an origin and its answer back, both as streams (RFC 9110 section 7.6). One request,
//! without following redirects; what of the headers is passed on is for the caller to say.
//!
//! The same guard as for feeds. Clients of their own, which add nothing to a request but `Host` and keep more
//! connections to one host.

use super::client::Core;
use super::error::FetchError;
use crate::origin::{BodyError, PassAnswer, PassRequest, PassedBody};
use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

impl Core {
    pub(super) async fn pass(&self, request: PassRequest) -> Result<PassAnswer, FetchError> {
        let PassRequest { method, url, mut headers, body } = request;
        let may_repeat = body.is_none() && matches!(method, Method::GET | Method::HEAD);
        let by = self.client_for_passing(&url, !may_repeat).await?;
        if by.proxy.is_some() {
            // The client for a proxy would add its own.
            headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
            headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        }
        let limit = self.limits.pass_idle;
        let progress = UploadProgress::new();
        let again = may_repeat.then(|| (method.clone(), headers.clone()));
        let mut call = by.client.request(method, url.clone()).headers(headers);
        if let Some(body) = body {
            let body = NotedBody { body, progress: progress.clone() };
            call = call.body(reqwest::Body::wrap_stream(body.into_data_stream()));
        }
        let sending = async {
            match (call.send().await, again) {
                // A connection that was kept may be closed just when a request is sent over it, and so may the next.
                (Err(error), Some((method, headers))) if is_cut_off(&error) => {
                    let own = self.client_for_passing(&url, true).await?;
                    let sent = own.client.request(method, url.clone()).headers(headers).send();
                    sent.await.map_err(|error| own.unreached(error, &url, 0, &self.limits))
                }
                (sent, _) => sent.map_err(|error| by.unreached(error, &url, 0, &self.limits)),
            }
        };
        let answer = tokio::select! {
            sent = sending => sent?,
            () = progress.stall(limit, self.limits.pass_upload) => {
                return Err(FetchError::Timeout { what: "answer", limit });
            }
        };
        let (head, body) = http::Response::<reqwest::Body>::from(answer).into_parts();
        if head.status.is_informational() {
            // No upgrade was asked for.
            let why = format!("the origin answered {}", head.status.as_u16());
            return Err(FetchError::CutOff { why });
        }
        let body = TimedBody::new(body, limit).map_err(BodyError::from).boxed_unsync();
        Ok(PassAnswer { status: head.status, headers: head.headers, body })
    }
}

/// Whether a connection ended before there was an answer.
fn is_cut_off(error: &reqwest::Error) -> bool {
    error.is_request() && !error.is_connect() && !error.is_timeout()
}

/// When the origin last took something of a request's body.
#[derive(Clone)]
struct UploadProgress(Arc<Mutex<Instant>>);

impl UploadProgress {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Comes when nothing went on for so long, or when all of it took too long.
    async fn stall(&self, limit: Duration, all: Duration) {
        let end = Instant::now() + all;
        loop {
            let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let until = (last + limit).min(end);
            if Instant::now() >= until {
                return;
            }
            sleep_until(until).await;
        }
    }
}

/// The body of a request, whose progress is noted.
struct NotedBody {
    body: PassedBody,
    progress: UploadProgress,
}

impl Body for NotedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.progress.note();
        Poll::Ready(frame)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer, which breaks off where nothing comes for so long.
struct TimedBody {
    body: reqwest::Body,
    limit: Duration,
    idle: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl TimedBody {
    fn new(body: reqwest::Body, limit: Duration) -> Self {
        let idle = Box::pin(sleep_until(Instant::now() + limit));
        Self { body, limit, idle, is_waiting: false }
    }
}

/// Why the body of an answer broke off.
#[derive(Debug, thiserror::Error)]
enum PassedBodyError {
    #[error(transparent)]
    Broken(#[from] reqwest::Error),
    #[error("the origin sent nothing for {} s, which is the limit", limit.as_secs())]
    Idle { limit: Duration },
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = PassedBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, PassedBodyError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            this.is_waiting = false;
            return Poll::Ready(frame.map(|frame| frame.map_err(PassedBodyError::from)));
        }
        // The time counts from when the client waits: it may have been the client that took nothing.
        if !this.is_waiting {
            this.is_waiting = true;
            this.idle.as_mut().reset(Instant::now() + this.limit);
        }
        ready!(this.idle.as_mut().poll(context));
        Poll::Ready(Some(Err(PassedBodyError::Idle { limit: this.limit })))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
