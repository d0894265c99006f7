//! Single requests without following redirects: to pages, hubs, and subscribers' callbacks.
//!
//! They use the same clients and guard as fetches. Only as much of the answer is read as the caller needs; the caller
//! interprets it and any redirect.

use super::body::read_some;
use super::client::{Core, RequestWay};
use super::clients::{CODINGS, HttpVersions};
use super::error::{FetchError, broken};
use super::freshness;
use super::lead::{LeadScope, without_credentials};
use super::redirect::target;
use bytes::{Bytes, BytesMut};
use http::Method;
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderMap, HeaderValue, LOCATION};
use reqwest::Response;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{ProxyRoute, Time};
use url::Url;

/// The `Accept` of a request for a page.
pub(super) const PAGES: HeaderValue =
    HeaderValue::from_static("text/html, application/xhtml+xml, */*;q=0.8");

/// A single request.
#[derive(Clone)]
pub struct CallRequest {
    pub method: Method,
    /// The address; its credentials and fragment are not sent.
    pub url: Url,
    pub sent: CallBody,
    /// The most bytes of the answer's body to read; 0: the body is not awaited.
    pub answer: usize,
    /// The route; `None`: that of the gateway.
    pub route: Option<ProxyRoute>,
    /// The scope of private addresses that may be asked.
    pub leads: LeadScope,
    pub now: Time,
}

impl CallRequest {
    /// Creates a GET that does not read the answer's body.
    pub fn get(url: Url, leads: LeadScope, now: Time) -> Self {
        let (method, sent, route) = (Method::GET, CallBody::default(), None);
        Self { method, url, sent, answer: 0, route, leads, now }
    }

    /// Creates a GET that asks for a page like a browser.
    pub fn page(url: Url, leads: LeadScope, now: Time) -> Self {
        let codings = HeaderValue::from_static(CODINGS);
        let headers = HeaderMap::from_iter([(ACCEPT, PAGES), (ACCEPT_ENCODING, codings)]);
        let sent = CallBody { headers, body: Bytes::new() };
        Self { sent, ..Self::get(url, leads, now) }
    }
}

/// The body of a call and its headers.
#[derive(Clone, Default)]
pub struct CallBody {
    /// `Content-Type` and others; they replace the client's own headers.
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Called {
    pub status: u16,
    /// The beginning of the body.
    pub body: Bytes,
    /// Whether `body` is complete.
    pub whole: bool,
    /// `Retry-After`, as a duration.
    pub retry_after: Option<Duration>,
    /// The target of a redirect, as an absolute address.
    pub location: Option<Url>,
    /// The scope of addresses that the answer may lead to.
    pub leads: LeadScope,
}

impl fmt::Debug for CallRequest {
    // The address of a callback is a secret between its owner and the hub; the body may be one too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallRequest")
            .field("host", &self.url.host_str())
            .field("sends", &self.sent.body.len())
            .finish_non_exhaustive()
    }
}

impl Core {
    pub(super) async fn call(self: Arc<Self>, request: CallRequest) -> Result<Called, FetchError> {
        let (answer, now, url) =
            (request.answer, request.now, without_credentials(request.url.clone()));
        let (mut response, leads) = self.send_once(request, &url).await?;
        let status = response.status().as_u16();
        let retry_after = freshness::retry_after(response.headers(), now);
        let led = response.headers().get(LOCATION).map(HeaderValue::as_bytes);
        let location = self.within_site(led, &url).or_else(|| target(led, &url));
        let (mut body, mut whole) = (BytesMut::new(), false);
        if answer > 0 {
            // If the body is longer, the connection is closed with the rest of it.
            let read = read_some(&mut response, answer, &mut body).await;
            whole = read.map_err(|error| broken(error, &self.limits))?;
        }
        Ok(Called { status, body: body.freeze(), whole, retry_after, location, leads })
    }

    /// Sends a request; returns the response and the scope of addresses that it may lead to.
    pub(super) async fn send_once(
        &self,
        request: CallRequest,
        url: &Url,
    ) -> Result<(Response, LeadScope), FetchError> {
        let CallRequest { method, sent, route, leads, .. } = request;
        let CallBody { mut headers, body } = sent;
        // Compressing a few bytes is not worthwhile, and a challenge is compared as received.
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        self.say_name(url, &mut headers);
        let led_request = self.lead((leads, false), None, url).await;
        let (route, versions) = (route.as_ref(), HttpVersions::of_request(&headers));
        let way = RequestWay { route, versions, is_public: !led_request.is_within };
        let sending = async {
            let chosen = self.client_for(url, 0, true, way).await?;
            let mut request = chosen.client.request(method, url.clone()).headers(headers);
            if !body.is_empty() {
                request = request.body(body);
            }
            let sent = request.send().await;
            sent.map_err(|error| chosen.unreached(error, url, 0, &self.limits))
        };
        let response = sending.await.map_err(|error| led_request.explain(error))?;
        Ok((response, led_request.into_scope()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FetchLimits, FetchSettings, services};
    use super::*;
    use crate::testing::{self, Publisher, all_private, response};
    use tower::ServiceExt as _;

    fn get(url: &str) -> CallRequest {
        let url = Url::parse(url).unwrap();
        CallRequest { answer: 8, ..CallRequest::get(url, LeadScope::default(), Time::from_unix(0)) }
    }

    fn page(method: Method, url: &str) -> CallRequest {
        CallRequest { method, ..testing::page(url) }
    }

    async fn send(request: CallRequest) -> Result<Called, FetchError> {
        let limits = FetchLimits { call: Duration::from_secs(2), ..FetchLimits::STANDARD };
        services(FetchSettings { limits, ..all_private() }).unwrap().call.oneshot(request).await
    }

    #[tokio::test]
    async fn a_get_reads_as_much_as_it_needs() {
        let publisher = Publisher::start(|head| match head {
            head if head.contains("/never") => Vec::new(),
            head if head.contains("/long") => response("200 OK", "", &[b'x'; 100]),
            _ => response("503 Busy", "retry-after: 7\r\n", b"12345678"),
        })
        .await;
        let called = send(get(&publisher.url("/a?b=c&d"))).await.unwrap();
        let body = Bytes::from_static(b"12345678");
        let (retry_after, leads) = (Some(Duration::from_secs(7)), called.leads.clone());
        let busy = Called { status: 503, body, whole: true, retry_after, leads, location: None };
        assert_eq!(called, busy);
        let long = send(get(&publisher.url("/long"))).await.unwrap();
        assert_eq!((long.body.len(), long.whole), (8, false));
        let never = send(get(&publisher.url("/never"))).await;
        assert!(matches!(never, Err(FetchError::Timeout { .. })), "{never:?}");
        let head = publisher.heads().remove(0);
        assert!(head.starts_with("get /a?b=c&d http/1.1\r\n"), "{head}");
        assert!(head.contains("accept-encoding: identity\r\n"), "{head}");
        assert_eq!(head.matches("accept").count(), 2, "{head}");
    }

    #[tokio::test]
    async fn a_post_carries_its_headers_and_no_redirect_is_followed() {
        let leads = response("307 Elsewhere", "location: /b\r\n", b"");
        let publisher = Publisher::start(move |_| leads.clone()).await;
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("text/plain"));
        headers.append("link", HeaderValue::from_static("<a>; rel=hub"));
        headers.append("link", HeaderValue::from_static("<b>; rel=self"));
        let sent = CallBody { headers, body: Bytes::from_static(b"hello") };
        let post = CallRequest { method: Method::POST, sent, ..get(&publisher.url("/a")) };
        let called = send(post).await.unwrap();
        assert_eq!(called.status, 307);
        assert_eq!(called.location, Url::parse(&publisher.url("/b")).ok());
        let heads = publisher.heads();
        assert_eq!(heads.len(), 1, "{heads:?}");
        for part in
            ["post /a ", "content-type: text/plain", "content-length: 5", "rel=hub", "rel=self"]
        {
            assert!(heads[0].contains(part), "{part}: {heads:?}");
        }
    }

    #[tokio::test]
    async fn one_request_and_no_body() {
        let publisher = Publisher::start(|head| {
            if head.starts_with("HEAD") {
                return response("405 Method Not Allowed", "", b"");
            }
            // The body never arrives.
            b"HTTP/1.1 410 Gone\r\nretry-after: 7\r\ncontent-length: 1000000\r\n\r\nSTALL".to_vec()
        })
        .await;
        let head = send(page(Method::HEAD, &publisher.url("/a#b"))).await.unwrap();
        assert_eq!((head.status, head.retry_after, head.location), (405, None, None));
        let get = send(page(Method::GET, &publisher.url("/a"))).await.unwrap();
        assert_eq!((get.status, get.retry_after), (410, Some(Duration::from_secs(7))));
        let heads = publisher.heads();
        assert_eq!(heads.len(), 2);
        assert!(heads[0].starts_with("head /a http/1.1\r\n"), "{heads:?}");
        assert!(heads[1].starts_with("get /a http/1.1\r\n"), "{heads:?}");
        let shown = format!("{:?}", page(Method::GET, "http://a.example/secret?token=1"));
        assert!(!shown.contains("token"), "{shown}");
        for head in heads {
            assert!(head.contains("accept: text/html"), "{head}");
            assert!(head.contains("accept-encoding: gzip, br, zstd, deflate\r\n"), "{head}");
            assert!(head.contains("user-agent: tidegate/"), "{head}");
            assert!(!head.contains("application/rss+xml"), "{head}");
        }
    }
}
