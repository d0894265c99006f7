//! Feeds and aggregates as the rest of the program has them, once the file was checked.

use super::feeds::WebhookConfig;
use tidegate_core::model::{FeedAccess, FeedName, FeedOptions, FeedRecord, FeedSource};
use url::Url;

/// A feed of the configuration, or several as one: an aggregate, which names the feeds that it gathers in its options.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FeedConfig {
    pub name: FeedName,
    /// The upstream's address; a local feed may have none, and an aggregate has none.
    pub url: Option<Url>,
    /// What the operator says of it.
    pub options: FeedOptions,
    /// Who added it: the file or the command line.
    pub source: FeedSource,
    /// What its publisher is asked with, where that is not as of every other.
    pub access: Option<Box<FeedAccess>>,
    /// Where its changes are delivered.
    pub webhook: Option<WebhookConfig>,
    /// Whether only readers with a token may read it.
    pub private: bool,
    /// Whether it is a list whose feeds are added.
    pub adds_feeds: bool,
    /// The path of its reader view here, beside `/feeds/NAME`.
    pub path: Option<String>,
}

impl FeedConfig {
    /// A feed of which nothing else is said.
    pub fn new(name: FeedName, url: Option<Url>, source: FeedSource) -> Self {
        Self {
            name,
            url,
            options: FeedOptions::default(),
            source,
            access: None,
            webhook: None,
            private: false,
            adds_feeds: false,
            path: None,
        }
    }

    /// The record that the store keeps of it.
    pub fn record(&self) -> FeedRecord {
        let url = self.url.as_ref().map_or("", Url::as_str);
        FeedRecord {
            options: self.options.clone(),
            access: self.access.clone(),
            private: self.private,
            adds_feeds: self.adds_feeds,
            ..FeedRecord::new(self.name.clone(), url, self.source)
        }
    }
}
