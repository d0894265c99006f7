//! Asks one server that the operator names, any method, and an answer that is read piece by piece: the API of a
//! running gateway, with its token, or an authority for certificates.

use super::body::read_whole;
use super::client::{Core, RequestWay};
use super::clients::HttpVersions;
use super::error::{FetchError, broken};
use super::guard::AllowPrivate;
use super::{FetchLimits, FetchSettings};
use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// How long an answer may be silent: a poll waits for its publisher.
const IDLE: Duration = Duration::from_secs(180);

/// A client of one server.
pub struct ApiClient {
    core: Core,
    token: Option<HeaderValue>,
}

/// A request to it.
#[derive(Debug, Clone)]
pub struct ApiRequest {
    pub method: Method,
    pub url: Url,
    /// What is sent, behind its media type.
    pub body: Option<(&'static str, Bytes)>,
}

/// An answer of which nothing is read yet but its head.
pub struct ApiAnswer {
    pub status: u16,
    response: reqwest::Response,
    limits: FetchLimits,
}

impl ApiClient {
    /// A client of the server at an address, whatever that is; no other one that is not public is asked.
    pub fn new(
        server: &Url,
        token: Option<&str>,
        ca_file: Option<PathBuf>,
    ) -> Result<Self, FetchError> {
        let settings = FetchSettings {
            allow_private: AllowPrivate::host_of(server),
            ca_file,
            limits: FetchLimits { idle: IDLE, ..FetchLimits::STANDARD },
            ..FetchSettings::default()
        };
        let token = token.map(|token| HeaderValue::try_from(format!("Bearer {token}")));
        let wrong = |_| FetchError::Client {
            what: "send the token",
            why: "a header cannot have it".to_owned(),
        };
        let mut token = token.transpose().map_err(wrong)?;
        if let Some(token) = &mut token {
            token.set_sensitive(true);
        }
        Ok(Self { core: Core::new(settings)?, token })
    }

    /// Sends a request; a redirect is not followed.
    pub async fn send(&self, request: ApiRequest) -> Result<ApiAnswer, FetchError> {
        let ApiRequest { method, url, body } = request;
        let way = RequestWay { route: None, versions: HttpVersions::All, is_public: false };
        let by = self.core.client_for(&url, 0, true, way).await?;
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*;q=0.1"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(token) = &self.token {
            headers.insert(AUTHORIZATION, token.clone());
        }
        let mut asked = by.client.request(method, url.clone());
        if let Some((media_type, body)) = body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
            asked = asked.body(body);
        }
        let limits = self.core.limits;
        let sent = asked.headers(headers).send().await;
        let response = sent.map_err(|error| by.unreached(error, &url, 0, &limits))?;
        Ok(ApiAnswer { status: response.status().as_u16(), response, limits })
    }
}

impl ApiAnswer {
    /// Its headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The next piece of the body; one that ends early is an error.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        self.response.chunk().await.map_err(|error| broken(error, &self.limits))
    }

    /// The whole body, of at most `limit` bytes.
    pub async fn whole(self, limit: usize) -> Result<Bytes, FetchError> {
        read_whole(self.response, limit, &self.limits).await
    }
}

/// The status that a server on this machine answers with. Any certificate is taken: the question is whether a process
/// answers, which is no secret, and the certificate is for another name.
pub async fn status_of(url: &str, within: Duration) -> Result<u16, Box<dyn Error + Send + Sync>> {
    // The builder takes the provider of the process, which this command has for itself.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().timeout(within);
    let client = client.redirect(Policy::none()).tls_danger_accept_invalid_certs(true).build()?;
    Ok(client.get(url).send().await?.status().as_u16())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Publisher, response};

    #[tokio::test]
    async fn every_method_goes_with_the_token_and_no_further_than_the_gateway() {
        let gateway = Publisher::start(|head| match head {
            head if head.contains("/cut") => {
                b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec()
            }
            head if head.contains("/away") => response("302 Found", "location: /x\r\n", b""),
            _ => response("409 Conflict", "", b"{\"detail\":\"no\"}"),
        })
        .await;
        let url = |path: &str| Url::parse(&gateway.url(path)).unwrap();
        let client = ApiClient::new(&url("/"), Some("hush"), None).unwrap();
        let send = |method, path: &str, body: Option<&'static str>| {
            let body = body.map(|body| ("application/json", Bytes::from_static(body.as_bytes())));
            client.send(ApiRequest { method, url: url(path), body })
        };
        let answer = send(Method::PUT, "/a?b=c", Some("{}")).await.unwrap();
        assert_eq!(answer.status, 409);
        assert_eq!(answer.whole(64).await.unwrap(), "{\"detail\":\"no\"}");
        assert_eq!(send(Method::GET, "/away", None).await.unwrap().status, 302);
        let long = send(Method::DELETE, "/a", None).await.unwrap().whole(4).await;
        assert_eq!(long, Err(FetchError::too_large(4)));
        let cut = send(Method::GET, "/cut", None).await.unwrap().whole(64).await;
        assert!(matches!(cut, Err(FetchError::CutOff { .. })), "{cut:?}");
        let heads = gateway.heads();
        assert!(heads[0].starts_with("put /a?b=c http/1.1\r\n"), "{heads:?}");
        assert!(heads.iter().all(|head| head.contains("authorization: bearer hush\r\n")));
        let url = Url::parse("http://10.0.0.1/api").unwrap();
        let other = client.send(ApiRequest { method: Method::GET, url, body: None }).await;
        assert!(matches!(other.map(|_| ()), Err(FetchError::Refused { .. })));
        assert!(ApiClient::new(&Url::parse("http://x/").unwrap(), Some("a\nb"), None).is_err());
    }

    #[tokio::test]
    async fn the_status_of_a_server_is_told_and_a_redirect_is_one() {
        let server = Publisher::start(|head| match head {
            head if head.contains("/away") => response("302 Found", "location: /healthz\r\n", b""),
            _ => response("200 OK", "", b"alive"),
        })
        .await;
        let status = async |path: &str| status_of(&server.url(path), Duration::from_secs(5)).await;
        assert_eq!(status("/healthz").await.unwrap(), 200);
        assert_eq!(status("/away").await.unwrap(), 302);
        assert!(status_of("http://127.0.0.1:1/healthz", Duration::from_secs(5)).await.is_err());
    }
}
