//! Calls an address of somebody who asked for it: a hub, or a subscriber's callback. One request,
//! GET or POST, without following redirects.
//!
//! The same clients and the same guard as for feeds. Of the answer only so many bytes are read as
//! the caller needs; what the answer means is for the caller to say.

use super::ask::location;
use super::client::{Core, RequestWay};
use super::clients::HttpVersions;
use super::error::FetchError;
use super::freshness;
use super::lead::LeadScope;
use super::unreached::broken;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderValue, LOCATION};
use std::fmt;
use std::time::Duration;
use tidegate_core::model::Time;
use url::Url;

/// Calls an address.
#[derive(Clone)]
pub struct CallRequest {
    /// The address. Credentials and a fragment in it are not sent.
    pub url: Url,
    /// What is sent: a POST; nothing: a GET.
    pub send: Option<CallBody>,
    /// The most bytes of the answer's body that are read.
    pub answer: usize,
    /// On whose word it is called.
    pub leads: LeadScope,
    /// The time of the request.
    pub now: Time,
}

/// The body of a call, and the headers that go with it.
#[derive(Clone)]
pub struct CallBody {
    /// `Content-Type` and whatever else; they replace the client's own.
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// What the address answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    pub status: u16,
    /// The beginning of the body.
    pub body: Bytes,
    /// Whether that is all of it.
    pub whole: bool,
    /// How long it asks to be left alone.
    pub retry_after: Option<Duration>,
    /// Where a redirect leads, made absolute.
    pub location: Option<Url>,
}

impl fmt::Debug for CallRequest {
    // A callback's address is a secret between its owner and the hub, and so may a body be.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallRequest")
            .field("host", &self.url.host_str())
            .field("posts", &self.send.as_ref().map(|sent| sent.body.len()))
            .finish_non_exhaustive()
    }
}

impl Core {
    pub(super) async fn call(&self, request: CallRequest) -> Result<Called, FetchError> {
        let mut url = request.url;
        super::guard::strip_credentials(&mut url);
        url.set_fragment(None);
        let mut leads = self.way_to(&request.leads, url.as_str()).await?;
        self.lead(&mut leads, &url).await;
        let is_public = leads.is_confined();
        let way = RequestWay { route: None, versions: HttpVersions::All, is_public };
        let by =
            self.client_for(&url, 0, true, way).await.map_err(|error| leads.explained(error))?;
        let client = &by.client;
        let call = match request.send {
            None => client.get(url.clone()),
            Some(sent) => client.post(url.clone()).headers(sent.headers).body(sent.body),
        };
        // An answer of a few bytes is not worth a coding, and a challenge is compared as it comes.
        let call = call
            .header(ACCEPT, HeaderValue::from_static("*/*"))
            .header(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let unreached = |error| leads.explained(by.unreached(error, &url, 0, &self.limits));
        let mut response = call.send().await.map_err(unreached)?;
        let status = response.status().as_u16();
        let retry_after = freshness::retry_after(response.headers(), request.now);
        let location = location(response.headers().get(LOCATION), &url);
        let mut body = BytesMut::new();
        let mut whole = true;
        // What is read of a body that is too long goes with its connection.
        while let Some(chunk) =
            response.chunk().await.map_err(|error| broken(error, &self.limits))?
        {
            let room = request.answer.saturating_sub(body.len());
            body.extend_from_slice(chunk.get(..room.min(chunk.len())).unwrap_or_default());
            if chunk.len() > room {
                whole = false;
                break;
            }
        }
        Ok(Called { status, body: body.freeze(), whole, retry_after, location })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AllowPrivate, FetchLimits, FetchSettings, Refusal, services};
    use super::*;
    use crate::testing::{Publisher, response};
    use tower::ServiceExt as _;

    async fn call(
        url: &str,
        send: Option<CallBody>,
        allow_private: AllowPrivate,
    ) -> Result<Called, FetchError> {
        let limits = FetchLimits { call: Duration::from_secs(2), ..FetchLimits::STANDARD };
        let settings = FetchSettings { allow_private, limits, ..FetchSettings::default() };
        let url = Url::parse(url).unwrap();
        let (leads, now) = (LeadScope::default(), Time::from_unix(0));
        let request = CallRequest { url, send, answer: 8, leads, now };
        services(settings).unwrap().call.oneshot(request).await
    }

    #[tokio::test]
    async fn a_get_reads_as_much_as_it_needs() {
        let publisher = Publisher::start(|head| match head {
            head if head.contains("/long") => response("200 OK", "", &[b'x'; 100]),
            _ => response("503 Busy", "retry-after: 7\r\n", b"12345678"),
        })
        .await;
        let url = publisher.url("/a?b=c&d");
        let called = call(&url, None, AllowPrivate::All).await.unwrap();
        let body = Bytes::from_static(b"12345678");
        let retry_after = Some(Duration::from_secs(7));
        let location = None;
        assert_eq!(called, Called { status: 503, body, whole: true, retry_after, location });
        let long = call(&publisher.url("/long"), None, AllowPrivate::All).await.unwrap();
        assert_eq!((long.body.len(), long.whole), (8, false));
        let head = publisher.heads().remove(0);
        assert!(head.starts_with("get /a?b=c&d http/1.1\r\n"), "{head}");
        assert!(head.contains("accept-encoding: identity\r\n"), "{head}");
        assert_eq!(head.matches("accept").count(), 2, "{head}");
    }

    #[tokio::test]
    async fn a_post_carries_its_headers_and_no_redirect_is_followed() {
        let publisher =
            Publisher::start(|_| response("307 Elsewhere", "location: /b\r\n", b"")).await;
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("text/plain"));
        headers.append("link", HeaderValue::from_static("<a>; rel=hub"));
        headers.append("link", HeaderValue::from_static("<b>; rel=self"));
        let sent = CallBody { headers, body: Bytes::from_static(b"hello") };
        let called = call(&publisher.url("/a"), Some(sent), AllowPrivate::All).await.unwrap();
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
    async fn the_guard_stands_before_calls_as_well() {
        let publisher = Publisher::start(|_| response("200 OK", "", b"")).await;
        for url in [publisher.url("/a"), "http://10.0.0.1/a".to_owned(), "http://[::1]/".to_owned()]
        {
            let refused = call(&url, None, AllowPrivate::No).await;
            let address = matches!(
                refused,
                Err(FetchError::Refused { refusal: Refusal::Address { .. }, .. })
            );
            assert!(address, "{url}: {refused:?}");
        }
        assert_eq!(publisher.heads().len(), 0);
        let request = CallRequest {
            url: Url::parse("http://a.example/secret?token=1").unwrap(),
            send: None,
            answer: 8,
            leads: LeadScope::default(),
            now: Time::from_unix(0),
        };
        assert!(!format!("{request:?}").contains("token"), "{request:?}");
    }

    #[tokio::test]
    async fn an_address_that_never_answers_has_its_time() {
        let publisher = Publisher::start(|_| Vec::new()).await;
        let failed = call(&publisher.url("/a"), None, AllowPrivate::All).await;
        assert!(matches!(failed, Err(FetchError::Timeout { .. })), "{failed:?}");
    }
}
