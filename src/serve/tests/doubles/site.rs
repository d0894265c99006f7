//! A site that the gateway stands in front of, or that is admitted: what it answers, and how often it was asked.

use super::*;
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::{BodyExt as _, Full};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tidegate_core::model::BodyPrints;
use tidegate_net::fetch::{
    Fetch, FetchAnswer, FetchError, FetchRequest, Fetched, Passage, Passing, Services,
};
use tidegate_net::origin::{PassAnswer, PassRequest};
use tidegate_poll::testing::gateway::{document, fetched, no_calls, status_error};
use tokio::sync::Semaphore;
use url::Url;

#[derive(Clone)]
pub(in crate::tests) enum SiteAnswer {
    /// A page or a document.
    Text(String),
    /// It moved there for good.
    Moved(&'static str),
    Nothing,
}

pub(in crate::tests) struct ScriptedSite {
    answer: Box<dyn Fn(&Url) -> SiteAnswer + Send + Sync>,
    /// One permit lets one poll have its document; closed: every poll fails.
    pub(in crate::tests) polls: Semaphore,
    /// Polls fail that are not handed what the site answered to somebody else.
    pub(in crate::tests) refuses_polls: AtomicBool,
    looked: Mutex<Vec<String>>,
    /// How often it was asked for anybody else.
    passed: AtomicUsize,
    passing: Passing,
}

impl ScriptedSite {
    /// A site that answers so. `polls`: how many polls have their document at once.
    pub(in crate::tests) fn new(
        polls: usize,
        answer: impl Fn(&Url) -> SiteAnswer + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            answer: Box::new(answer),
            polls: Semaphore::new(polls),
            refuses_polls: AtomicBool::new(false),
            looked: Mutex::default(),
            passed: AtomicUsize::new(0),
            passing: Passing::default(),
        })
    }

    /// The addresses that the gateway looked at since this was asked last.
    pub(in crate::tests) fn looked(&self) -> Vec<String> {
        std::mem::take(&mut *self.looked.lock().unwrap())
    }

    pub(in crate::tests) fn passed(&self) -> usize {
        self.passed.load(Ordering::SeqCst)
    }

    pub(in crate::tests) fn services(self: &Arc<Self>) -> Services {
        let (site, of_polls) = (Arc::clone(self), Arc::clone(self));
        let pass = move |request| -> Passage {
            let site = Arc::clone(&site);
            Box::pin(async move { Ok(site.pass(&request)) })
        };
        let fetch = move |request| {
            let site = Arc::clone(&of_polls);
            async move { site.poll(request).await }
        };
        Services {
            fetch: Fetch::new(tower::service_fn(fetch)),
            call: no_calls(),
            passing: Passing { pass: Arc::new(pass), ..self.passing.clone() },
        }
    }

    fn pass(&self, request: &PassRequest) -> PassAnswer {
        // What the gateway asks for itself is read as it comes.
        if request.headers.get(ACCEPT_ENCODING).is_some_and(|coding| coding == "identity") {
            self.looked.lock().unwrap().push(request.url.to_string());
        } else {
            self.passed.fetch_add(1, Ordering::SeqCst);
        }
        let mut headers = HeaderMap::new();
        let (status, body) = match (self.answer)(&request.url) {
            SiteAnswer::Text(text) => {
                let is_page = text.starts_with("<html");
                let kind = if is_page { "text/html" } else { "application/rss+xml" };
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
                (StatusCode::OK, text)
            }
            SiteAnswer::Moved(to) => {
                headers.insert(LOCATION, HeaderValue::from_static(to));
                (StatusCode::MOVED_PERMANENTLY, String::new())
            }
            SiteAnswer::Nothing => (StatusCode::NOT_FOUND, String::new()),
        };
        let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync();
        PassAnswer { status, headers, body }
    }

    async fn poll(&self, request: FetchRequest) -> Result<Fetched, FetchError> {
        let refused = || status_error(503, None);
        let handed = self.passing.handover.take(&request.url);
        if request.url.contains("upstream.example")
            || handed.is_none() && self.refuses_polls.load(Ordering::SeqCst)
        {
            return Err(refused());
        }
        self.polls.acquire().await.map_err(|_| refused())?.forget();
        let is_from_reader = handed.is_some();
        let text = match (handed, (self.answer)(&Url::parse(&request.url).unwrap())) {
            (Some(answer), _) => answer.body,
            (None, SiteAnswer::Text(text)) => text.into(),
            (None, _) => return Err(refused()),
        };
        let answer = FetchAnswer::Document(document(text, BodyPrints { wire: 1, body: 1 }));
        Ok(Fetched { is_from_reader, ..fetched(&request.url, answer) })
    }
}
