//! What the items of a feed have in common.

use super::{MOST_REST, ROW_GAP};
use crate::diff::noise::{is_core_text, local_name};
use crate::diff::path_print;
use crate::diff::portrait::Portrait;
use crate::diff::spans::Placed;
use crate::model::{FeedNoise, SharedField, SharedSpan, Time};
use std::collections::{BTreeMap, BTreeSet};

/// A share of fewer items than this says nothing.
const LEAST_ITEMS: usize = 4;

/// A place between words whose span never rests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learned {
    path: String,
    before: String,
    after: String,
    stamped: bool,
    /// Whether it is the first time that the item shows it.
    is_new: bool,
}

impl Learned {
    pub(super) fn new(path: &str, place: &Placed<'_>, stamped: bool, is_new: bool) -> Self {
        Self {
            path: path.to_owned(),
            before: place.before.clone(),
            after: place.after.clone(),
            stamped,
            is_new,
        }
    }
}

/// Whether enough items have shown that a span in this place never rests.
pub(super) fn is_shared(
    feed: &FeedNoise,
    path: &str,
    place: &Placed<'_>,
    is_stamped: bool,
    now: Time,
) -> bool {
    feed.spans.iter().any(|span| {
        span.items >= FeedNoise::ITEMS
            && (span.stamped || !is_stamped)
            && now.since(span.last) <= MOST_REST
            && is_there(span, path, &place.before, &place.after)
    })
}

fn is_there(span: &SharedSpan, path: &str, before: &str, after: &str) -> bool {
    let same = |shared: &Option<String>, own: &str| shared.as_ref().is_none_or(|s| s == own);
    span.path == path && same(&span.before, before) && same(&span.after, after)
}

/// Counts what an item has shown: for the place that it is, or for one that has the same words on
/// one side of it.
pub fn vote(feed: &mut FeedNoise, learned: &Learned, now: Time) {
    let Learned { path, before, after, stamped, is_new } = learned;
    feed.spans.retain(|span| now.since(span.last) <= MOST_REST);
    let there = feed.spans.iter_mut().find(|span| is_there(span, path, before, after));
    if let Some(span) = there {
        span.last = now;
        span.items = span.items.saturating_add(u32::from(*is_new));
        span.stamped |= stamped;
        return;
    }
    if !is_new {
        return;
    }
    let says_much = |words: &str| words.chars().any(char::is_alphabetic);
    let similar = feed.spans.iter_mut().find(|span| {
        let same = |shared: &Option<String>, own: &str| shared.as_deref() == Some(own);
        let (first, last) = (same(&span.before, before), same(&span.after, after));
        let one_sided = (first && says_much(before)) || (last && says_much(after));
        span.path == *path && one_sided
    });
    if let Some(span) = similar {
        span.before.take_if(|shared| shared != before);
        span.after.take_if(|shared| shared != after);
        span.items = span.items.saturating_add(1);
        span.stamped |= stamped;
        span.last = now;
        return;
    }
    if feed.spans.len() >= FeedNoise::SPAN_LIMIT {
        let weakest = feed.spans.iter().enumerate();
        let weakest = weakest.min_by_key(|(_, span)| (span.items, span.last)).map(|(at, _)| at);
        if let Some(at) = weakest {
            feed.spans.remove(at);
        }
    }
    feed.spans.push(SharedSpan {
        path: path.clone(),
        before: Some(before.clone()),
        after: Some(after.clone()),
        items: 1,
        stamped: *stamped,
        since: now,
        last: now,
    });
}

/// The fields that changed alone, over all items of a document.
#[derive(Debug, Clone, Default)]
pub struct Swept {
    fields: BTreeMap<String, (usize, u64)>,
}

impl Swept {
    /// Counts an item of which one field changed and nothing else.
    pub fn add(&mut self, portrait: &Portrait<'_>, changed: &BTreeSet<u64>) {
        let (Some(path), 1) = (changed.first(), changed.len()) else { return };
        let mut seen = portrait.seen.iter().filter(|seen| seen.print.0 == *path).peekable();
        let Some(name) = seen.peek().map(|seen| seen.path) else { return };
        if is_the_item(name) {
            return;
        }
        let (items, digest) = self.fields.entry(name.to_owned()).or_default();
        *items += 1;
        *digest = seen.fold(*digest, |digest, seen| digest.wrapping_add(seen.print.1));
    }
}

/// Whether a field is what the item is about: its text or where it leads. Such a field is never
/// taken for noise as a whole.
fn is_the_item(path: &str) -> bool {
    let name = local_name(path);
    is_core_text(name) || ["link", "enclosure"].iter().any(|own| name.starts_with(own))
}

/// Learns which whole fields changed on most of `items` at once.
pub fn sweep(feed: &mut FeedNoise, swept: &Swept, items: usize, now: Time) {
    feed.fields.retain(|field| {
        let is_volatile = field.documents >= FeedNoise::DOCUMENTS;
        now.since(field.last) <= if is_volatile { MOST_REST } else { ROW_GAP }
    });
    for (path, (changed, digest)) in &swept.fields {
        let most = *changed >= LEAST_ITEMS && changed * 2 > items;
        let at = feed.fields.iter().position(|field| field.path == *path);
        match (at.and_then(|at| feed.fields.get_mut(at)), most) {
            (Some(field), true) if field.digest != *digest => {
                field.documents = field.documents.saturating_add(1);
                field.digest = *digest;
                field.last = now;
            }
            (Some(field), _) if field.documents >= FeedNoise::DOCUMENTS => field.last = now,
            (Some(field), false) => field.documents = 0,
            (None, true) => feed.fields.push(SharedField {
                path: path.clone(),
                digest: *digest,
                documents: 1,
                since: now,
                last: now,
            }),
            _ => {}
        }
    }
    feed.fields.retain(|field| field.documents > 0);
    feed.fields.sort_by_key(|field| std::cmp::Reverse(field.documents));
    feed.fields.truncate(FeedNoise::FIELD_LIMIT);
}

/// The fingerprints of the paths of fields that are volatile in the feed.
pub fn volatile(feed: &FeedNoise) -> BTreeSet<u64> {
    let fields = feed.fields.iter().filter(|field| field.documents >= FeedNoise::DOCUMENTS);
    fields.map(|field| path_print(&field.path)).collect()
}
