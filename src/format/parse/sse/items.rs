//! A feed file's items, in their order and with their places.

use super::extras::extras;
use super::sync::{family_of, shared, sync_of};
use super::sync091::{self, KeptConflict, converted};
use super::{ITEM_LIMIT, Payload, SseDialect, SseError, SseFault, WEIGHT_LIMIT};
use super::{Id, Tree};
use std::ops::Range;
use std::sync::Arc;
use tidegate_core::model::{Family, Shared, SyncExtras};
use tidegate_core::sync::Item091;
use tidegate_core::xml::ns::{ATOM, is_rss};
use tidegate_core::xml::strict::TreeError;

/// An SSE feed file.
#[derive(Debug)]
pub struct SseFeed<'a> {
    /// The document.
    pub tree: Tree<'a>,
    /// The family of its container.
    pub family: Family,
    /// The namespace of RSS's own elements, usually none (`""`).
    pub rss: String,
    /// The dialect of its first sync markup; where it has none, one that it declares.
    pub dialect: Option<SseDialect>,
    /// The element that the items stand in: `feed` or `channel`.
    pub container: Id,
    /// Its items.
    pub items: Vec<SseItem>,
}

/// An item of a feed file.
#[derive(Debug)]
pub struct SseItem {
    /// Its element.
    pub element: Id,
    /// Its place in the text.
    pub span: Range<usize>,
    /// The dialect of its `sx:sync`; `None` where it has none and takes no part in synchronization.
    pub dialect: Option<SseDialect>,
    /// What it shares: `None` without `sx:sync` or with one of SSE 0.91, an error where its
    /// `sx:sync` is invalid.
    pub shared: Option<Result<Shared<Payload>, SseError>>,
    /// The same for an `sx:sync` of SSE 0.91.
    pub shared_091: Option<Result<Item091<Payload, KeptConflict>, SseError>>,
    /// What its `sx:sync` of SSE 1.0 says beyond that; `None` where it is more than is kept.
    pub extras: Option<SyncExtras>,
}

impl SseItem {
    /// What it takes in memory, in bytes, about.
    fn weight(&self) -> usize {
        let new = self.shared.iter().flatten();
        let new = new.flat_map(|shared| shared.conflicts.iter().chain([&shared.winner]));
        let old = self.shared_091.iter().flatten();
        new.map(|version| version.data.weight()).sum::<usize>()
            + old.map(|item| item.data.weight()).sum::<usize>()
            + self.extras.as_ref().map_or(0, SyncExtras::size)
    }

    /// What it shares in SSE 1.0, converted where it has the markup of SSE 0.91; `None` where it takes
    /// no part in synchronization.
    pub fn any(&self) -> Option<Result<Shared<Payload>, SseError>> {
        let other = || Some(self.shared_091.clone()?.map(converted));
        self.shared.clone().or_else(other)
    }
}

impl SseFeed<'_> {
    /// What an item without `sx:sync` says.
    pub fn plain(&self, item: &SseItem) -> Option<Payload> {
        Payload::cut(&self.tree, self.family, item.element, None)
    }
}

/// Reads an SSE feed: Atom 1.0, RSS whose root is `rss`, or a collection as plain XML (FeedSync for
/// Collections), which is as one of RSS whose channel is its root.
///
/// An item with invalid sync markup does not cost the others theirs: its error stands with it
/// (READINGS 1, row 18).
pub fn read(text: &str) -> Result<SseFeed<'_>, SseError> {
    let tree = Tree::read(text).map_err(TreeError::map)?;
    let (root, local) = tree.name(0);
    let (family, rss) = match (root, local) {
        (ATOM, "feed") => (Family::Atom, String::new()),
        (namespace, "rss" | "collection") => (Family::Rss, namespace.to_owned()),
        (_, other) => {
            let what = format!("its root element is {other:?}");
            return Err(tree.fault(start(&tree, 0), SseFault::NotAFeed(what)));
        }
    };
    let mut rss = rss;
    let container = match family {
        Family::Atom => Some(0),
        Family::Rss if local == "collection" => Some(0),
        Family::Rss => {
            let mut children = tree.children(0).map(|(id, _)| id);
            children.find(|id| {
                let (namespace, local) = tree.name(*id);
                local == "channel" && (namespace == rss || is_rss(namespace))
            })
        }
    };
    let container = container
        .filter(|id| tree.element(*id).is_some_and(|element| element.inner.is_some()))
        .ok_or_else(|| {
            let what = "there is nothing in its feed or channel element".to_owned();
            tree.fault(start(&tree, 0), SseFault::NotAFeed(what))
        })?;
    if family == Family::Rss && container != 0 {
        rss = tree.name(container).0.to_owned();
    }
    let items = items(&tree, family, &rss, container)?;
    let dialect = items.iter().find_map(|item| item.dialect).or_else(|| {
        let around = [0, container].into_iter().filter_map(|id| tree.element(id));
        let mut declared = around.flat_map(|element| &element.declarations);
        declared.find_map(|declaration| SseDialect::of(&declaration.value))
    });
    Ok(SseFeed { tree, family, rss, dialect, container, items })
}

fn items(
    tree: &Tree<'_>,
    family: Family,
    rss: &str,
    container: Id,
) -> Result<Vec<SseItem>, SseError> {
    let mut items: Vec<SseItem> = Vec::new();
    let mut weight = 0_usize;
    for (id, element) in tree.children(container) {
        if family_of(tree, id, rss) != Some(family) {
            continue;
        }
        if items.len() >= ITEM_LIMIT {
            let fault = SseFault::TooMany { what: "items", limit: ITEM_LIMIT };
            return Err(tree.fault(element.span.start, fault));
        }
        let found = sync_of(tree, id);
        let said = found.as_ref().ok().copied().flatten();
        let extras = said.map_or_else(|| Some(SyncExtras::default()), |sync| extras(tree, sync));
        let mut shared = match found {
            Ok(sync) => sync.map(|sync| shared(tree, rss, id, sync)),
            Err(error) => Some(Err(error)),
        };
        if let (Some(Ok(shared)), Some(extras)) = (&mut shared, &extras)
            && !extras.is_empty()
        {
            shared.winner.data.extras = Some(Arc::new(extras.clone()));
        }
        items.push(SseItem {
            element: id,
            span: element.span.clone(),
            dialect: dialect(tree, id),
            shared,
            shared_091: sync091::read(tree, family, id).transpose(),
            extras,
        });
        // What entries inherit counts for each of them.
        weight = weight.saturating_add(items.last().map_or(0, SseItem::weight));
        if weight > WEIGHT_LIMIT {
            let what = "bytes in what its items say and inherit";
            let fault = SseFault::TooMany { what, limit: WEIGHT_LIMIT };
            return Err(tree.fault(element.span.start, fault));
        }
    }
    Ok(items)
}

fn dialect(tree: &Tree<'_>, item: Id) -> Option<SseDialect> {
    tree.children(item).find_map(|(id, _)| match tree.name(id) {
        (namespace, "sync") => SseDialect::of(namespace),
        _ => None,
    })
}

fn start(tree: &Tree<'_>, id: Id) -> usize {
    tree.element(id).map_or(0, |element| element.span.start)
}
