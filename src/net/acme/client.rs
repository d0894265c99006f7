//! Asks an authority by the gateway's own client, with its guard and its limits.

use crate::fetch::{ApiClient, ApiRequest, FetchError};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use std::pin::Pin;
use std::sync::Arc;
use url::Url;

/// The longest answer, in bytes: a chain of certificates is some thousands.
const ANSWER_LIMIT: usize = 1024 * 1024;
/// What a refusal says, as a media type (RFC 8555 section 6.7).
const PROBLEM: &str = "application/problem+json";
/// The longest pause that an authority may ask for within an order, in seconds.
const LONGEST_PAUSE: u64 = 3600;
/// What is sent (RFC 8555 section 6.2).
const SIGNED: &str = "application/jose+json";

/// A client of one authority.
pub(super) struct AuthorityClient(pub(super) Arc<ApiClient>);

type AuthorityAnswer = Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>>;

impl HttpClient for AuthorityClient {
    fn request(&self, request: Request<BodyWrapper<Bytes>>) -> AuthorityAnswer {
        let client = Arc::clone(&self.0);
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let url =
                Url::parse(&head.uri.to_string()).map_err(|error| Error::Other(error.into()))?;
            if url.scheme() != "https" {
                return Err(Error::Str("an address of https; the authority named another"));
            }
            let body = match body.collect().await {
                Ok(body) => body.to_bytes(),
                Err(never) => match never {},
            };
            let body = (!body.is_empty()).then_some((SIGNED, body));
            let other = |error: FetchError| Error::Other(error.into());
            let sent = client.send(ApiRequest { method: head.method, url, body }).await;
            let answer = sent.map_err(other)?;
            let mut response = Response::builder().status(answer.status).body(())?;
            *response.headers_mut() = answer.headers().clone();
            let headers = response.headers_mut();
            let text = |value: &HeaderValue| value.to_str().map(str::to_owned).unwrap_or_default();
            let is_problem =
                headers.get(CONTENT_TYPE).is_some_and(|kind| text(kind).starts_with(PROBLEM));
            if answer.status >= 400 && !is_problem {
                return Err(Error::Other(format!("it answered {}", answer.status).into()));
            }
            let pause = headers.get(RETRY_AFTER).map(text);
            // Longer than anybody waits here; dates are read as they are.
            if pause
                .is_some_and(|pause| pause.parse().is_ok_and(|pause: u64| pause > LONGEST_PAUSE))
            {
                headers.remove(RETRY_AFTER);
            }
            let body = answer.whole(ANSWER_LIMIT).await.map_err(other)?;
            Ok(response.map(|()| Full::new(body)).into())
        })
    }
}
