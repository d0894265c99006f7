//! Asks whether a page is there: one request, without its body and without following redirects.
//!
//! The same clients and the same guard as for feeds; where a redirect may lead is for who asks to
//! say, and each hop is a request of its own.

use super::client::{Core, RequestWay};
use super::clients::HttpVersions;
use super::error::FetchError;
use super::freshness;
use super::lead::LeadScope;
use http::header::{ACCEPT, HeaderMap, HeaderValue, LOCATION};
use std::time::Duration;
use tidegate_core::model::{ProxyRoute, Time};
use url::Url;

/// What a page is asked for as.
pub(super) const PAGES: HeaderValue =
    HeaderValue::from_static("text/html, application/xhtml+xml, */*;q=0.8");
/// The longest `Location` that is passed on, in bytes.
const MAX_LOCATION_BYTES: usize = 8 * 1024;

/// Asks for a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskRequest {
    /// Its address. Credentials in it are not sent.
    pub url: Url,
    /// Whether it is asked by GET instead of HEAD. The body is not read in either case.
    pub get: bool,
    /// The way there, where it is not the gateway's.
    pub route: Option<ProxyRoute>,
    /// On whose word the page is asked for.
    pub leads: LeadScope,
    /// The time of the request.
    pub now: Time,
}

/// What the page's server said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageAnswer {
    pub status: u16,
    /// How long it asks to be left alone.
    pub retry_after: Option<Duration>,
    /// Where a redirect leads, made absolute.
    pub location: Option<Url>,
}

impl Core {
    pub(super) async fn page(&self, request: AskRequest) -> Result<PageAnswer, FetchError> {
        let mut url = request.url;
        super::guard::strip_credentials(&mut url);
        url.set_fragment(None);
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, PAGES);
        self.say_name(&url, &mut headers);
        let mut leads = self.way_to(&request.leads, url.as_str()).await?;
        self.lead(&mut leads, &url).await;
        let (route, versions) = (request.route.as_ref(), HttpVersions::of_request(&headers));
        let way = RequestWay { route, versions, is_public: leads.is_confined() };
        let by =
            self.client_for(&url, 0, true, way).await.map_err(|error| leads.explained(error))?;
        let client = &by.client;
        let asked = if request.get { client.get(url.clone()) } else { client.head(url.clone()) };
        let response = asked.headers(headers).send().await;
        let unreached = |error| leads.explained(by.unreached(error, &url, 0, &self.limits));
        let response = response.map_err(unreached)?;
        let led = response.headers().get(LOCATION);
        let location = self.within_site(led, &url).or_else(|| location(led, &url));
        // The response is dropped here, and its connection with it where a body is under way.
        let retry_after = freshness::retry_after(response.headers(), request.now);
        Ok(PageAnswer { status: response.status().as_u16(), retry_after, location })
    }
}

/// Where a redirect of an answer from `url` leads.
pub(super) fn location(value: Option<&HeaderValue>, url: &Url) -> Option<Url> {
    value
        .map(HeaderValue::as_bytes)
        .filter(|value| !value.is_empty() && value.len() <= MAX_LOCATION_BYTES)
        .and_then(|value| std::str::from_utf8(value).ok())
        .and_then(|text| url.join(text).ok())
}

#[cfg(test)]
mod tests {
    use super::super::{AllowPrivate, FetchLimits, FetchSettings, Refusal, services};
    use super::*;
    use crate::testing::{Publisher, response};
    use tower::ServiceExt as _;

    async fn ask(
        url: &str,
        get: bool,
        allow_private: AllowPrivate,
    ) -> Result<PageAnswer, FetchError> {
        let limits = FetchLimits { page: Duration::from_secs(2), ..FetchLimits::STANDARD };
        let settings = FetchSettings { allow_private, limits, ..FetchSettings::default() };
        let (url, now) = (Url::parse(url).unwrap(), Time::from_unix(0));
        let request = AskRequest { url, get, route: None, leads: LeadScope::default(), now };
        services(settings).unwrap().ask.oneshot(request).await
    }

    #[tokio::test]
    async fn one_request_and_no_body() {
        let publisher = Publisher::start(|head| {
            if head.starts_with("HEAD") {
                return response("405 Method Not Allowed", "", b"");
            }
            // The body never comes.
            b"HTTP/1.1 410 Gone\r\nretry-after: 7\r\ncontent-length: 1000000\r\n\r\nSTALL".to_vec()
        })
        .await;
        let head = ask(&publisher.url("/a#b"), false, AllowPrivate::All).await.unwrap();
        assert_eq!(head, PageAnswer { status: 405, retry_after: None, location: None });
        let get = ask(&publisher.url("/a"), true, AllowPrivate::All).await.unwrap();
        let wait = Some(Duration::from_secs(7));
        assert_eq!(get, PageAnswer { status: 410, retry_after: wait, location: None });
        let heads = publisher.heads();
        assert_eq!(heads.len(), 2);
        assert!(heads[0].starts_with("head /a http/1.1\r\n"), "{heads:?}");
        assert!(heads[1].starts_with("get /a http/1.1\r\n"), "{heads:?}");
        for head in heads {
            assert!(head.contains("accept: text/html"), "{head}");
            assert!(head.contains("user-agent: tidegate/"), "{head}");
            assert!(!head.contains("application/rss+xml"), "{head}");
        }
    }

    #[tokio::test]
    async fn redirects_are_told_and_not_followed() {
        let publisher =
            Publisher::start(|_| response("301 Moved Permanently", "location: /b?c\r\n", b""))
                .await;
        let asked = ask(&publisher.url("/a/"), false, AllowPrivate::All).await.unwrap();
        let to = Url::parse(&publisher.url("/b?c")).unwrap();
        assert_eq!(asked, PageAnswer { status: 301, retry_after: None, location: Some(to) });
        assert_eq!(publisher.heads().len(), 1);
    }

    #[tokio::test]
    async fn the_guard_stands_before_pages_as_well() {
        let publisher = Publisher::start(|_| response("200 OK", "", b"")).await;
        for url in [
            publisher.url("/a"),
            "http://10.0.0.1/a".to_owned(),
            "http://169.254.169.254/latest/meta-data/".to_owned(),
            format!("http://localhost:{}/a", publisher.port),
        ] {
            let refused = ask(&url, false, AllowPrivate::No).await;
            let address = matches!(
                refused,
                Err(FetchError::Refused { refusal: Refusal::Address { .. }, .. })
            );
            assert!(address, "{url}: {refused:?}");
        }
        assert_eq!(publisher.heads().len(), 0);
    }

    #[tokio::test]
    async fn a_page_that_never_answers_has_its_time() {
        let publisher = Publisher::start(|_| Vec::new()).await;
        let failed = ask(&publisher.url("/a"), false, AllowPrivate::All).await;
        assert!(matches!(failed, Err(FetchError::Timeout { .. })), "{failed:?}");
    }
}
