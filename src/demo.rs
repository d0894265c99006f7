//! A small publisher with invented feeds that gain, edit, rename and lose posts, roll their windows, change in
//! ways that mean nothing and have accidents; and what the gateway made of them, told a line each. For
//! `tidegate demo` and for tests. Needs no network.
//!
//! What the feeds say at step n is a pure function ([`Script`]); [`publisher`] only serves it. What is told
//! follows from what the gateway did alone ([`Storyteller`]), never from the script.

mod harbour;
mod lighthouse;
mod pilots;
mod story;
mod timeline;

pub use harbour::PATH as HARBOUR;
pub use lighthouse::PATH as LIGHTHOUSE;
pub use pilots::{ITEM as PILOTS_ITEM, PATH as PILOTS, own_version};
pub use story::{EVENTS_READ, FeedFacts, StoryKind, StoryLine, Storyteller};

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_config::{
    Config, FeedConfig, Polling, ServerSection, StoreKind, StoreSettings, written,
};
use tidegate_core::model::{
    Deletions, FeedName, FeedOptions, FeedRecord, FeedSource, SecretSource, SharingOptions, Time,
};
use tidegate_net::fetch::AllowPrivate;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use url::Url;

/// A document as the publisher has it at one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptedDocument {
    /// Its path on the publisher.
    pub path: &'static str,
    /// Its bytes.
    pub body: String,
    /// When it last changed.
    pub changed: Time,
}

/// What the publisher says and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Script {
    start: Time,
    every: Duration,
}

impl Script {
    /// A script whose step 0 is at `start` and whose steps are `every` apart.
    pub const fn new(start: Time, every: Duration) -> Self {
        Self { start, every }
    }

    /// The time of a step; those before the start are negative.
    pub fn time(&self, step: i64) -> Time {
        let steps = u32::try_from(step.unsigned_abs()).unwrap_or(u32::MAX);
        let apart = self.every.saturating_mul(steps);
        if step < 0 { self.start.minus(apart) } else { self.start.plus(apart) }
    }

    /// All documents at a step.
    pub fn feeds(&self, step: u32) -> [ScriptedDocument; 3] {
        [
            lighthouse::document(self, step),
            harbour::document(self, step),
            pilots::document(self, step),
        ]
    }
}

/// Serves the documents of a script on a listener, at the step that `steps` says, until it is shut down.
///
/// Meant for a loopback address: it has none of the limits that a server for strangers needs.
pub async fn publisher(
    listener: TcpListener,
    script: Script,
    steps: watch::Receiver<u32>,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let answer = move |address: Uri, headers: HeaderMap| {
        let documents = script.feeds(*steps.borrow());
        let asked = documents.into_iter().find(|document| document.path == address.path());
        std::future::ready(match asked {
            Some(document) => respond(document, &headers),
            None => (StatusCode::NOT_FOUND, "there are only three feeds here\n").into_response(),
        })
    };
    let router = Router::new().fallback(answer);
    axum::serve(listener, router).with_graceful_shutdown(shutdown.cancelled_owned()).await
}

/// Answers with the document, or with 304 where the client has it.
fn respond(document: ScriptedDocument, headers: &HeaderMap) -> Response {
    let etag = format!("\"{:016x}\"", xxhash_rust::xxh3::xxh3_64(document.body.as_bytes()));
    let modified = document.changed.rfc822();
    let sent = |name| headers.get(name).and_then(|value| value.to_str().ok());
    // `If-None-Match` stands before `If-Modified-Since` where both are sent (RFC 9110, 13.2.2).
    let has_it = match sent(header::IF_NONE_MATCH) {
        Some(tags) => tags.split(',').any(|tag| matches!(tag.trim(), t if t == etag || t == "*")),
        None => sent(header::IF_MODIFIED_SINCE) == Some(modified.as_str()),
    };
    let validators = [(header::ETAG, etag), (header::LAST_MODIFIED, modified)];
    if has_it {
        return (StatusCode::NOT_MODIFIED, validators).into_response();
    }
    let format = if document.path.ends_with(".atom") { "atom" } else { "rss" };
    let kind = [(header::CONTENT_TYPE, format!("application/{format}+xml; charset=utf-8"))];
    (validators, kind, document.body).into_response()
}

/// The feed whose items are made here as well.
pub const PILOTS_FEED: &str = "pilots";

/// The feeds of the demonstration: name and path.
const FEEDS: [(&str, &str); 3] =
    [("lighthouse", LIGHTHOUSE), ("harbour", HARBOUR), (PILOTS_FEED, PILOTS)];

/// The step at which everything that the product is for was to be seen once.
pub const ALL_SHOWN_AT: u32 = 30;

/// How often the gateway polls the publisher: as often as it may, so that nothing is missed.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// The configuration of a gateway on `listen` before the publisher at `publisher`. Without a data
/// folder it keeps everything in memory. Deletions are taken at once, so that one can be seen
/// within a minute; only the publisher's address is allowed among private ones.
pub fn configuration(
    publisher: SocketAddr,
    listen: SocketAddr,
    data: Option<PathBuf>,
    admin_token: Option<SecretSource>,
) -> Config {
    let kind = if data.is_some() { StoreKind::Sled } else { StoreKind::Memory };
    let path = data.unwrap_or_else(|| StoreSettings::default().path);
    Config {
        server: ServerSection { listen, admin_token, ..ServerSection::default() },
        store: StoreSettings { kind, path, ..StoreSettings::default() },
        polling: Polling {
            min_interval: POLL_EVERY,
            max_interval: POLL_EVERY,
            host_spacing: Duration::ZERO,
            allow_private: AllowPrivate::only([publisher.to_string().as_str()]).unwrap_or_default(),
            ..Polling::default()
        },
        feeds: FEEDS.iter().filter_map(|(name, path)| feed(publisher, name, path)).collect(),
        ..Config::default()
    }
}

fn feed(publisher: SocketAddr, name: &str, path: &str) -> Option<FeedConfig> {
    let is_shared = name == PILOTS_FEED;
    let title = is_shared.then(|| "The tide board of the pilots".to_owned());
    let sharing = SharingOptions { local: is_shared, title, ..SharingOptions::default() };
    let url = Url::parse(&format!("http://{publisher}{path}")).ok()?;
    let options = FeedOptions { deletions: Deletions::Eager, sharing, ..FeedOptions::default() };
    let record = FeedRecord::new(FeedName::new(name).ok()?, url, FeedSource::File);
    Some(FeedRecord { options, ..record }.into())
}

/// What is printed at the start: what runs, and where to look. `gateway`: its address, `http://127.0.0.1:8080`;
/// `every`: how often the publisher's feeds change; `token`: that of administration as a shell is to be given it.
pub fn welcome(publisher: SocketAddr, gateway: &str, every: Duration, token: &str) -> String {
    let (every, all) = (written(every), written(every.saturating_mul(ALL_SHOWN_AT)));
    format!(
        "Open {gateway}/ in a browser: the dashboard of this gateway.\n\
         Behind it, a publisher changes its feeds every {every}: http://{publisher}{LIGHTHOUSE}\n\
         Pages and API ask for the administration token {token}\n  \
         curl -X POST -H \"Authorization: Bearer {token}\" {gateway}/api/v1/feeds/harbour/poll\n\
         What happens is told below, everything once in about {all}. Ctrl-C ends it.\n"
    )
}

#[cfg(test)]
mod tests;
