//! A client for one server that the operator names: the API of a running gateway, with its token, or a certificate
//! authority. It sends any method, and the answer can be read in pieces.

use super::body::read_whole;
use super::call::{CallBody, CallRequest};
use super::client::Core;
use super::error::{FetchError, broken, root_cause};
use super::guard::AllowPrivate;
use super::{FetchLimits, FetchSettings, LeadScope};
use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_core::model::Time;
use url::Url;

/// The longest silence of an answer: a poll on demand waits for its publisher.
const IDLE: Duration = Duration::from_secs(180);

pub struct ApiClient {
    core: Core,
    token: Option<HeaderValue>,
}

/// An answer whose body is not read yet.
pub struct ApiAnswer {
    pub status: u16,
    response: reqwest::Response,
    limits: FetchLimits,
}

impl ApiClient {
    /// Creates a client for `server`, which may be private; no other private address is asked.
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

    /// Sends a request, with a body and its media type if given; redirects are not followed.
    pub async fn send(
        &self,
        method: Method,
        url: Url,
        body: Option<(&'static str, Bytes)>,
    ) -> Result<ApiAnswer, FetchError> {
        let accept = HeaderValue::from_static("application/json, */*;q=0.1");
        let mut headers = HeaderMap::from_iter([(ACCEPT, accept)]);
        headers.extend(self.token.clone().map(|token| (AUTHORIZATION, token)));
        let (media_type, body) = body.unzip();
        headers.extend(media_type.map(|it| (CONTENT_TYPE, HeaderValue::from_static(it))));
        let sent = CallBody { headers, body: body.unwrap_or_default() };
        let request = CallRequest::get(url.clone(), LeadScope::default(), Time::MIN);
        let request = CallRequest { method, sent, ..request };
        let (response, _) = self.core.send_once(request, &url).await?;
        let status = response.status().as_u16();
        Ok(ApiAnswer { status, response, limits: self.core.limits })
    }
}

impl ApiAnswer {
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Reads the next piece of the body; a premature end is an error.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        self.response.chunk().await.map_err(|error| broken(error, &self.limits))
    }

    /// Reads the whole body, of at most `limit` bytes.
    pub async fn whole(self, limit: usize) -> Result<Bytes, FetchError> {
        read_whole(self.response, limit, &self.limits).await
    }
}

/// Returns the HTTP status of a server on this machine. Any certificate is accepted, because it is issued for another
/// name and the question is only whether a process answers.
pub async fn status_of(url: &str, within: Duration) -> Result<u16, Box<dyn Error + Send + Sync>> {
    // The builder uses the process-wide provider; this command is alone in its process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().timeout(within);
    let client = client.redirect(Policy::none()).tls_danger_accept_invalid_certs(true).build()?;
    let answer = client.get(url).send().await.map_err(|error| root_cause(&error))?;
    Ok(answer.status().as_u16())
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
            head if head.contains("/healthz") => response("200 OK", "", b"alive"),
            head if head.contains("/away") => response("302 Found", "location: /x\r\n", b""),
            _ => response("409 Conflict", "", b"{\"detail\":\"no\"}"),
        })
        .await;
        let url = |path: &str| Url::parse(&gateway.url(path)).unwrap();
        let client = ApiClient::new(&url("/"), Some("hush"), None).unwrap();
        let send = |method, path: &str, body: Option<&'static str>| {
            let body = body.map(|body| ("application/json", Bytes::from_static(body.as_bytes())));
            client.send(method, url(path), body)
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
        let other = client.send(Method::GET, url, None).await;
        assert!(matches!(other.map(|_| ()), Err(FetchError::Refused { .. })));
        assert!(ApiClient::new(&Url::parse("http://x/").unwrap(), Some("a\nb"), None).is_err());
        // The status of a server is told, and a redirect is one.
        let status = async |path: &str| status_of(&gateway.url(path), Duration::from_secs(5)).await;
        assert_eq!(status("/healthz").await.unwrap(), 200);
        assert_eq!(status("/away").await.unwrap(), 302);
        let nobody = status_of("http://127.0.0.1:1/healthz", Duration::from_secs(5)).await;
        assert!(nobody.unwrap_err().to_string().starts_with("Connection refused"));
    }
}
