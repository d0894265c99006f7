//! The `sx:sharing` of a feed (SSE 1.0 section 2.2).

use super::Id;
use super::{SseDialect, SseFeed, bare};
use tidegate_core::model::Time;
use url::Url;

/// An `sx:sharing` element, as it is written.
#[derive(Debug)]
pub struct SseSharing<'f> {
    /// Its dialect.
    dialect: SseDialect,
    /// Its `since`.
    since: Option<&'f str>,
    /// Its `until`.
    until: Option<&'f str>,
    /// Its `expires`.
    pub expires: Option<&'f str>,
    feed: &'f SseFeed<'f>,
    id: Id,
}

impl SseFeed<'_> {
    /// Its `sx:sharing`: in its channel, or in its root, where that of the authors of SSE 0.91 stands
    /// (READINGS 2, row 11).
    pub fn sharing(&self) -> Option<SseSharing<'_>> {
        let mut children = self.tree.children(self.container).chain(self.tree.children(0));
        children.find_map(|(id, element)| {
            let (namespace, local) = self.tree.name(id);
            let dialect = SseDialect::of(namespace).filter(|_| local == "sharing")?;
            let (since, until) = (element.attribute("since"), element.attribute("until"));
            let expires = element.attribute("expires");
            Some(SseSharing { dialect, since, until, expires, feed: self, id })
        })
    }
}

impl SseSharing<'_> {
    /// Its `since` and `until`, as texts that can be compared. SSE 0.91 (section 2.1) writes dates, whose
    /// letters are in no order; without its `since` the feed is there from the beginning.
    pub fn bounds(&self) -> Option<(String, String)> {
        let (since, until) = (self.since, self.until?);
        if self.dialect != SseDialect::Sse091 {
            return Some((since?.to_owned(), until.to_owned()));
        }
        let read = |date: &str| Time::parse_rfc2822(date).map(|time| time.to_string());
        let until = read(until)?;
        match since.filter(|since| !since.trim().is_empty()) {
            None => Some((String::new(), until)),
            Some(since) => Some((read(since)?, until)),
        }
    }

    /// Where the complete feed is, where it names one (section 2.2.1). A relative link needs the
    /// document's `url`.
    pub fn complete(&self, url: Option<&Url>) -> Option<Url> {
        let tree = &self.feed.tree;
        let link = tree.children(self.id).find_map(|(related, element)| {
            let is_complete = tree.name(related).1 == "related"
                && element.attribute("type").map(str::trim) == Some("complete");
            let link = element.attribute("link").filter(|_| is_complete)?.trim();
            match url {
                Some(url) => url.join(link).ok(),
                None => Url::parse(link).ok(),
            }
        });
        link.map(bare)
    }
}
