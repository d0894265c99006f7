//! Feeds that requests make, and requests that are passed on to origins.

use super::{Operator, OperatorError};
use crate::Cache;
use crate::origins::{
    AdmittedSite, DiscoveredFeed, FeedTraits, FoundAddress, HeaderRule, document_or_page,
};
use http::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use http::{Method, StatusCode};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config as config;
use tidegate_core::model::{
    Completeness, FeedDocument, FeedName, FeedRecord, FeedStanding, Format, OnDemand, Time,
};
use tidegate_format::parse::discover::{COMMON_PATHS, page_feeds};
use tidegate_format::parse::{self, Limits};
use tidegate_net::fetch::{self, FetchError};
use tidegate_net::origin::{PassAnswer, PassRequest, WholeAnswer, check_for_everybody};
use tidegate_poll::{FirstPoll, PollError};
use tidegate_status::PollResponse;
use tidegate_store::FeedList;
use tokio::sync::OnceCell;
use url::{Position, Url};

/// The most bytes that a document or a page may have once decompressed.
const DECODED_LIMIT: usize = 32 * 1024 * 1024;

/// The most redirects that are followed to a feed that a reader looks for.
const REDIRECTS: usize = 5;
/// How long a look at an address may take.
const DISCOVERY_TIME: Duration = Duration::from_secs(20);

/// How many sites have their feed at a common path remembered, and for how long.
pub(super) const COMMON_PATH_FEEDS: u64 = 2_000;
pub(super) const COMMON_PATH_FEED_AGE: Duration = Duration::from_secs(60);

/// How long after a warning of a site that does not answer the next one comes, and of how many sites that is known.
pub(super) const WARNING_PAUSE: Duration = Duration::from_secs(600);
pub(super) const SILENT_SITES: u64 = 2_000;

/// By site, the feed at a path where sites usually have it, with its title.
pub(super) type CommonPathFeeds = Cache<Url, OnceCell<Option<(Url, String)>>>;

impl Operator {
    /// Passes a request on to an origin.
    pub(crate) async fn pass(&self, request: PassRequest) -> Result<PassAnswer, FetchError> {
        let host = request.url[Position::BeforeHost..Position::AfterPort].to_owned();
        let error = match (self.active_config().services.passing.pass)(request).await {
            Ok(answer) => return Ok(answer),
            // That is no fault of the site's.
            Err(FetchError::Unsent) => return Err(FetchError::Unsent),
            Err(error) => error,
        };
        match self.silent.get_or_insert(host.clone(), ()) {
            (_, true) => {
                tracing::warn!(host, %error, "a site does not answer what is passed on to it");
            }
            _ => tracing::debug!(host, %error, "a request could not be passed on"),
        }
        Err(error)
    }

    /// Makes a feed of an address of an admitted site. `answer`: what its first poll takes; without it the poll
    /// asks. On return the feed is durable and, where that went well, its first document judged.
    pub(crate) async fn make_feed(
        &self,
        site: &AdmittedSite,
        url: &Url,
        traits: FeedTraits,
        answer: Option<WholeAnswer>,
    ) -> Result<FeedName, OperatorError> {
        let (name, first_poll) = self.new_on_demand(site, url, traits, answer).await?;
        let error = match first_poll {
            Some(poll) => failure(poll.finish().await),
            None => None,
        };
        match self.store.state(&name).await {
            Ok(Some(_)) => Ok(name),
            Ok(None) => Err(not_made(&error.unwrap_or_default())),
            Err(error) => Err(not_made(&error)),
        }
    }

    /// Has a feed that a request made read what its site answered to another one, since the gateway's own polls fail.
    pub(crate) async fn read_again(&self, feed: &FeedName, url: &Url, answer: WholeAnswer) {
        let base = url.clone();
        let read = move |text: &str| feed_in(text, &base);
        if self.read_text(answer.clone(), read).await.is_none() {
            return;
        }
        self.services().passing.handover.give(url.as_str(), answer);
        let polled = self.poller.poll_now(feed).await;
        // No later poll takes it, which may know a newer one.
        drop(self.services().passing.handover.take(url.as_str()));
        match failure(polled) {
            None => {
                tracing::info!(%feed, "took the answer to a reader's request, since polls fail")
            }
            Some(error) => tracing::debug!(%feed, error, "an answer to a request was not taken"),
        }
    }

    /// The headers of every poll: how the gateway names itself and what it reads.
    pub(crate) fn poll_headers(&self) -> HeaderMap {
        self.services().passing.polled_with
    }

    /// Looks at an address of an admitted site, and asks nothing of any other. `is_read`: whether an answer with these
    /// headers is read.
    pub(crate) async fn discover(
        &self,
        site: &AdmittedSite,
        url: &Url,
        is_read: &HeaderRule<'_>,
    ) -> FoundAddress {
        let finding = self.find_feeds(site, url, is_read);
        let looking = tokio::time::timeout(DISCOVERY_TIME, finding).await;
        looking.unwrap_or(FoundAddress::Nothing)
    }

    /// Finds the feed at a path where sites usually have it, with its title; remembers it for a while.
    pub(crate) async fn common_path_feed(&self, site: &AdmittedSite) -> Option<(Url, String)> {
        let (known, _) = self.common_path_feeds.get_or_insert(site.url.clone(), OnceCell::new());
        let looking = tokio::time::timeout(DISCOVERY_TIME, self.find_common_path_feed(site));
        // Of concurrent callers one asks the site; the others wait for its result.
        known?.get_or_init(|| async { looking.await.ok().flatten() }).await.clone()
    }

    /// The feeds that a page names; none where it cannot be read.
    pub(crate) async fn announced(&self, page: &Url, answer: WholeAnswer) -> Vec<Url> {
        let page = page.clone();
        let found = self.read_text(answer, move |text| Some(links_in(text, &page))).await;
        found.unwrap_or_default().into_iter().map(|(url, _)| url).collect()
    }
}

/// Why a poll failed, where it did.
fn failure(polled: Result<PollResponse, PollError>) -> Option<String> {
    polled.map_or_else(|error| Some(error.to_string()), |response| response.error)
}

/// What is said where a request could make no feed: why is for the operator's log.
pub(crate) const NOT_NOW: &str = "the feed cannot be taken in just now";

fn not_made(error: &impl ToString) -> OperatorError {
    tracing::debug!(error = error.to_string(), "a request could not make a feed");
    OperatorError::later(NOT_NOW)
}

impl Operator {
    /// Whether somebody subscribed to a feed at the hub.
    pub fn has_subscribers(&self, feed: &FeedName) -> bool {
        let active_config = self.active_config();
        active_config.hub.as_ref().is_some_and(|hub| !hub.subscriptions(Some(feed), 1).is_empty())
    }

    /// Changes feeds that requests made: those for which `change` says so. Durable on return.
    pub async fn change_on_demand(
        &self,
        mut change: impl FnMut(&mut FeedRecord) -> bool + Send,
    ) -> Result<(), OperatorError> {
        let (_guard, feeds) = self.lock_feeds().await?;
        let mut made: Vec<FeedRecord> = Vec::new();
        for before in feeds.values().filter(|record| record.on_demand.is_some()) {
            let mut record = FeedRecord::clone(before);
            if change(&mut record) {
                made.push(record);
            }
        }
        self.apply(made, &feeds).await
    }

    /// Reads the text of an answer on a blocking thread, a few at a time.
    async fn read_text<T: Send + 'static>(
        &self,
        answer: WholeAnswer,
        read: impl FnOnce(&str) -> Option<T> + Send + 'static,
    ) -> Option<T> {
        let reading = self.read_first(move || text_of(answer).and_then(|text| read(&text)));
        reading.await.ok().flatten()
    }

    /// Asks an admitted site, following redirects within it. Returns the address behind the leading permanent
    /// redirects, the final address, and what is there.
    async fn ask_site(
        &self,
        site: &AdmittedSite,
        url: &Url,
        is_read: &HeaderRule<'_>,
    ) -> Option<([Url; 2], WholeAnswer)> {
        let (mut permanent, mut url) = (url.clone(), url.clone());
        let mut are_permanent = true;
        for _ in 0..=REDIRECTS {
            let mut headers = self.poll_headers();
            // In a page as it is, the end of its head is found before its own end.
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            site.say_name(&url, &mut headers);
            let (method, body) = (Method::GET, None);
            let request = PassRequest { method, url: url.clone(), target: None, headers, body };
            let answer = self.pass(request).await.ok()?;
            if answer.status.is_redirection() {
                let leads = answer.headers.get(LOCATION)?.to_str().ok()?;
                url = site.there(&url.join(leads).ok()?)?;
                are_permanent &= matches!(answer.status.as_u16(), 301 | 308);
                if are_permanent {
                    permanent = url.clone();
                }
                continue;
            }
            if answer.status != StatusCode::OK || !is_read(&answer.headers) {
                return None;
            }
            let answer = document_or_page(&url, answer).await?;
            return Some(([permanent, url], answer));
        }
        None
    }

    /// The feed at an address of a site, or those that its page names.
    async fn find_feeds(
        &self,
        site: &AdmittedSite,
        url: &Url,
        is_read: &HeaderRule<'_>,
    ) -> FoundAddress {
        let Some(([permanent, end], answer)) = self.ask_site(site, url, is_read).await else {
            return FoundAddress::Nothing;
        };
        let (is_open, whole) = (check_for_everybody(&answer.headers), answer.clone());
        let site = site.clone();
        let read = move |text: &str| {
            let of_site = |(url, title)| Some((site.there(&url)?, title));
            let links = || links_in(text, &end).into_iter().filter_map(of_site).collect();
            Some(match (feed_in(text, &end), is_open) {
                (Some((traits, title)), Ok(())) => {
                    let answer = whole;
                    FoundAddress::Feed(Box::new(DiscoveredFeed {
                        permanent,
                        end,
                        traits,
                        title,
                        answer,
                    }))
                }
                (Some(_), Err(why)) => FoundAddress::Closed(why),
                (None, _) => FoundAddress::Page(links()),
            })
        };
        let found = self.read_text(answer, read).await;
        found.unwrap_or_else(|| FoundAddress::Page(Vec::new()))
    }

    /// Looks for the feed at each path where sites usually have it.
    async fn find_common_path_feed(&self, site: &AdmittedSite) -> Option<(Url, String)> {
        for path in COMMON_PATHS {
            let Ok(usual) = site.url.join(path.trim_start_matches('/')) else { continue };
            if let FoundAddress::Feed(there) = self.find_feeds(site, &usual, &|_| true).await {
                return Some((usual, there.title));
            }
        }
        None
    }

    /// Removes a feed that a request made, as if none had: another one takes its place.
    async fn remove_on_demand(
        &self,
        feed: &FeedRecord,
        feeds: &Arc<FeedList>,
    ) -> Result<(), OperatorError> {
        let (mut record, name) = (feed.clone(), &feed.name);
        // A crash on the way leaves a feed that the next request resumes.
        record.let_go();
        self.write(&record, feeds).await?;
        self.poller.remove(name).await?;
        self.store.purge_feed(name).await?;
        self.demand.forget(name);
        tracing::info!(feed = %name, "it gave way to a feed that is asked for more, and was removed");
        Ok(())
    }

    /// Writes a new feed down and begins to poll it; the one that is there, without a poll, where there is one at this
    /// address.
    async fn new_on_demand(
        &self,
        site: &AdmittedSite,
        url: &Url,
        traits: FeedTraits,
        answer: Option<WholeAnswer>,
    ) -> Result<(FeedName, Option<FirstPoll>), OperatorError> {
        let (_guard, feeds) = self.lock_feeds().await.map_err(|error| not_made(&error))?;
        let address = url.as_str();
        let is_same = |record: &&Arc<FeedRecord>| !record.private && site.is_at(&record.url, url);
        if let Some(known) =
            feeds.values().filter(is_same).min_by_key(|it| it.standing == FeedStanding::Gone)
        {
            return Ok((known.name.clone(), None));
        }
        // Those that are polled: what was let go or deleted leaves room.
        let counts = |record: &&Arc<FeedRecord>| {
            let of_site = |made: &OnDemand| made.site == site.url.as_str();
            record.standing == FeedStanding::Active
                && record.on_demand.as_ref().is_some_and(of_site)
        };
        let limit = site.feeds;
        let of_site: Vec<&FeedRecord> = feeds.values().filter(counts).map(Arc::as_ref).collect();
        let is_full = of_site.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
        let now: Time = self.clock.now();
        let goes = match is_full {
            true => self.demand.choose_evicted(&of_site, |it| self.has_subscribers(it), url, now),
            false => None,
        };
        if is_full && goes.is_none() {
            let site = fetch::shown(&site.url);
            tracing::warn!(site, limit, "requests make no more feeds of this site");
            let detail = format!("this site has as many feeds as it may get by requests ({limit})");
            return Err(OperatorError::conflict(detail));
        }
        self.store.condition().check_intake().map_err(|error| not_made(&error))?;
        // Who is told to come again finds no feed then that nobody has polled.
        if self.poller.is_stopping() {
            return Err(not_made(&"the gateway is stopping"));
        }
        let named_after = site.naming_address(url);
        let name = config::feed_name(&named_after, |name| feeds.contains_key(name));
        let taken = "the names that a feed of this address may have are taken";
        let name = name.ok_or_else(|| not_made(&taken))?;
        if let Some(feed) = goes {
            self.remove_on_demand(feed, &feeds).await.map_err(|error| not_made(&error))?;
        }
        let mut record = FeedRecord::on_demand(name.clone(), address, site.url.as_str(), now);
        record.on_demand.iter_mut().for_each(|made| made.is_json = traits.is_json);
        let when = FeedRecord::next_change(feeds.values().map(Arc::as_ref), now);
        record.follow(None, when, self.store.endpoint());
        if let Some(answer) = answer {
            self.services().passing.handover.give(address, answer);
        }
        self.write(&record, &feeds).await.map_err(|error| not_made(&error))?;
        let poll = self.poller.put_and_poll(record).await.map_err(|error| not_made(&error))?;
        tracing::info!(feed = %name, "a request made this feed");
        Ok((name, Some(poll)))
    }
}

/// The feed that a document is, with its title; a list of subscriptions and a document of which a part is missing are
/// none.
fn feed_in(text: &str, url: &Url) -> Option<(FeedTraits, String)> {
    let document = parse::document(text, Some(url), &Limits::default()).ok()?;
    let is_whole = matches!(document.completeness, Completeness::Full);
    if document.format == Format::Opml || !is_whole {
        return None;
    }
    let is_json = document.format == Format::JsonFeed;
    let traits = FeedTraits { keeps_ids: keeps_ids(&document), is_json };
    Some((traits, document.head.title.clone().unwrap_or_default()))
}

/// The feeds that a page names, each with its title.
fn links_in(text: &str, page: &Url) -> Vec<(Url, String)> {
    page_feeds(text, page).named.into_iter().map(|link| (link.url, link.title)).collect()
}

/// The text of an answer.
fn text_of(answer: WholeAnswer) -> Option<String> {
    let kind = answer.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.map(str::to_owned);
    let bytes = fetch::decoded(&answer.headers, answer.body, DECODED_LIMIT).ok()?;
    let decoded = parse::decode(&bytes, kind.as_deref(), &Limits::default()).ok()?;
    Some(decoded.text.into_owned())
}

/// Whether a document would be published with the ids that it has: each entry has one, and no two the same.
fn keeps_ids(document: &FeedDocument<'_>) -> bool {
    let mut seen = HashSet::new();
    matches!(document.format, Format::Atom10 | Format::Rss20 | Format::Collection)
        && document.entries.iter().all(|entry| {
            entry.native_id.as_deref().is_some_and(|id| !id.is_empty() && seen.insert(id))
        })
}

#[cfg(test)]
mod tests;
