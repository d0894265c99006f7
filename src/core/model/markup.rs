//! The publisher's own bytes, kept so that they can stand on their own.

use super::{EndpointId, Entry, Field, Format, ItemStatus, Shared, SyncExtras, Tick, Time};
use crate::xml::doc::{Doc, DocElement, NodeId};
use crate::xml::tag;
use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// What an element inherits from the elements around it and must bring along when it is cut out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Context {
    /// Namespace declarations as (prefix, namespace URI); the default namespace has prefix `""`.
    /// For an entry: only those it uses and does not declare itself, in order of prefix.
    pub namespaces: Vec<(String, String)>,
    /// The `xml:base` in scope, made absolute where that was possible.
    pub base: Option<String>,
    /// The `xml:lang` in scope.
    pub lang: Option<String>,
}

/// Places in the text of an entry where the gateway splices; byte offsets into [`Markup::xml`].
///
/// All zero or `None` for JSON Feed items, which are rendered from their values.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Slots {
    /// Directly behind the name of the root element, where attributes can be added.
    pub attributes: usize,
    /// Directly behind the root's start tag, where children can be added; `None` where the root
    /// is written as an empty-element tag.
    pub inner: Option<usize>,
    /// The content of the element that bears the native id (`atom:id`, `guid`), without its tags.
    /// `None` where the entry has no such element; never set for RSS 1.0, whose id is
    /// an attribute.
    pub id: Option<Range<usize>>,
    /// The whole element around [`Slots::id`], tags included.
    pub id_element: Option<Range<usize>>,
    /// Whether it is known that no reference in it needs a base, so that none is looked for.
    pub is_absolute: bool,
}

/// What must be known of an entry to speak of it without parsing it: plain text, no markup.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Card {
    /// The title as plain text, cut to [`Card::TEXT_LIMIT`] bytes.
    pub title: String,
    /// The absolute address of the entry's page.
    pub link: Option<String>,
    /// The name of its author.
    pub author: Option<String>,
    /// When the publisher says that it was published.
    pub published: Option<Time>,
    /// When the publisher says that it was last updated.
    pub updated: Option<Time>,
}

impl Card {
    /// The longest text kept in a card, in bytes.
    pub const TEXT_LIMIT: usize = 1024;
}

/// An entry that stands alone: the publisher's bytes, decoded, with what they inherit.
///
/// The bytes are those of the document but for repairs that `parse` makes, all needed to republish
/// safely: the upstream's `sx:*` elements are taken out, references to HTML entities that XML does
/// not know are written as numbers, characters that XML forbids are dropped, and what no XML
/// processor would read (a bare `&`, attributes without quotes, tags that do not match) is written
/// so that all do. An empty-element tag of the id is written as a pair of tags.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Markup {
    /// The format of the document that the entry came from.
    pub format: Format,
    /// The element, from its `<` to its last `>`; for JSON Feed the item object.
    pub xml: String,
    /// What it inherits.
    pub context: Context,
    /// Where to splice.
    pub slots: Slots,
    /// What to say of it.
    pub card: Card,
}

impl Markup {
    /// The namespace of its element; empty where that has none, and for an item of JSON Feed.
    pub fn namespace(&self) -> Cow<'_, str> {
        let (tag, attributes) =
            self.xml.split_at_checked(self.slots.attributes).unwrap_or_default();
        let prefix = tag::prefix_of(tag::name_before(tag)).trim_end_matches(':');
        let inherited = || {
            let bound = self.context.namespaces.iter().find(|(bound, _)| bound == prefix);
            bound.map(|(_, uri)| uri.as_str().into())
        };
        tag::declared(attributes, prefix).or_else(inherited).unwrap_or_default()
    }
}

/// Places in a [`Skeleton`] where the gateway splices; byte offsets into its text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct SkeletonSlots {
    /// Directly behind the root element's name, where namespace declarations can be added.
    pub root_attributes: usize,
    /// The value of the root's `version` attribute, without quotes (RSS).
    pub version: Option<Range<usize>>,
    /// Where the feed's own elements end and its entries begin: links, `sx:sharing` and the
    /// entries go here, in this order.
    pub entries: usize,
    /// The content of the feed's `updated` or `lastBuildDate`, without its tags.
    pub updated: Option<Range<usize>>,
    /// The content of the Atom feed's `id`, without its tags.
    pub id: Option<Range<usize>>,
}

/// The document around its entries, decoded: prolog, feed element and feed-level elements.
///
/// The upstream's `self`, `hub`, SUP and archive and paging links, its `sx:sharing`, `fh:*`,
/// tombstones and RSS `cloud` are taken out already; the XML declaration says UTF-8 or is absent,
/// and a `DOCTYPE` is taken out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Skeleton {
    /// The format of the document.
    pub format: Format,
    pub text: String,
    /// Where to splice.
    pub slots: SkeletonSlots,
    /// All namespaces, base and language in scope where the entries stand.
    pub context: Context,
    /// The feed's title as plain text.
    pub title: String,
    /// The absolute address of the site.
    pub link: Option<String>,
}

// The canonical projection of an entry: all that a reader would see of it, read when it is first
// asked for.
//
// Most entries of a document are as they were in the last one, so that nobody asks.

/// Reads the fields of an entry from the tree of its document.
pub type ReadFields = fn(DocElement<'_, '_>, Format) -> Vec<Field<'static>>;

/// The fields of an entry, or where they are.
#[derive(Debug, Clone)]
pub enum Projection<'a> {
    Read(Vec<Field<'a>>),
    InDocument {
        doc: Arc<Doc<'a>>,
        entry: NodeId,
        format: Format,
        read: ReadFields,
        known: OnceLock<Vec<Field<'static>>>,
    },
}

impl<'a> Projection<'a> {
    /// Those of an element of a document.
    pub const fn in_document(
        doc: Arc<Doc<'a>>,
        entry: NodeId,
        format: Format,
        read: ReadFields,
    ) -> Self {
        Self::InDocument { doc, entry, format, read, known: OnceLock::new() }
    }

    /// The element that they are read from, where it is still there.
    pub fn element(&self) -> Option<DocElement<'_, 'a>> {
        match self {
            Self::Read(_) => None,
            Self::InDocument { doc, entry, .. } => doc.element(*entry),
        }
    }

    /// The fields, in document order.
    pub fn fields(&self) -> &[Field<'_>] {
        match self {
            Self::Read(fields) => fields,
            Self::InDocument { format, read, known, .. } => known.get_or_init(|| {
                self.element().map(|entry| read(entry, *format)).unwrap_or_default()
            }),
        }
    }
}

impl Default for Projection<'_> {
    fn default() -> Self {
        Self::Read(Vec::new())
    }
}

impl<'a> From<Vec<Field<'a>>> for Projection<'a> {
    fn from(fields: Vec<Field<'a>>) -> Self {
        Self::Read(fields)
    }
}

impl PartialEq for Projection<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.fields() == other.fields()
    }
}

impl Eq for Projection<'_> {}

impl Serialize for Projection<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.fields().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Projection<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

impl Entry<'_> {
    /// The canonical projection, in document order, dates included (the comparison leaves them
    /// out).
    pub fn fields(&self) -> &[Field<'_>] {
        self.projection.fields()
    }
}

/// An item with its bytes, as views need it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The current version, with the newest bytes (for a tombstone: the last ones), and conflicts.
    pub shared: Shared<Markup>,
    /// The id it is published with.
    pub published_id: String,
    /// The tick of the current version.
    pub tick: Tick,
    /// What it is to its upstream.
    pub standing: ItemStatus,
    /// As [`super::LedgerEntry::sse091`].
    pub sse091: Option<bool>,
    /// As [`super::LedgerEntry::extras`].
    pub extras: Option<Box<SyncExtras>>,
    /// The render revision since which it is shown as it is ([`super::LedgerEntry::touched`]).
    pub touched: u64,
}

impl Item {
    /// Whether it was discarded.
    pub const fn is_discarded(&self) -> bool {
        matches!(self.standing, ItemStatus::Discarded { .. })
    }

    /// The endpoint that made the current version, where it is known.
    pub const fn by(&self) -> Option<&EndpointId> {
        self.shared.winner.history.topmost().stamp.by()
    }
}
