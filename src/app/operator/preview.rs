//! What is at an address, for who thinks of adding it.

use super::AdminService;
use crate::config;
use crate::fetch::{self, FetchAnswer, FetchRequest, FetchedDocument, Services};
use crate::model::{Completeness, Entry, FeedDocument, FeedName, Format, Warning};
use crate::parse::discover::{COMMON_PATHS, feed_links};
use crate::parse::{self, Limits, ParseError};
use crate::serve::{AddressPreview, FeedPreview, FoundFeed, OperatorError};
use std::sync::PoisonError;
use tower::ServiceExt as _;
use url::Url;

/// What was fetched, and from where.
struct AtAddress {
    document: FetchedDocument,
    url: Url,
    /// The address to add: where permanent redirects lead, if they do.
    lasting: String,
}

impl AdminService {
    fn services(&self) -> Services {
        self.services.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn fetch_once(&self, url: &str) -> Result<AtAddress, OperatorError> {
        let request = FetchRequest::whole(url.to_owned(), self.clock.now());
        let fetched = self.services().fetch.oneshot(request).await;
        let fetched = fetched.map_err(|error| OperatorError::BadRequest(error.to_string()))?;
        let FetchAnswer::Document(document) = fetched.answer else {
            let said = "the publisher sent no document, though nothing was known of it";
            return Err(OperatorError::BadRequest(said.to_owned()));
        };
        let wrong =
            |error| OperatorError::Internal(format!("an answer's address is none: {error}"));
        let answered = Url::parse(&fetched.final_url).map_err(wrong)?;
        let lasting = fetched.moved_to.unwrap_or_else(|| url.to_owned());
        Ok(AtAddress { document, url: answered, lasting })
    }

    /// Says what is at an address.
    pub(super) async fn look_at(&self, url: &str) -> Result<AddressPreview, OperatorError> {
        let address =
            fetch::read_url(url).map_err(|why| OperatorError::BadRequest(why.to_string()))?;
        let found = self.fetch_once(address.as_str()).await?;
        let decoded =
            decoded(&found).map_err(|error| OperatorError::BadRequest(error.to_string()))?;
        match parse::document(&decoded, Some(&found.url), &Limits::default()) {
            Ok(document) => Ok(AddressPreview::Feed(preview(&document, found.lasting))),
            Err(ParseError::Html { .. }) => {
                let named = feed_links(&decoded, &found.url);
                let named = named
                    .into_iter()
                    .map(|link| FoundFeed { url: link.url.into(), title: link.title });
                let mut named: Vec<FoundFeed> = named.collect();
                if named.is_empty() {
                    named = self.usual_feeds(&found.url).await;
                }
                Ok(AddressPreview::Page(named))
            }
            Err(error) => Err(OperatorError::BadRequest(error.to_string())),
        }
    }

    /// The feeds that a site has where sites usually have them: the first that is there.
    async fn usual_feeds(&self, page: &Url) -> Vec<FoundFeed> {
        for path in COMMON_PATHS {
            let Ok(url) = page.join(path) else { continue };
            let Ok(found) = self.fetch_once(url.as_str()).await else { continue };
            let Ok(decoded) = decoded(&found) else { continue };
            if let Ok(document) = parse::document(&decoded, Some(&found.url), &Limits::default()) {
                let title = document.head.title.clone().unwrap_or_default();
                return vec![FoundFeed { url: url.into(), title }];
            }
        }
        Vec::new()
    }

    /// The name that a feed at an address gets.
    pub(super) async fn free_name(&self, url: &str) -> Result<FeedName, OperatorError> {
        let url = fetch::read_url(url).map_err(|why| OperatorError::BadRequest(why.to_string()))?;
        let feeds = self.store.feed_list().await?;
        let name = config::feed_name(&url, |name| feeds.contains_key(name));
        let none = "both names of this address are taken; it may have been added already";
        name.ok_or_else(|| OperatorError::Conflict(none.to_owned()))
    }
}

fn decoded(found: &AtAddress) -> Result<String, ParseError> {
    let kind = found.document.content_type.as_deref();
    Ok(parse::decode(&found.document.bytes, kind, &Limits::default())?.text.into_owned())
}

fn preview(document: &FeedDocument<'_>, url: String) -> FeedPreview {
    let titles = document.entries.iter().take(FeedPreview::TITLES).map(|entry| {
        let title = entry.title.as_deref().unwrap_or_default().to_owned();
        (title, entry.published.or(entry.updated))
    });
    FeedPreview {
        url,
        format: format_name(document.format),
        title: document.head.title.clone().unwrap_or_default(),
        entries: document.entries.len(),
        titles: titles.collect(),
        remarks: remarks(document),
    }
}

/// What there is to say of how a document will be judged.
fn remarks(document: &FeedDocument<'_>) -> Vec<String> {
    let without =
        |what: fn(&Entry<'_>) -> bool| document.entries.iter().filter(|entry| what(entry)).count();
    let mut remarks = Vec::new();
    match without(|entry| entry.native_id.is_none()) {
        0 => remarks.push("every entry has an id of its own, so edits and renames are told apart".to_owned()),
        count => remarks.push(format!(
            "{count} entries have no id: they are known by their links and titles, and one whose link and \
             title both change is a new item"
        )),
    }
    if without(|entry| entry.published.is_none() && entry.updated.is_none()) > 0 {
        remarks.push(
            "not every entry has a date, so a deletion takes longer to tell from what scrolled off"
                .to_owned(),
        );
    }
    match &document.completeness {
        Completeness::Full => {}
        _ => remarks.push(
            "only a part of this document counts: it adds and updates, and takes nothing away"
                .to_owned(),
        ),
    }
    if document.sharing.is_some() {
        remarks.push(
            "it shares its items itself (sx:sharing): they are merged by their histories"
                .to_owned(),
        );
    }
    let warning = |warning: &Warning| format!("at byte {}: {}", warning.offset, warning.message);
    remarks.extend(document.warnings.iter().map(warning));
    remarks.truncate(FeedPreview::REMARKS);
    remarks
}

const fn format_name(format: Format) -> &'static str {
    match format {
        Format::Atom10 => "An Atom feed",
        Format::Atom03 => "An Atom 0.3 feed",
        Format::JsonFeed => "A JSON Feed",
        Format::Opml => "A subscription list (OPML)",
        _ => "An RSS feed",
    }
}
