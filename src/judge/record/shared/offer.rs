//! What somebody offers to a merge.

use crate::news;
use std::borrow::Cow;
use tidegate_core::model::{Entry, FeedDocument, Incoming, LedgerEntry, Markup, Origin};
use tidegate_core::sync;

/// A version that somebody offers.
#[derive(Clone)]
pub(in crate::record) struct Offer<'a> {
    /// What it says of itself.
    pub(in crate::record) incoming: &'a Incoming,
    /// What it is.
    pub(in crate::record) body: OfferedBody<'a>,
    /// The id that it is published with where it comes from, if that is for ever.
    pub(in crate::record) published_id: Option<&'a str>,
    /// Where it comes from.
    pub(in crate::record) origin: Origin,
    /// Whether it stands in a document that shows what is current.
    pub(in crate::record) is_listed: bool,
    /// Whether the item's origin becomes this offer's origin, because its former source is no longer used, or this
    /// source made the item.
    pub(in crate::record) takes_over: bool,
}

impl Offer<'_> {
    /// Whether an item that left the ledger had this version already, so that it does not come back: it
    /// does where its publisher shows it as current again.
    pub(super) fn is_known_to(&self, left: &LedgerEntry) -> bool {
        let version = &self.incoming.version;
        let is_same = version.updates == left.updates && !version.deleted;
        let is_back = self.is_listed && is_same && left.standing.left_alive();
        !is_back && sync::is_subsumed(version, &left.version(()))
    }

    /// Who shares the item, in words.
    pub(super) fn describe_origin(&self) -> String {
        match &self.origin {
            Origin::Feed(feed) => format!("the feed {feed} has"),
            _ => "its publisher shares".to_owned(),
        }
    }
}

/// What an offered version is.
#[derive(Clone, Copy)]
pub(in crate::record) enum OfferedBody<'a> {
    /// An entry of a document.
    Entry(&'a FeedDocument<'a>, &'a Entry<'a>),
    /// An item of another feed of this gateway.
    Item(&'a Markup),
}

impl OfferedBody<'_> {
    pub(super) fn print(&self) -> u64 {
        match self {
            Self::Entry(_, entry) => news::hash_entry(entry),
            Self::Item(markup) => news::hash_markup(markup),
        }
    }

    pub(super) fn markup(&self) -> Markup {
        match self {
            Self::Entry(document, entry) => tidegate_format::parse::own(document, entry),
            Self::Item(markup) => (*markup).clone(),
        }
    }

    /// `None` if it cannot be read, which only a fault of this program can bring about.
    pub(super) fn entry(&self) -> Option<Cow<'_, Entry<'_>>> {
        match self {
            Self::Entry(_, entry) => Some(Cow::Borrowed(entry)),
            Self::Item(markup) => tidegate_format::parse::entry_again(markup).map(Cow::Owned),
        }
    }
}
