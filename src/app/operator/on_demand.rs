//! Feeds that requests make, and requests that are passed on to origins.

use super::AdminService;
use crate::app::origins::idle_times;
use crate::config;
use crate::fetch::{self, FetchError};
use crate::model::{Completeness, FeedDocument, FeedName, FeedRecord, FeedStanding, Format, Time};
use crate::origin::{PassAnswer, PassRequest, WholeAnswer};
use crate::parse::discover::feed_links;
use crate::parse::{self, Limits};
use crate::serve::{AdmittedSite, AskedFeeds, NotMade, OperatorError, OriginService, PassError};
use async_trait::async_trait;
use http::header::CONTENT_TYPE;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tower::ServiceExt as _;
use url::Url;

/// The most bytes that a document or a page may have once decompressed.
const DECODED_LIMIT: usize = 32 * 1024 * 1024;

/// What a document is, for who wants a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FoundDocument {
    Feed {
        /// Whether it would be published with the ids that it has.
        keeps_ids: bool,
        is_json: bool,
    },
    Other,
}

fn later(why: &impl ToString, keeps_ids: bool) -> NotMade {
    NotMade::Later { why: why.to_string(), keeps_ids }
}

#[async_trait]
impl OriginService for AdminService {
    async fn pass(&self, request: PassRequest) -> Result<PassAnswer, PassError> {
        let host = request.url.host_str().unwrap_or_default().to_owned();
        self.services().passing.pass.oneshot(request).await.map_err(|error| {
            tracing::debug!(host, %error, "a request could not be passed on");
            match error {
                FetchError::Timeout { .. } => PassError::TimedOut,
                FetchError::Refused { .. } | FetchError::Client { .. } | FetchError::NoRoots => {
                    tracing::warn!(host, %error, "requests cannot be passed on");
                    PassError::Refused
                }
                _ => PassError::Unreachable,
            }
        })
    }

    async fn make_feed(
        &self,
        site: &AdmittedSite,
        url: &Url,
        answer: Option<WholeAnswer>,
    ) -> Result<FeedName, NotMade> {
        let (mut keeps_ids, mut is_json) = (false, false);
        if let Some(answer) = &answer {
            match self.found(url, answer.clone()).await {
                FoundDocument::Feed { keeps_ids: keeps, is_json: json } => {
                    (keeps_ids, is_json) = (keeps, json);
                }
                FoundDocument::Other => return Err(NotMade::NoFeed),
            }
        }
        let record = match self.new_on_demand(site, url, answer, (keeps_ids, is_json)).await? {
            NewFeed::Made(record) => record,
            NewFeed::Known(name) => return Ok(name),
        };
        let name = record.name.clone();
        tracing::info!(feed = %name, "a request made this feed");
        let polled = self.poller.put_and_poll(*record).await;
        if let Some(reloaded) = self.reloaded.get() {
            reloaded.feeds_changed();
        }
        let error = match polled {
            Ok(response) => response.error,
            Err(error) => Some(error.to_string()),
        };
        match self.store.state(&name).await {
            Ok(Some(_)) => Ok(name),
            Ok(None) => Err(later(&error.unwrap_or_default(), false)),
            Err(error) => Err(later(&error, false)),
        }
    }

    async fn announced(&self, page: &Url, answer: WholeAnswer) -> Vec<Url> {
        let page = page.clone();
        // Never closed.
        let turn = self.previews.acquire().await.ok();
        let reading = tokio::task::spawn_blocking(move || {
            let bytes = fetch::decoded(&answer.headers, answer.body, DECODED_LIMIT).ok()?;
            let kind = answer.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            let text = parse::decode(&bytes, kind, &Limits::default()).ok()?;
            Some(feed_links(&text.text, &page).into_iter().map(|link| link.url).collect())
        });
        let found = reading.await.ok().flatten().unwrap_or_default();
        drop(turn);
        found
    }

    async fn resume(&self, feed: &FeedName) -> Result<(), OperatorError> {
        let now = self.clock.now();
        let wanted = feed.clone();
        self.change_on_demand(move |record| {
            let is_it = record.name == wanted && record.is_let_go();
            if is_it {
                record.ask_for(now);
            }
            is_it
        })
        .await
    }
}

/// A feed for an address.
enum NewFeed {
    /// It is durable, and not polled yet.
    Made(Box<FeedRecord>),
    /// It was there.
    Known(FeedName),
}

impl AdminService {
    /// When feeds that requests made were last asked for.
    pub(in crate::app) const fn asked_feeds(&self) -> &Arc<AskedFeeds> {
        &self.asked
    }

    /// After how long feeds of each site are let go.
    pub(in crate::app) fn idle_times(&self) -> HashMap<String, Duration> {
        idle_times(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether somebody subscribed to a feed at the hub.
    pub(in crate::app) fn has_subscribers(&self, feed: &FeedName) -> bool {
        self.hub.as_ref().is_some_and(|hub| !hub.subscriptions(Some(feed), 1).is_empty())
    }

    /// Changes feeds that requests made: those for which `change` says so. Durable on return.
    pub(in crate::app) async fn change_on_demand(
        &self,
        mut change: impl FnMut(&mut FeedRecord) -> bool + Send,
    ) -> Result<(), OperatorError> {
        let _one = self.changing.lock().await;
        let feeds = self.store.feed_list().await?;
        let (mut changed, mut moved) = (Vec::new(), Vec::new());
        for before in feeds.values().filter(|record| record.on_demand.is_some()) {
            let mut record = FeedRecord::clone(before);
            if !change(&mut record) {
                continue;
            }
            if record.standing != before.standing {
                moved.push(record.clone());
            }
            changed.push(record);
        }
        if changed.is_empty() {
            return Ok(());
        }
        self.store.put_feeds(&changed).await?;
        if let Some(reloaded) = self.reloaded.get() {
            reloaded.feeds_changed();
        }
        let same = changed.into_iter().filter(|record| moved.iter().all(|m| m.name != record.name));
        self.poller.share(same.map(Arc::new).collect()).await.map_err(super::stopped)?;
        for record in moved {
            self.poller.put(record).await.map_err(super::stopped)?;
        }
        Ok(())
    }

    /// What a document is, read where that keeps nobody waiting.
    async fn found(&self, url: &Url, answer: WholeAnswer) -> FoundDocument {
        let url = url.clone();
        // Never closed.
        let turn = self.first_documents.acquire().await.ok();
        let reading = tokio::task::spawn_blocking(move || {
            let bytes = fetch::decoded(&answer.headers, answer.body, DECODED_LIMIT).ok()?;
            let kind = answer.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
            let decoded = parse::decode(&bytes, kind, &Limits::default()).ok()?;
            let document = parse::document(&decoded.text, Some(&url), &Limits::default()).ok()?;
            let is_whole = matches!(document.completeness, Completeness::Full);
            let is_feed = document.format != Format::Opml && is_whole;
            let is_json = document.format == Format::JsonFeed;
            is_feed.then(|| FoundDocument::Feed { keeps_ids: keeps_ids(&document), is_json })
        });
        let found = reading.await.ok().flatten();
        drop(turn);
        found.unwrap_or(FoundDocument::Other)
    }

    /// Writes a new feed down; the one that is there, where there is one at this address.
    async fn new_on_demand(
        &self,
        site: &AdmittedSite,
        url: &Url,
        answer: Option<WholeAnswer>,
        (keeps_ids, is_json): (bool, bool),
    ) -> Result<NewFeed, NotMade> {
        let _one = self.changing.lock().await;
        let feeds = self.store.feed_list().await.map_err(|error| later(&error, keeps_ids))?;
        let address = url.as_str();
        let is_same = |record: &&Arc<FeedRecord>| record.url == address && !record.private;
        if let Some(known) =
            feeds.values().filter(is_same).min_by_key(|it| it.standing == FeedStanding::Gone)
        {
            return Ok(NewFeed::Known(known.name.clone()));
        }
        let of_site = |record: &&Arc<FeedRecord>| {
            record.on_demand.as_ref().is_some_and(|made| made.site == site.url.as_str())
        };
        let limit = site.feeds;
        if feeds.values().filter(of_site).count() >= usize::try_from(limit).unwrap_or(usize::MAX) {
            tracing::warn!(site = %fetch::shown(&site.url), limit, "requests make no more feeds of this site");
            return Err(NotMade::Full { limit });
        }
        self.store.condition().check_intake().map_err(|error| later(&error, keeps_ids))?;
        let name = config::feed_name(url, |name| feeds.contains_key(name));
        let taken = "the names that a feed of this address may have are taken";
        let name = name.ok_or_else(|| later(&taken, keeps_ids))?;
        let now: Time = self.clock.now();
        let mut record = FeedRecord::on_demand(name, address, site.url.as_str(), now);
        record.on_demand.iter_mut().for_each(|made| made.is_json = is_json);
        let when = FeedRecord::next_change(feeds.values().map(Arc::as_ref), now);
        record.follow(None, when, self.store.endpoint());
        if let Some(answer) = answer {
            self.services().passing.handover.give(address, answer);
        }
        self.store.put_feed(&record).await.map_err(|error| later(&error, keeps_ids))?;
        Ok(NewFeed::Made(Box::new(record)))
    }
}

/// Whether a document would be published with the ids that it has: each entry has one, and no two the same.
fn keeps_ids(document: &FeedDocument<'_>) -> bool {
    let mut seen = HashSet::new();
    matches!(document.format, Format::Atom10 | Format::Rss20)
        && document.entries.iter().all(|entry| {
            entry.native_id.as_deref().is_some_and(|id| !id.is_empty() && seen.insert(id))
        })
}
