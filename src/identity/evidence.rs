//! The second round: what stayed unmatched on both sides, by other evidence than the id.

use super::address::{day, hostless, plain_link, slug};
use super::{Matching, Native, Pair};
use crate::model::{Entry, FeedDocument, Known, Snapshot, Standing, Time};
use std::collections::HashMap;

/// Why an entry is a known item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Basis {
    /// The same native id.
    SameId,
    /// A native id that the item had before.
    FormerId,
    /// The same id but for scheme and host.
    SameAddress,
    /// The same link, borne by no other entry.
    SameLink,
    /// The same enclosure.
    SameEnclosure,
    /// The same title and the same date.
    SameTitleAndDate,
    /// The same title and the same last part of the address.
    SameTitleAndSlug,
    /// The same title and the same text.
    SameText,
    /// The same title in the same place.
    SameTitleAndPlace,
    /// The same last part of the address and the same date or place.
    SameSlug,
    /// The same date, borne by no other, in the same place.
    SameDateAndPlace,
}

impl Basis {
    /// Whether the item goes by another native id from now on.
    pub const fn is_rename(self) -> bool {
        !matches!(self, Self::SameId)
    }

    /// The evidence in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::SameId => "the same id",
            Self::FormerId => "an id that it had before",
            Self::SameAddress => "the same id but for scheme and host",
            Self::SameLink => "the same link",
            Self::SameEnclosure => "the same enclosure",
            Self::SameTitleAndDate => "the same title and date",
            Self::SameTitleAndSlug => "the same title and address name",
            Self::SameText => "the same title and text",
            Self::SameTitleAndPlace => "the same title in the same place",
            Self::SameSlug => "the same address name with the same date or place",
            Self::SameDateAndPlace => "the same date in the same place",
        }
    }
}

/// Both sides of a matching while it is made.
pub(super) struct Sides<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) document: &'a FeedDocument<'a>,
    pub(super) names: &'a [Native],
    entry_pair: Vec<Option<(usize, Basis)>>,
    known_pair: Vec<Option<usize>>,
    /// Position of each known item in the last document.
    place: Vec<Option<usize>>,
}

impl<'a> Sides<'a> {
    pub(super) fn new(
        snapshot: &'a Snapshot,
        document: &'a FeedDocument<'a>,
        names: &'a [Native],
    ) -> Self {
        let order: HashMap<&str, usize> =
            snapshot.order.iter().enumerate().map(|(at, id)| (id.as_str(), at)).collect();
        let place = snapshot.known.iter().map(|k| order.get(k.id.as_str()).copied()).collect();
        Self {
            snapshot,
            document,
            names,
            entry_pair: vec![None; document.entries.len()],
            known_pair: vec![None; snapshot.known.len()],
            place,
        }
    }

    pub(super) fn is_entry_free(&self, entry: usize) -> bool {
        matches!(self.entry_pair.get(entry), Some(None))
    }

    pub(super) fn is_known_free(&self, known: usize) -> bool {
        matches!(self.known_pair.get(known), Some(None))
    }

    pub(super) fn pair(&mut self, entry: usize, known: usize, basis: Basis) {
        if let (Some(of_entry), Some(of_known)) =
            (self.entry_pair.get_mut(entry), self.known_pair.get_mut(known))
        {
            *of_entry = Some((known, basis));
            *of_known = Some(entry);
        }
    }

    /// In how many of link, title and date an entry and an item agree: 0 to 3.
    pub(super) fn agreement(&self, entry: usize, known: usize) -> usize {
        let (Some(entry), Some(known)) =
            (self.document.entries.get(entry), self.snapshot.known.get(known))
        else {
            return 0;
        };
        let link = entry.link.as_deref().map(plain_link) == known.link.as_deref().map(plain_link);
        let title = entry.title.as_deref().unwrap_or_default() == known.title;
        let date = entry.published == known.published;
        usize::from(link) + usize::from(title) + usize::from(date)
    }

    /// Whether the nearest neighbour above or below that both documents have is the same.
    fn same_place(&self, entry: usize, known: usize) -> bool {
        let Some(Some(place)) = self.place.get(known).copied() else { return false };
        let index: HashMap<&str, usize> =
            self.snapshot.known.iter().enumerate().map(|(at, k)| (k.id.as_str(), at)).collect();
        let paired_at = |at: usize| {
            let id = self.snapshot.order.get(at)?;
            index.get(id.as_str()).copied().filter(|k| !self.is_known_free(*k))
        };
        let known_of = |at: usize| self.entry_pair.get(at).copied().flatten().map(|(k, _)| k);
        let above_old = (0..place).rev().find_map(paired_at);
        let above_new = (0..entry).rev().find_map(known_of);
        let below_old = (place + 1..self.snapshot.order.len()).find_map(paired_at);
        let below_new = (entry + 1..self.entry_pair.len()).find_map(known_of);
        (above_old.is_some() && above_old == above_new)
            || (below_old.is_some() && below_old == below_new)
    }

    pub(super) fn into_matching(self) -> Matching {
        let mut matching = Matching::default();
        for (entry, pair) in self.entry_pair.iter().enumerate() {
            match pair {
                Some((known, basis)) => {
                    matching.pairs.push(Pair { entry, known: *known, basis: *basis });
                }
                None => matching.fresh.push(entry),
            }
        }
        let mut missing: Vec<usize> = (0..self.known_pair.len())
            .filter(|at| {
                self.is_known_free(*at)
                    && self.snapshot.known.get(*at).is_some_and(|k| k.standing == Standing::Current)
            })
            .collect();
        missing.sort_by_key(|at| {
            let place = self.place.get(*at).copied().flatten();
            (place.is_none(), place)
        });
        matching.missing = missing;
        matching
    }
}

/// A rule of the second round: what must be equal on both sides, and what else must hold.
struct Rule {
    basis: Basis,
    /// Whether retired and deleted items may be found as well as missing ones.
    reaches_back: bool,
    /// Whether several that share the value are paired in their order where both sides have
    /// equally many; otherwise they decide nothing.
    in_order: bool,
    entry: fn(&Entry<'_>, &Native) -> Option<String>,
    known: fn(&Known) -> Option<String>,
    also: fn(&Sides<'_>, usize, usize) -> bool,
}

/// Titles shorter than this say too little to know an item by.
const TELLING_TITLE: usize = 8;

/// Words in a part of an address that together name one post.
const TELLING_WORDS: usize = 3;

fn telling(title: &str) -> Option<String> {
    let title = title.trim();
    (title.chars().count() >= TELLING_TITLE).then(|| title.to_lowercase())
}

fn entry_title(entry: &Entry<'_>, _: &Native) -> Option<String> {
    telling(entry.title.as_deref()?)
}

fn known_title(known: &Known) -> Option<String> {
    telling(&known.title)
}

fn entry_slug(entry: &Entry<'_>, native: &Native) -> Option<String> {
    slug(&native.shown).or_else(|| slug(entry.link.as_deref()?))
}

fn known_slug(known: &Known) -> Option<String> {
    slug(&known.native_shown).or_else(|| slug(known.link.as_deref()?))
}

/// Strongest first.
const RULES: [Rule; 9] = [
    Rule {
        basis: Basis::SameAddress,
        reaches_back: true,
        in_order: false,
        entry: |_, native| hostless(&native.shown),
        known: |known| hostless(&known.native_shown),
        also: |sides, entry, known| sides.differ_in_id(entry, known),
    },
    Rule {
        basis: Basis::SameTitleAndDate,
        reaches_back: false,
        in_order: false,
        entry: |entry, native| {
            Some(format!("{} {}", entry.published?, entry_title(entry, native)?))
        },
        known: |known| Some(format!("{} {}", known.published?, known_title(known)?)),
        also: |_, _, _| true,
    },
    Rule {
        basis: Basis::SameLink,
        reaches_back: false,
        in_order: false,
        entry: |entry, _| entry.link.as_deref().map(plain_link),
        known: |known| known.link.as_deref().map(plain_link),
        also: |sides, entry, known| {
            sides.is_near(entry, known)
                && sides.is_own(
                    entry,
                    known,
                    |e| e.link.map(plain_link),
                    |k| k.link.map(plain_link),
                )
        },
    },
    Rule {
        basis: Basis::SameEnclosure,
        reaches_back: false,
        in_order: false,
        entry: |entry, _| entry.enclosures.first().map(|e| plain_link(e)),
        known: |known| known.enclosure.as_deref().map(plain_link),
        also: |sides, entry, known| sides.is_near(entry, known),
    },
    Rule {
        basis: Basis::SameTitleAndSlug,
        reaches_back: false,
        in_order: false,
        entry: |e, n| Some(format!("{} {}", entry_slug(e, n)?, entry_title(e, n)?)),
        known: |known| Some(format!("{} {}", known_slug(known)?, known_title(known)?)),
        also: |_, _, _| true,
    },
    Rule {
        basis: Basis::SameText,
        reaches_back: false,
        in_order: false,
        entry: entry_title,
        known: known_title,
        also: |sides, entry, known| sides.is_near(entry, known) && same_text(sides, entry, known),
    },
    Rule {
        basis: Basis::SameTitleAndPlace,
        reaches_back: false,
        in_order: false,
        entry: entry_title,
        known: known_title,
        also: |sides, entry, known| sides.same_place(entry, known),
    },
    Rule {
        basis: Basis::SameSlug,
        reaches_back: false,
        in_order: false,
        entry: entry_slug,
        known: known_slug,
        also: |sides, entry, known| {
            (sides.has_telling_slug(entry)
                || sides.same_date(entry, known)
                || sides.undated_in_place(entry, known))
                && sides.is_own(entry, known, |e| e.slug(), |k| k.slug())
        },
    },
    Rule {
        basis: Basis::SameDateAndPlace,
        reaches_back: false,
        in_order: true,
        entry: |entry, native| said_day(entry.published, &native.shown),
        known: |known| said_day(known.published, &known.native_shown),
        also: |sides, entry, known| {
            sides.same_place(entry, known) && sides.day_was_theirs(entry, known)
        },
    },
];

/// The date, or the day that the id is made of.
fn said_day(published: Option<Time>, native: &str) -> Option<String> {
    published.map(|p| p.to_string()).or_else(|| day(native))
}

/// A side of a possible pair, as the rules that want a value to be an entry's own see it.
#[derive(Clone, Copy)]
struct Face<'a> {
    native: &'a str,
    link: Option<&'a str>,
}

impl Face<'_> {
    fn slug(self) -> Option<String> {
        slug(self.native).or_else(|| slug(self.link?))
    }
}

/// A post that goes by another id was published about when it was before, in days.
const NEAR_DAYS: u64 = 14;

impl Sides<'_> {
    /// Whether the item may have been replaced by the entry: it stands in the same place, or bears
    /// about the same date. Where neither side is dated, nothing speaks against it.
    fn is_near(&self, entry: usize, known: usize) -> bool {
        let new = self.document.entries.get(entry).and_then(|e| e.published.or(e.updated));
        let old = self.snapshot.known.get(known).and_then(|k| k.published.or(k.updated));
        let near = match (new, old) {
            (Some(new), Some(old)) => {
                new.since(old).max(old.since(new)).as_secs() <= NEAR_DAYS * 86_400
            }
            (None, None) => true,
            _ => false,
        };
        near || self.same_place(entry, known)
    }

    /// Whether no other entry of the document, and no other item of the last one, bears the value.
    fn is_own(
        &self,
        entry: usize,
        known: usize,
        of_entry: fn(Face<'_>) -> Option<String>,
        of_known: fn(Face<'_>) -> Option<String>,
    ) -> bool {
        let entry_value = |at: usize| {
            let e = self.document.entries.get(at)?;
            of_entry(Face { native: &self.names.get(at)?.shown, link: e.link.as_deref() })
        };
        let known_value = |at: usize| {
            let k = self.snapshot.known.get(at)?;
            of_known(Face { native: &k.native_shown, link: k.link.as_deref() })
        };
        let Some(value) = entry_value(entry) else { return false };
        let others = |at: &usize| *at != known && self.place.get(*at).is_some_and(Option::is_some);
        !(0..self.document.entries.len())
            .any(|at| at != entry && entry_value(at).as_ref() == Some(&value))
            && !(0..self.snapshot.known.len())
                .filter(others)
                .any(|at| known_value(at).as_ref() == Some(&value))
    }

    /// Whether the last part of the address has so many words that no two posts share it by chance.
    fn has_telling_slug(&self, entry: usize) -> bool {
        let (Some(e), Some(native)) = (self.document.entries.get(entry), self.names.get(entry))
        else {
            return false;
        };
        entry_slug(e, native).is_some_and(|s| s.split(['-', '_', '+']).count() >= TELLING_WORDS)
    }

    /// Whether they bear different ids: what bears the same and was told apart in the first round
    /// stays apart.
    fn differ_in_id(&self, entry: usize, known: usize) -> bool {
        let new = self.names.get(entry).map(|native| &native.shown);
        new != self.snapshot.known.get(known).map(|known| &known.native_shown)
    }

    fn undated_in_place(&self, entry: usize, known: usize) -> bool {
        let new = self.document.entries.get(entry).and_then(|e| e.published.or(e.updated));
        let old = self.snapshot.known.get(known).and_then(|k| k.published.or(k.updated));
        new.is_none() && old.is_none() && self.same_place(entry, known)
    }

    /// Whether as many entries of the document bear the day as items of the last one did, all of
    /// them in question: where others bear it too, a day says little.
    fn day_was_theirs(&self, entry: usize, known: usize) -> bool {
        let entry_day = |at: usize| {
            let e = self.document.entries.get(at)?;
            said_day(e.published, &self.names.get(at)?.shown)
        };
        let known_day = |at: usize| {
            let k = self.snapshot.known.get(at)?;
            said_day(k.published, &k.native_shown)
        };
        let day = entry_day(entry);
        // What this rule paired a moment ago was in question too.
        let open_entry = |at: usize| match self.entry_pair.get(at) {
            Some(Some((_, basis))) => *basis == Basis::SameDateAndPlace,
            _ => true,
        };
        let open_known = |at: usize| match self.known_pair.get(at) {
            Some(Some(entry)) => open_entry(*entry),
            _ => true,
        };
        let there = |at: usize| self.place.get(at).is_some_and(Option::is_some);
        day == known_day(known)
            && (0..self.document.entries.len()).filter(|at| entry_day(*at) == day).all(open_entry)
            && (0..self.snapshot.known.len())
                .filter(|at| there(*at) && known_day(*at) == day)
                .all(open_known)
    }

    fn same_date(&self, entry: usize, known: usize) -> bool {
        let entry = self.document.entries.get(entry).and_then(|e| e.published);
        let known = self.snapshot.known.get(known).and_then(|k| k.published);
        entry.is_some() && entry == known
    }
}

/// Whether an element with text of the entry (its description, summary or content) has the
/// same fingerprint as the item's.
fn same_text(sides: &Sides<'_>, entry: usize, known: usize) -> bool {
    let (Some(entry), Some(known)) =
        (sides.document.entries.get(entry), sides.snapshot.known.get(known))
    else {
        return false;
    };
    crate::diff::text_prints(entry).iter().any(|print| known.prints.contains(print))
}

/// Pairs what stayed unmatched, rule by rule. A value that stands more than once on one side
/// decides nothing.
pub(super) fn second_round(sides: &mut Sides<'_>) {
    if sides.entry_pair.iter().all(Option::is_some) {
        return;
    }
    for rule in &RULES {
        let mut found: HashMap<String, (Vec<usize>, Vec<usize>)> = HashMap::new();
        for (at, entry) in sides.document.entries.iter().enumerate() {
            if let (true, Some(native)) = (sides.is_entry_free(at), sides.names.get(at))
                && let Some(value) = (rule.entry)(entry, native)
            {
                found.entry(value).or_default().0.push(at);
            }
        }
        if found.is_empty() {
            continue;
        }
        for (at, known) in sides.snapshot.known.iter().enumerate() {
            let reachable = rule.reaches_back || known.standing == Standing::Current;
            if reachable
                && sides.is_known_free(at)
                && let Some(value) = (rule.known)(known)
                && let Some(both) = found.get_mut(&value)
            {
                both.1.push(at);
            }
        }
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for (entries, mut items) in found.into_values() {
            if entries.len() == items.len() && (entries.len() == 1 || rule.in_order) {
                items.sort_by_key(|at| sides.place.get(*at).copied().flatten());
                pairs.extend(entries.into_iter().zip(items));
            }
        }
        pairs.sort_unstable();
        for (entry, known) in pairs {
            if (rule.also)(sides, entry, known) {
                sides.pair(entry, known, rule.basis);
            }
        }
    }
}
