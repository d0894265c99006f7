//! What is at an address, for who thinks of adding it.

use super::{Operator, OperatorError};
use std::sync::Arc;
use std::time::Duration;
use tidegate_config as config;
use tidegate_core::model::{
    Completeness, Entry, FeedDocument, FeedName, Format, Time, Warning, counted,
};
use tidegate_format::parse::discover::{
    COMMON_PATHS, FeedLink, PageFeeds, header_feeds, page_feeds,
};
use tidegate_format::parse::{self, Limits, ParseError};
use tidegate_net::fetch::{self, FetchAnswer, FetchRequest, FetchedDocument, Services};
use tidegate_store::FeedList;
use tokio::task::JoinError;
use tower::ServiceExt as _;
use url::Url;
use utoipa::ToSchema;

/// What is at an address.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schema(as = Preview)]
pub enum AddressPreview {
    Feed(FeedPreview),
    /// A page, with the feeds that it names or that were found where sites usually have one.
    Page {
        url: String,
        feeds: Vec<FoundFeed>,
    },
}

/// A feed as it would begin.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, ToSchema)]
#[schema(as = PreviewedFeed)]
pub struct FeedPreview {
    /// Its address; where permanent redirects lead, if they do.
    pub url: String,
    /// The name that it gets where nobody chooses one.
    pub name: FeedName,
    /// The format in words.
    pub format: &'static str,
    /// Whether it is a subscription list.
    #[serde(skip)]
    pub is_list: bool,
    /// Its title; empty where it has none.
    pub title: String,
    /// How many entries it has.
    pub entries: usize,
    /// The first of them, at most [`FeedPreview::TITLES`].
    pub first_entries: Vec<PreviewedEntry>,
    /// How it would be judged.
    pub remarks: Vec<String>,
}

/// An entry of a feed as it would begin.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, ToSchema)]
pub struct PreviewedEntry {
    /// Empty where it has none.
    pub title: String,
    pub time: Option<Time>,
}

impl FeedPreview {
    /// The most titles of a preview.
    pub const TITLES: usize = 10;
    /// The most remarks of a preview.
    pub const REMARKS: usize = 10;
}

/// A feed that belongs to a page.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, ToSchema)]
pub struct FoundFeed {
    pub url: String,
    /// What the page calls it; empty where it does not say.
    pub title: String,
}

/// The most addresses on a page that are tried as a feed's.
const LIKELY_TRIED: usize = 4;
/// How long fetching each of them and of the usual addresses of a site's feed may take.
const USUAL_TIME: Duration = Duration::from_secs(3);

/// What a document is.
enum PreviewKind {
    Feed(FeedPreview),
    /// A page, with its address.
    Page(Url, PageFeeds),
}

impl Operator {
    /// The name that a feed at this address gets where nobody chooses one.
    pub async fn name_for(&self, url: &str) -> Result<FeedName, OperatorError> {
        free_name(read_url(url)?, self.store.feed_list().await?.as_ref())
    }

    pub(super) fn services(&self) -> Services {
        self.active_config().services.clone()
    }

    /// Reads the document at an address, and says what it is. `within`: how long fetching it may take.
    async fn look_at(&self, given: &Url, within: Duration) -> Result<PreviewKind, OperatorError> {
        let request = FetchRequest::whole(given.to_string(), self.clock.now());
        let fetching = self.services().fetch.oneshot(request);
        let fetched = tokio::time::timeout(within, fetching).await;
        let fetched = fetched.map_err(|_| OperatorError::bad_request("it did not come in time"))?;
        let fetched = fetched.map_err(|error| OperatorError::bad_request(error.to_string()))?;
        let FetchAnswer::Document(document) = fetched.answer else {
            let detail = "the publisher sent no document, though nothing was known of it";
            return Err(OperatorError::bad_request(detail));
        };
        let wrong =
            |error| OperatorError::internal(format!("an answer's address is none: {error}"));
        let url = Url::parse(&fetched.final_url).map_err(wrong)?;
        // What was typed goes on to where the same origin leads, and is added as permanent redirects lead.
        let moved = fetched.moved_to.and_then(|moved| Url::parse(&moved).ok());
        let lasting = moved.map(|moved| fetch::with_credentials(&moved, given));
        let lasting = lasting.map_or_else(|| given.to_string(), String::from);
        let (links, feeds) = (fetched.page_links, self.store.feed_list().await?);
        let reading = self.read_first(move || kind(&document, url, lasting, &links, &feeds));
        let broken = |error| OperatorError::internal(format!("the document was not read: {error}"));
        reading.await.map_err(broken)?
    }

    /// Reads what may become a feed on a blocking thread, a few at a time.
    pub(super) async fn read_first<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        // Never closed. It is given back once all is read, also where nobody waits for that any more.
        let permit = Arc::clone(&self.first_documents).acquire_owned().await.ok();
        let reading = tokio::task::spawn_blocking(move || {
            let found = read();
            drop(permit);
            found
        });
        reading.await
    }

    /// Reads the document at an address and says what it is, without taking anything in: a feed, or a page
    /// with the feeds that it names.
    pub async fn preview(&self, url: &str) -> Result<AddressPreview, OperatorError> {
        let given = read_url(url)?;
        let (page, PageFeeds { named, likely }) = match self.look_at(&given, Duration::MAX).await? {
            PreviewKind::Feed(feed) => return Ok(AddressPreview::Feed(feed)),
            PreviewKind::Page(page, feeds) => (page, feeds),
        };
        let with_credentials = |link: FeedLink| FoundFeed {
            url: fetch::with_credentials(&link.url, &given).into(),
            title: link.title,
        };
        let named: Vec<FoundFeed> = named.into_iter().map(with_credentials).collect();
        let feeds = match named.is_empty() {
            true => self.likely_feed(&page, &given, likely).await.into_iter().collect(),
            false => named,
        };
        Ok(AddressPreview::Page { url: url.to_owned(), feeds })
    }

    /// The first feed in time at the addresses of a page that may be one's, and where sites usually have one.
    async fn likely_feed(
        &self,
        page: &Url,
        given: &Url,
        likely: Vec<FeedLink>,
    ) -> Option<FoundFeed> {
        let likely = likely.into_iter().map(|link| link.url).take(LIKELY_TRIED);
        let usual = COMMON_PATHS.iter().filter_map(|path| page.join(path).ok());
        for url in likely.chain(usual) {
            let url = fetch::with_credentials(&url, given);
            if let Ok(PreviewKind::Feed(feed)) = self.look_at(&url, USUAL_TIME).await {
                return Some(FoundFeed { url: url.into(), title: feed.title });
            }
        }
        None
    }
}

pub(super) fn read_url(url: &str) -> Result<Url, OperatorError> {
    fetch::read_url(url).map_err(|why| OperatorError::bad_request(why.to_string()))
}

/// The name that a feed at an address gets.
pub(super) fn free_name(url: Url, feeds: &FeedList) -> Result<FeedName, OperatorError> {
    let (url, _) = config::without_login(url);
    let name = config::feed_name(&url, |name| feeds.contains_key(name));
    let none = "both names of this address are taken; it may have been added already";
    name.ok_or_else(|| OperatorError::conflict(none))
}

/// What a document at `url` is, which is added by the address `lasting`; `links`: its `Link` headers, where it says that it
/// is a page.
fn kind(
    document: &FetchedDocument,
    url: Url,
    lasting: String,
    links: &[String],
    feeds: &FeedList,
) -> Result<PreviewKind, OperatorError> {
    let limits = Limits::default();
    let wrong = |error: ParseError| OperatorError::bad_request(error.to_string());
    let decoded = parse::decode(&document.bytes, document.content_type.as_deref(), &limits);
    let decoded = decoded.map_err(wrong)?;
    match parse::document(&decoded.text, Some(&url), &limits) {
        Ok(document) => {
            let name = free_name(read_url(&lasting)?, feeds)?;
            Ok(PreviewKind::Feed(preview(&document, lasting, name)))
        }
        Err(ParseError::Html { .. }) => {
            let mut feeds = page_feeds(&decoded.text, &url);
            let in_headers = header_feeds(links.iter().map(String::as_str), &url);
            let is_new = |link: &FeedLink| feeds.named.iter().all(|known| known.url != link.url);
            let in_headers: Vec<FeedLink> = in_headers.into_iter().filter(is_new).collect();
            feeds.named.extend(in_headers);
            Ok(PreviewKind::Page(url, feeds))
        }
        Err(error) => Err(wrong(error)),
    }
}

fn preview(document: &FeedDocument<'_>, url: String, name: FeedName) -> FeedPreview {
    let first = document.entries.iter().take(FeedPreview::TITLES).map(|entry| {
        let title = entry.title.as_deref().unwrap_or_default().to_owned();
        PreviewedEntry { title, time: entry.published.or(entry.updated) }
    });
    FeedPreview {
        url,
        name,
        format: format_name(document.format),
        is_list: document.format == Format::Opml,
        title: document.head.title.clone().unwrap_or_default(),
        entries: document.entries.len(),
        first_entries: first.collect(),
        remarks: remarks(document),
    }
}

/// What there is to say of how a document will be judged.
fn remarks(document: &FeedDocument<'_>) -> Vec<String> {
    let without =
        |what: fn(&Entry<'_>) -> bool| document.entries.iter().filter(|entry| what(entry)).count();
    let ids = match without(|entry| entry.native_id.is_none()) {
        0 => "every entry has an id of its own, so edits and renames are told apart".to_owned(),
        count => format!(
            "{} without an id: known by link and title, and a new item where both change",
            counted(count, "entry")
        ),
    };
    let undated = without(|entry| entry.published.is_none() && entry.updated.is_none());
    let others = [
        (
            undated > 0,
            "not every entry has a date, so a deletion takes longer to tell from what scrolled off",
        ),
        (
            !matches!(document.completeness, Completeness::Full),
            "only a part of this document counts: it adds and updates, and takes nothing away",
        ),
        (
            document.sharing.is_some(),
            "it shares its items itself (sx:sharing): they are merged by their histories",
        ),
    ];
    let others = others.into_iter().filter(|(holds, _)| *holds).map(|(_, text)| text.to_owned());
    let warning = |warning: &Warning| format!("at byte {}: {}", warning.offset, warning.message);
    let ids = Some(ids).filter(|_| !document.entries.is_empty());
    let all = ids.into_iter().chain(others).chain(document.warnings.iter().map(warning));
    all.take(FeedPreview::REMARKS).collect()
}

const fn format_name(format: Format) -> &'static str {
    match format {
        Format::Atom10 => "An Atom feed",
        Format::Atom03 => "An Atom 0.3 feed",
        Format::JsonFeed => "A JSON Feed",
        Format::Opml => "A subscription list (OPML)",
        Format::Collection => "A collection of FeedSync",
        _ => "An RSS feed",
    }
}
