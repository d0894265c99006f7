//! Sync markup as a document has it: the `sx:sync` of its entries and its `sx:sharing` (SSE 1.0
//! section 2, FeedSync section 2, SSE 0.91 sections 2 and 5).
//!
//! Both are read from the tree that the entries are read from. An entry counts as a plain one where its
//! `sx:sync` is invalid, or where its tags or characters had to be repaired. That costs no other entry
//! its sync (READINGS 1, row 18).

#[cfg(test)]
mod tests;
mod version;

use super::dialect::FeedDialect;
use super::entry::{self, DocumentSource};
use super::{alone, markup_of};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tidegate_core::model::{
    EndpointId, Entry, EntrySync, Format, Incoming, Markup, Shared, Sharing, SyncExtras, SyncId,
    SyncMarkupError, Time, Warning,
};
use tidegate_core::xml::doc::{DocElement, Repair};
use tidegate_core::xml::ns::Ns;
use tidegate_core::xml::{split_name, trimmed};
use url::Url;
use version::{NO_HISTORY, fault, too_many};
pub(super) use version::{SyncResult, checked_id, lost_091, push_within, version_091};

/// What is wrong with the `sx:sync` of an entry that had to be repaired.
const REPAIRED: &str = "the item is not well-formed, so that what its sx:sync says is in doubt";
/// What is said of an entry whose sync markup is not valid, behind why.
const TAKEN_FOR_PLAIN: &str = "; the entry is taken for a plain one";

/// The most `sx:history` elements of one version of an item.
pub const UPDATE_LIMIT: usize = 1_000;
/// The most conflicts of an item.
pub const CONFLICT_LIMIT: usize = 100;
pub(super) const MOST_CONFLICTS: (usize, &str) = (CONFLICT_LIMIT, "conflicts in one item");

/// Reads the `sx:sync` of the entries of one document.
pub(super) struct SyncReader<'a, 'r> {
    source: DocumentSource<'r, 'a>,
    /// The place of the first entry with each sync id.
    first: HashMap<SyncId, usize>,
    repeated: HashMap<SyncId, SyncMarkupError>,
    /// Where entries begin that had to be repaired, in order.
    repaired: Vec<usize>,
    has_sync: bool,
    odd: OddIds,
    /// How many bytes conflicts and extras take.
    weight: usize,
    warnings: Vec<Warning>,
}

impl<'a, 'r> SyncReader<'a, 'r> {
    pub fn new(source: DocumentSource<'r, 'a>) -> Self {
        Self {
            source,
            first: HashMap::new(),
            repeated: HashMap::new(),
            repaired: Vec::new(),
            has_sync: false,
            odd: OddIds::default(),
            weight: 0,
            warnings: Vec::new(),
        }
    }

    /// What the `sx:sync` of an entry says; `None` where it has none. `is_sound`: its tags and
    /// characters are as XML wants them.
    pub fn read(
        &mut self,
        entry: DocElement<'_, 'a>,
        repairs: &[Repair],
        is_sound: bool,
    ) -> Option<EntrySync> {
        let at = entry.span().start;
        if !is_sound {
            self.repaired.push(at);
        }
        if !entry.children().any(is_sync) {
            return None;
        }
        self.has_sync = true;
        let weight = self.weight;
        match self.incoming(entry, repairs, is_sound) {
            Ok(incoming) => {
                self.note(&incoming, at);
                Some(EntrySync::Valid(Arc::new(incoming)))
            }
            Err(error) => {
                self.weight = weight;
                self.warn(error.at, format!("{}{TAKEN_FOR_PLAIN}", error.fault));
                Some(EntrySync::Invalid(Box::new(error)))
            }
        }
    }

    /// Takes note of ids, which may stand once in a document, and of what is odd.
    fn note(&mut self, incoming: &Incoming, at: usize) {
        self.odd.note(incoming, at);
        let id = incoming.id();
        if let Some(first) = self.first.insert(id.clone(), at) {
            let fault = format!(
                "the sync id {id} is that of the entry at byte {first} again; an id may stand once in \
                 a feed, so that it counts for none"
            );
            self.warn(at, fault.clone());
            let repeats = Some((id.clone(), first));
            let error = SyncMarkupError { at, fault, repeats };
            self.repeated.entry(id.clone()).or_insert(error);
        }
    }

    fn incoming(
        &mut self,
        element: DocElement<'_, 'a>,
        repairs: &[Repair],
        is_sound: bool,
    ) -> SyncResult<Incoming> {
        if !is_sound {
            return Err(fault(element, REPAIRED));
        }
        let (shared, sse091, extras) = match sync_of(element, Ns::Sx)? {
            Some(sync) => {
                let extras = version::extras(sync);
                if extras.is_none() {
                    let message = format!(
                        "its sx:sync has more than {} bytes that SSE does not know; they are not kept",
                        SyncExtras::LIMIT
                    );
                    self.warn(element.span().start, message);
                }
                let shared = version::read(element, sync, self.source.dialect)?;
                (shared, None, extras.unwrap_or_default())
            }
            None => {
                let read = version::read_091(element, self.source.dialect)?;
                let (shared, conflict) = read.ok_or_else(|| fault(element, NO_HISTORY))?;
                (shared, Some(conflict), SyncExtras::default())
            }
        };
        self.weigh(element, extras.size())?;
        let Shared { winner, conflicts } = shared;
        let mut read = Vec::with_capacity(conflicts.len());
        for version in conflicts {
            let markup = self.conflict(version.data, repairs)?;
            let context =
                markup.context.namespaces.iter().map(|(prefix, uri)| prefix.len() + uri.len());
            let inherited = [&markup.context.base, &markup.context.lang].into_iter().flatten();
            let weight = context.sum::<usize>() + inherited.map(String::len).sum::<usize>();
            self.weigh(element, markup.xml.len() + weight)?;
            read.push(version.with(markup));
        }
        Ok(Incoming { version: winner.with(()), conflicts: read, sse091, extras })
    }

    /// Reads one of the conflicts of an entry that has these repairs.
    fn conflict(&self, item: DocElement<'_, 'a>, repairs: &[Repair]) -> SyncResult<Markup> {
        let own = self.source.dialect;
        let dialect = dialect_of_item(item, own).unwrap_or(own);
        let context = item.context(self.source.invented);
        let span = item.span();
        let is_within = |repair: &&Repair| span.contains(&repair.range().start);
        let repairs: Vec<Repair> = repairs.iter().filter(is_within).copied().collect();
        let source = DocumentSource { dialect, ..self.source };
        let (entry, _) = entry::read(source, item, &repairs, context.into())
            .map_err(|why| fault(item, format!("an item in sx:conflicts cannot be read: {why}")))?;
        let markup = markup_of(dialect.format, &entry);
        Ok(if item.ns().is_sync_markup() { as_item(item, markup) } else { markup })
    }

    /// Counts some of what an entry has.
    fn weigh(&mut self, entry: DocElement<'_, '_>, bytes: usize) -> SyncResult<()> {
        self.weight = self.weight.saturating_add(bytes);
        if self.weight > self.source.limits.sync {
            let what = "bytes in the conflicts of all items and what they inherit";
            return Err(fault(entry, too_many(what, self.source.limits.sync)));
        }
        Ok(())
    }

    fn warn(&mut self, offset: usize, message: String) {
        if self.warnings.len() < self.source.limits.markup.warnings {
            self.warnings.push(Warning { offset, message });
        }
    }

    /// Gives up the sync of entries whose id stands in the document more than once, and of repaired
    /// ones, which may have lost it, where the document has sync markup: `has_sharing`, in its
    /// head. The warnings.
    pub fn finish(mut self, entries: &mut [Entry<'_>], has_sharing: bool) -> Vec<Warning> {
        let is_shared = self.has_sync || has_sharing;
        for entry in entries.iter_mut().filter(|_| is_shared) {
            let at = entry.span.start;
            let error = match &entry.sync {
                Some(EntrySync::Valid(incoming)) => self.repeated.get(incoming.id()).cloned(),
                Some(EntrySync::Invalid(_)) => None,
                None => self.repaired.binary_search(&at).is_ok().then(|| SyncMarkupError {
                    at,
                    fault: REPAIRED.to_owned(),
                    repeats: None,
                }),
            };
            if let Some(error) = error {
                entry.sync = Some(EntrySync::Invalid(Box::new(error)));
            }
        }
        self.warnings.extend(self.odd.warning());
        self.warnings
    }
}

/// Whether an element is an `sx:sync`, in any dialect.
pub(super) fn is_sync(element: DocElement<'_, '_>) -> bool {
    element.ns().is_sync_markup() && element.local() == "sync"
}

/// The one `sx:sync` of a namespace in an item; `None` where there is none.
fn sync_of<'t, 'a>(item: DocElement<'t, 'a>, ns: Ns) -> SyncResult<Option<DocElement<'t, 'a>>> {
    let mut found = children(item, ns, "sync");
    let first = found.next();
    match found.next() {
        Some(second) => Err(fault(second, "the item has more than one sx:sync")),
        None => Ok(first),
    }
}

/// The children of a namespace with a local name.
fn children<'t, 'a>(
    element: DocElement<'t, 'a>,
    ns: Ns,
    local: &'static str,
) -> impl Iterator<Item = DocElement<'t, 'a>> {
    element.children().filter(move |child| child.ns() == ns && child.local() == local)
}

/// Ids that are no Namespace Specific Strings (SSE 1.0 sections 2.1.1 and 2.4). They are taken all
/// the same, for they are compared as they stand.
#[derive(Default)]
struct OddIds {
    first: Option<(usize, String)>,
    seen: HashSet<String>,
}

/// The most of them that are told apart.
const TOLD_APART: usize = 1000;
/// The most characters of one that are shown.
const SHOWN: usize = 80;

impl OddIds {
    /// Takes note of the ids of an item that begins at the byte `at`.
    pub fn note(&mut self, incoming: &Incoming, at: usize) {
        let conflicts = incoming.conflicts.iter().map(|conflict| &conflict.history);
        let histories = conflicts.chain([&incoming.version.history]);
        let by = histories.flat_map(|history| history.iter()).filter_map(|u| u.stamp.by());
        let ids = by.map(EndpointId::as_str).chain([incoming.id().as_str()]);
        for id in ids.filter(|id| !is_nss(id)) {
            self.first.get_or_insert_with(|| (at, id.chars().take(SHOWN).collect()));
            if self.seen.len() < TOLD_APART && !self.seen.contains(id) {
                self.seen.insert(id.to_owned());
            }
        }
    }

    pub fn warning(self) -> Option<Warning> {
        let (offset, id) = self.first?;
        let others = match self.seen.len() {
            0 | 1 => String::new(),
            n => format!(", the first of {n}"),
        };
        let message = format!(
            "the id {id:?} of an item or an endpoint is no Namespace Specific String of RFC 2141, as \
             SSE wants it{others}; it is taken as it stands, and other programs may refuse it"
        );
        Some(Warning { offset, message })
    }
}

/// Whether a text has the syntax of a Namespace Specific String (RFC 2141 section 2.2).
fn is_nss(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    !bytes.is_empty()
        && bytes.iter().enumerate().all(|(at, byte)| match byte {
            b'%' => is_hex(at + 1) && is_hex(at + 2),
            byte => byte.is_ascii_alphanumeric() || b"()+,-.:=@;$_!*'/?#".contains(byte),
        })
}

/// How an element is read that stands among the conflicts of a document in `dialect`; `None` where
/// it is no item. It may be of the other family.
fn dialect_of_item(element: DocElement<'_, '_>, dialect: FeedDialect) -> Option<FeedDialect> {
    let root = element.ns();
    match element.local() {
        local if local == dialect.entry() && dialect.owns(root) => Some(dialect),
        "entry" if root == Ns::Atom => Some(FeedDialect { format: Format::Atom10, root }),
        "item" if matches!(root, Ns::None | Ns::Rss20) => {
            Some(FeedDialect { format: Format::Rss20, root })
        }
        _ => None,
    }
}

/// An `sx:conflict` of SSE 0.91 in which no item stands, as an item that says what stands in it.
/// Its element is called like that of the item around.
fn as_item(conflict: DocElement<'_, '_>, markup: Markup) -> Markup {
    let item = conflict.ancestors().find(|around| !around.ns().is_sync_markup());
    let Some(item) = item else { return markup };
    let (name, prefix) = (item.name(), split_name(item.name()).0);
    let inner = markup.slots.inner.and_then(|at| Some(markup.xml.get(at..)?.rsplit_once("</")?.0));
    let mut context = markup.context.clone();
    if let Some(uri) = item.uri().filter(|uri| !uri.is_empty())
        && !context.namespaces.iter().any(|(bound, _)| bound == prefix)
    {
        context.namespaces.push((prefix.to_owned(), uri.into_owned()));
        context.namespaces.sort_unstable();
    }
    let text = format!("<{name}>{}</{name}>", inner.unwrap_or_default());
    let entry = alone(markup.format, &text, &context);
    let format = markup.format;
    entry.map_or(markup, |entry| markup_of(format, &entry))
}

/// Reads the `sx:sharing` of a document at `url`, which is one of these elements: it stands in the
/// channel, or in the root, where that of the authors of SSE 0.91 stands (READINGS 2, row 11). Also
/// until when the feed is to be read.
pub(super) fn read_sharing(
    head: &[DocElement<'_, '_>],
    is_container: impl Fn(DocElement<'_, '_>) -> bool,
    url: Option<&Url>,
) -> Option<(Sharing, Option<Time>)> {
    let found = head.iter().copied().filter(|e| e.ns().is_sync_markup() && e.local() == "sharing");
    let is_within = |is_one: &dyn Fn(DocElement<'_, '_>) -> bool| {
        found.clone().find(|element| element.parent().is_some_and(is_one))
    };
    let element = is_within(&is_container).or_else(|| is_within(&|root| root.id == 0))?;
    let expires = element.attribute("expires");
    let sharing = Sharing { bounds: bounds(element), complete: complete(element, url) };
    Some((sharing, expires.and_then(|at| Time::parse_rfc3339(at.trim()).ok())))
}

/// Its `since` and `until`, as texts that can be compared. SSE 0.91 (section 2.1) writes dates,
/// whose letters are in no order; without its `since` the feed is there from the beginning.
fn bounds(sharing: DocElement<'_, '_>) -> Option<(String, String)> {
    let (since, until) = (sharing.attribute("since"), sharing.attribute("until")?);
    if sharing.ns() != Ns::Sx091 {
        return Some((since?.into_owned(), until.into_owned()));
    }
    let date = |text: &str| Time::parse_rfc2822(text).map(|time| time.to_string());
    let until = date(&until)?;
    match since.filter(|since| !since.trim().is_empty()) {
        None => Some((String::new(), until)),
        Some(since) => Some((date(&since)?, until)),
    }
}

/// Where the complete feed is, where it names one (section 2.2.1). A relative link needs the
/// document's `url`.
fn complete(sharing: DocElement<'_, '_>, url: Option<&Url>) -> Option<String> {
    let link = sharing.children().find_map(|related| {
        let is_complete = related.local() == "related"
            && related.attribute("type").map(trimmed).as_deref() == Some("complete");
        let link = related.attribute("link").filter(|_| is_complete)?;
        match url {
            Some(url) => url.join(link.trim()).ok(),
            None => Url::parse(link.trim()).ok(),
        }
    });
    link.map(bare).map(String::from)
}

/// A link as it is followed and kept: what a document says of credentials is neither.
pub fn bare(mut link: Url) -> Url {
    // Both fail only for addresses that cannot have any.
    let _ = link.set_username("");
    let _ = link.set_password(None);
    link.set_fragment(None);
    link
}
