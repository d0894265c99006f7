//! A fetched feed document, parsed. Borrows from the decoded text.

use super::{Context, EntrySync, Flaws, Incoming, Projection, Sharing, Skeleton, Slots, Time};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// The format of a feed document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Format {
    /// Atom 1.0 (RFC 4287), in which what is made here is written.
    #[default]
    Atom10,
    Atom03,
    Rss20,
    /// RSS 0.91 to 0.94, and `rss` elements with another or no version.
    Rss09x,
    /// RSS 1.0 (RDF).
    Rss10,
    /// RSS 0.90 (RDF).
    Rss090,
    /// JSON Feed 1.0 or 1.1.
    JsonFeed,
    /// A subscription list in OPML, its outlines read as entries of Atom.
    Opml,
    /// A collection of FeedSync; one as JSON is read as plain XML.
    Collection,
}

/// The family that a format is republished in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    Atom,
    Rss,
}

impl Format {
    /// The family that this format is republished in: RSS of every kind as RSS 2.0, Atom 0.3,
    /// JSON Feed, the outlines of lists and the items of collections as Atom 1.0.
    pub const fn family(self) -> Family {
        match self {
            Self::Atom10 | Self::Atom03 | Self::JsonFeed | Self::Opml | Self::Collection => {
                Family::Atom
            }
            Self::Rss20 | Self::Rss09x | Self::Rss10 | Self::Rss090 => Family::Rss,
        }
    }

    /// The name to show.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Atom10 => "Atom 1.0",
            Self::Atom03 => "Atom 0.3",
            Self::Rss20 => "RSS 2.0",
            Self::Rss09x => "RSS 0.9x",
            Self::Rss10 => "RSS 1.0",
            Self::Rss090 => "RSS 0.90",
            Self::JsonFeed => "JSON Feed",
            Self::Opml => "OPML",
            Self::Collection => "FeedSync collection",
        }
    }
}

/// How much of the upstream feed an observation shows (CONTRACT, Words). Only a full one can show
/// that an item is gone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Completeness {
    /// The whole document, well-formed.
    Full,
    /// A part on purpose: a push or a 226 body.
    Delta,
    /// Parsed only in part, with the reason in words.
    Salvaged(String),
}

/// Something wrong that did not prevent parsing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Warning {
    /// Byte offset into the decoded text.
    pub offset: usize,
    /// One sentence, lower case, no final stop.
    pub message: String,
}

/// One element or attribute of an entry's canonical projection: what a reader would see of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Field<'a> {
    /// Where the value stands: local names for the format's own elements (`title`, `content`),
    /// `prefix:name` with the customary prefix for well-known namespaces (`dc:creator`,
    /// `media:thumbnail`), `{namespace}name` otherwise; nested elements joined by `/`, an attribute
    /// as `path@name`. Never the prefix that the publisher happened to choose.
    pub path: Cow<'a, str>,
    /// The value: references resolved, CDATA opened, white space collapsed and trimmed.
    pub value: Cow<'a, str>,
}

impl Field<'_> {
    /// The same with what it borrows.
    pub fn detached(self) -> Field<'static> {
        let Self { path, value } = self;
        Field { path: Cow::Owned(path.into_owned()), value: Cow::Owned(value.into_owned()) }
    }
}

/// An entry or item of a document.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Entry<'a> {
    /// Its exact place in the decoded text.
    #[serde(skip)]
    pub span: Range<usize>,
    /// Its bytes with the repairs that [`super::Markup`] tells of; borrowed where there were none.
    pub markup: Cow<'a, str>,
    /// Where to splice, in `markup`.
    pub slots: Slots,
    /// What it inherits.
    pub context: Arc<Context>,
    /// Atom id, `guid`, `rdf:about` or JSON Feed id; trimmed, never empty.
    pub native_id: Option<Cow<'a, str>>,
    /// Whether that id is also the entry's address (RSS `guid` without `isPermaLink="false"` that
    /// holds an http(s) URL; `rdf:about`).
    pub id_is_permalink: bool,
    /// The address of the entry's page, absolute where that was possible: Atom `alternate`, RSS
    /// `link`, JSON `url`, else a permalink guid.
    pub link: Option<Cow<'a, str>>,
    /// The title as plain text (markup removed where its type says that it is HTML).
    pub title: Option<Cow<'a, str>>,
    /// The name of the author.
    pub author: Option<Cow<'a, str>>,
    /// When it was published, where the publisher says so and it can be read.
    pub published: Option<Time>,
    /// When it was updated, likewise.
    pub updated: Option<Time>,
    /// What [`Entry::fields`] answers.
    pub projection: Projection<'a>,
    /// What its `sx:sync` says, where it has one.
    #[serde(skip)]
    pub sync: Option<EntrySync>,
}

impl Entry<'_> {
    /// The version of a shared item that it is; `None` where it says nothing of sharing, or nothing
    /// valid.
    pub const fn shared(&self) -> Option<&Arc<Incoming>> {
        match &self.sync {
            Some(EntrySync::Valid(incoming)) => Some(incoming),
            Some(EntrySync::Invalid(_)) | None => None,
        }
    }

    /// The entry out of its document, with everything that it borrows; its span is empty, and what
    /// its `sx:sync` says is left behind.
    pub fn detached(&self) -> Entry<'static> {
        let whole = |text: &Cow<'_, str>| Cow::Owned(text.as_ref().to_owned());
        Entry {
            span: 0..0,
            markup: whole(&self.markup),
            slots: self.slots.clone(),
            context: Arc::clone(&self.context),
            native_id: self.native_id.as_ref().map(whole),
            id_is_permalink: self.id_is_permalink,
            link: self.link.as_ref().map(whole),
            title: self.title.as_ref().map(whole),
            author: self.author.as_ref().map(whole),
            published: self.published,
            updated: self.updated,
            projection: self
                .fields()
                .iter()
                .cloned()
                .map(Field::detached)
                .collect::<Vec<_>>()
                .into(),
            sync: None,
        }
    }
}

/// An upstream's own word that an entry is gone: RFC 6721 `at:deleted-entry`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EntryTombstone {
    /// The id of the entry that is gone (`ref`).
    pub native_id: String,
    /// When it went, where it can be read.
    pub when: Option<Time>,
}

/// What a document asks of those who poll it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct UpdateHints {
    /// RSS `ttl`.
    pub ttl: Option<Duration>,
    /// `sy:updatePeriod` divided by `sy:updateFrequency`.
    pub period: Option<Duration>,
    /// `sx:sharing/@expires`: until when the feed is to be read, or changes may be missed (SSE 1.0
    /// section 2.2).
    pub expires: Option<Time>,
    /// RSS `skipHours`: hours of UTC, 0 to 23.
    pub skip_hours: Vec<u8>,
    /// RSS `skipDays`: days of UTC, Monday is 0.
    pub skip_days: Vec<u8>,
}

/// Links of a document that lead to other documents; absolute where that was possible.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FeedLinks {
    /// `rel="self"`.
    pub own: Option<String>,
    /// `rel="hub"`, all.
    pub hubs: Vec<String>,
    /// The SUP link (`http://api.friendfeed.com/2008/03#sup`), fragment included.
    pub sup: Option<String>,
    /// `rel="current"`: of an archive document, the document that is subscribed to.
    pub current: Option<String>,
    /// `rel="prev-archive"`.
    pub prev_archive: Option<String>,
    /// `rel="previous"`: in Feed History draft-05 an older archive, in RFC 5005 a page.
    pub previous: Option<String>,
    /// `rel="next"` (paged feeds).
    pub next: Option<String>,
}

/// How a publisher lays out what is older than its document shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Older {
    /// Archive documents, each of which leads to the one before (Feed History draft-05 section 4,
    /// RFC 5005 section 4): their sets of entries do not change.
    Archives,
    /// Pages (RFC 5005 section 3): the entries of one slide on to the next.
    Pages,
}

impl FeedLinks {
    /// Where a document leads to what is older, and how that is laid out. `walked`: how it is,
    /// where an earlier document told.
    ///
    /// `previous` is an older archive where the document says nothing else, and where it is an
    /// archive itself; beside a `next` it is the page before this one (READINGS 3, row 1).
    pub fn older(&self, walked: Option<Older>) -> Option<(Older, &str)> {
        let is_page = self.next.is_some() && self.current.is_none();
        let previous = self.previous.as_deref();
        let archive = match (&self.prev_archive, walked) {
            (Some(archive), _) => Some(archive.as_str()),
            (None, Some(Older::Archives)) => previous,
            (None, None) if !is_page => previous,
            _ => None,
        };
        match walked {
            None => archive.map(|at| (Older::Archives, at)).or_else(|| self.page()),
            Some(Older::Archives) => archive.map(|at| (Older::Archives, at)),
            Some(Older::Pages) => self.page(),
        }
    }

    fn page(&self) -> Option<(Older, &str)> {
        self.next.as_deref().map(|at| (Older::Pages, at))
    }
}

/// The feed-level values of a document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head {
    /// The title as plain text.
    pub title: Option<String>,
    /// Atom feed id, `rdf:about` of the channel, or JSON `feed_url`.
    pub id: Option<String>,
    /// The address of the site.
    pub link: Option<String>,
    /// The subtitle or description, as written.
    pub subtitle: Option<String>,
    /// The language of the feed.
    pub language: Option<String>,
    /// The address of its image, logo or icon, as written.
    pub image: Option<String>,
    /// The name of its author, as written.
    pub author: Option<String>,
    /// The generator, as written.
    pub generator: Option<String>,
    /// The feed's `updated` or `lastBuildDate`.
    pub updated: Option<Time>,
    /// Links to other documents.
    pub links: FeedLinks,
    /// What is asked of pollers.
    pub hints: UpdateHints,
    /// `fh:complete`: the document lists every entry.
    pub complete: bool,
}

/// A feed document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedDocument<'a> {
    pub format: Format,
    /// The decoded text that everything borrows from.
    pub text: &'a str,
    /// The feed-level values.
    pub head: Head,
    /// The document around its entries.
    pub skeleton: Skeleton,
    /// Its entries, in document order; their spans do not overlap.
    pub entries: Vec<Entry<'a>>,
    /// Entries that the upstream says are gone.
    pub tombstones: Vec<EntryTombstone>,
    /// How much this observation shows.
    pub completeness: Completeness,
    /// Where the document is broken, where it was salvaged; byte offset.
    pub broken_at: Option<usize>,
    /// What its `sx:sharing` says, where it has one.
    pub sharing: Option<Sharing>,
    /// What was wrong with it.
    pub warnings: Vec<Warning>,
    /// What keeps it from being well-formed.
    pub flaws: Flaws,
    /// The charset that it was decoded from, where that is known.
    pub charset: Option<&'static str>,
}

impl<'a> FeedDocument<'a> {
    /// The same document with other entries. Its own are not copied.
    pub fn with_entries(&self, entries: Vec<Entry<'a>>) -> Self {
        Self {
            format: self.format,
            text: self.text,
            head: self.head.clone(),
            skeleton: self.skeleton.clone(),
            entries,
            tombstones: self.tombstones.clone(),
            completeness: self.completeness.clone(),
            broken_at: self.broken_at,
            sharing: self.sharing.clone(),
            warnings: self.warnings.clone(),
            flaws: self.flaws,
            charset: self.charset,
        }
    }

    /// Whether it lists what changed of late (`sx:sharing/@since`; SSE 1.0 section 4): then it says
    /// nothing by what is not in it.
    pub fn lists_changes(&self) -> bool {
        self.sharing.as_ref().is_some_and(|said| said.bounds.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(rels: &[(&str, &str)]) -> FeedLinks {
        let find = |rel| rels.iter().find(|(r, _)| *r == rel).map(|(_, at)| (*at).to_owned());
        FeedLinks {
            current: find("current"),
            prev_archive: find("prev-archive"),
            previous: find("previous"),
            next: find("next"),
            ..FeedLinks::default()
        }
    }

    /// READINGS 3, row 1.
    #[test]
    fn what_is_older_stands_where_the_layout_has_it() {
        use Older::{Archives, Pages};
        for (rels, walked, found) in [
            (vec![], None, None),
            (vec![("prev-archive", "a"), ("next", "n")], None, Some((Archives, "a"))),
            (vec![("prev-archive", "a"), ("previous", "p")], None, Some((Archives, "a"))),
            (vec![("previous", "p")], None, Some((Archives, "p"))),
            (vec![("previous", "p"), ("current", "c"), ("next", "n")], None, Some((Archives, "p"))),
            (vec![("previous", "p"), ("next", "n")], None, Some((Pages, "n"))),
            (vec![("next", "n")], None, Some((Pages, "n"))),
            (vec![("previous", "p"), ("next", "n")], Some(Pages), Some((Pages, "n"))),
            (vec![("previous", "p")], Some(Pages), None),
            (vec![("previous", "p"), ("next", "n")], Some(Archives), Some((Archives, "p"))),
            (vec![("next", "n")], Some(Archives), None),
        ] {
            assert_eq!(links(&rels).older(walked), found, "{rels:?} {walked:?}");
        }
    }
}
