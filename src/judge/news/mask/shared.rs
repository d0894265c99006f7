//! What the items of a feed have in common.

use super::MOST_REST;
use crate::news::spans::PlacedSpan;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::model::{FeedNoise, SharedSpan, Time};

/// A share of fewer items than this says nothing.
const LEAST_WITH_SPAN: usize = 4;

/// A place between words in which a span of an item changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Varied {
    path: String,
    before: String,
    after: String,
    /// Whether the item shows for the first time that it never rests.
    is_first: bool,
}

impl Varied {
    pub(super) fn new(path: &str, place: &PlacedSpan<'_>, is_first: bool) -> Self {
        let (before, after) = (place.before.clone(), place.after.clone());
        Self { path: path.to_owned(), before, after, is_first }
    }
}

/// Whether enough was seen of a place for it to hold for all items.
pub(super) fn is_shared(feed: &FeedNoise, path: &str, place: &PlacedSpan<'_>, now: Time) -> bool {
    feed.spans.iter().any(|span| {
        span.in_force()
            && now.since(span.last) <= MOST_REST
            && is_there(span, path, &place.before, &place.after)
    })
}

fn is_there(span: &SharedSpan, path: &str, before: &str, after: &str) -> bool {
    let same = |shared: &Option<String>, own: &str| shared.as_ref().is_none_or(|s| s == own);
    span.path == path && same(&span.before, before) && same(&span.after, after)
}

fn says_much(words: &str) -> bool {
    words.chars().any(char::is_alphabetic)
}

/// Counts what an item has shown: for the place that it is, or for one that has the same words on
/// one side of it.
pub fn vote(feed: &mut FeedNoise, varied: &Varied, now: Time) {
    let Varied { path, before, after, is_first } = varied;
    feed.spans.retain(|span| now.since(span.last) <= MOST_REST);
    if let Some(span) = feed.spans.iter_mut().find(|span| is_there(span, path, before, after)) {
        span.last = now;
        span.items = span.items.saturating_add(u32::from(*is_first));
        return;
    }
    if !is_first {
        return;
    }
    let similar = feed.spans.iter_mut().find(|span| {
        let same = |shared: &Option<String>, own: &str| shared.as_deref() == Some(own);
        let (first, last) = (same(&span.before, before), same(&span.after, after));
        let one_sided = (first && says_much(before)) || (last && says_much(after));
        span.path == *path && one_sided
    });
    match similar {
        Some(span) => {
            span.before.take_if(|shared| shared != before);
            span.after.take_if(|shared| shared != after);
            span.items = span.items.saturating_add(1);
            span.last = now;
        }
        None => add(feed, path, (Some(before), Some(after)), now),
    }
}

/// The words before and after a place, where they are the same in all items.
type Words<'a> = (Option<&'a str>, Option<&'a str>);

/// Adds a place; where there are too many, that of which least was seen makes room.
fn add(feed: &mut FeedNoise, path: &str, words: Words<'_>, now: Time) {
    if feed.spans.len() >= FeedNoise::SPAN_LIMIT {
        let weakest = feed.spans.iter().enumerate();
        let weakest = weakest.min_by_key(|(_, span)| (span.items, span.last));
        if let Some(at) = weakest.map(|(at, _)| at) {
            feed.spans.remove(at);
        }
    }
    feed.spans.push(SharedSpan {
        path: path.to_owned(),
        before: words.0.map(str::to_owned),
        after: words.1.map(str::to_owned),
        items: 1,
        since: now,
        last: now,
    });
}

/// Learns which places between words varied in most of `items` at once; says whether one has come
/// to hold for all items.
pub fn sweep_spans(
    feed: &mut FeedNoise,
    items_varied: &[&[Varied]],
    items: usize,
    now: Time,
) -> bool {
    let mut places: BTreeMap<(&str, Words<'_>), usize> = BTreeMap::new();
    for varied in items_varied {
        let of_item: BTreeSet<_> = varied.iter().flat_map(words).collect();
        for place in of_item {
            *places.entry(place).or_default() += 1;
        }
    }
    places.retain(|_, count| *count >= LEAST_WITH_SPAN && *count * 2 > items);
    let mut is_new = false;
    for (path, words) in places.keys() {
        // Words on both sides say more than those on one.
        let is_part = |(other, (before, after)): &(&str, Words<'_>)| {
            let both = before.is_some() && after.is_some();
            other == path && both && (*before == words.0 || *after == words.1)
        };
        let is_one_sided = words.0.is_none() || words.1.is_none();
        if is_one_sided && places.keys().any(is_part) {
            continue;
        }
        let there = feed.spans.iter_mut().find(|span| {
            span.path == *path && (span.before.as_deref(), span.after.as_deref()) == *words
        });
        match there {
            Some(span) => {
                let was = span.in_force();
                span.items = span.items.saturating_add(1);
                span.last = now;
                is_new |= span.in_force() && !was;
            }
            None => add(feed, path, *words, now),
        }
    }
    is_new
}

/// What a place may be known by in all items: the words on both sides of it, or those on one.
fn words(varied: &Varied) -> impl Iterator<Item = (&str, Words<'_>)> {
    let (path, before, after) = (varied.path.as_str(), &varied.before, &varied.after);
    let first = says_much(before).then_some((Some(before.as_str()), None));
    let last = says_much(after).then_some((None, Some(after.as_str())));
    let both = (Some(before.as_str()), Some(after.as_str()));
    std::iter::once(both).chain(first).chain(last).map(move |words| (path, words))
}
