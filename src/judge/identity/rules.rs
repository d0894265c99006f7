//! The second round: what stayed unmatched on both sides, by two independent kinds of sign.

use super::evidence::Sides;
use super::features::{
    BEARERS_LIMIT, Bearers, Feature, FeatureIndex, long_texts, of_entry, telling_texts,
};
use super::group::pair_group;
use super::signs::{AddressSign, Basis, Signs};
use super::wording::is_reworded;
use super::{dates, features, sequence};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;
use tidegate_core::model::{ItemStatus, Without};
use tidegate_core::xml::plain_address::{day, plain_link};

/// The names of the rules: the kinds of sign, then what many entries say together.
const RULES: [&str; 8] =
    ["address", "title", "date", "text", "sound", "wording", "sequence", "dates"];

/// Kinds of sign that make a rename.
const ENOUGH_KINDS: usize = 2;
/// Words in the last part of an address that together name one post.
const TELLING_WORDS: usize = 3;
/// Posts whose titles and texts are the same are one where they are nearer than that, or the text is
/// a long one: a daily column has its title and a line about itself.
const ANOTHER_DAY: Duration = Duration::from_secs(20 * 3600);
/// Posts whose titles and links are the same are one where they are not further apart.
const NEAR: Duration = Duration::from_secs(14 * 24 * 3600);

/// The names of the rules, in their order.
pub fn rule_names() -> impl Iterator<Item = &'static str> {
    RULES.into_iter()
}

/// Pairs what stayed unmatched.
pub(super) fn second_round(sides: &mut Sides<'_>, without: &Without) {
    if !sides.is_settled() {
        by_signs(sides, without);
    }
    if !sides.is_settled() && !without.has("sequence") {
        sequence::same_sequence(sides);
    }
    if !sides.is_settled() && !without.has("dates") {
        dates::same_dates(sides);
    }
}

/// Entries, and items, that share a native id count as one: as a group, by its first member.
struct Groups {
    /// The unmatched members of each group.
    entries: HashMap<usize, Vec<usize>>,
    items: HashMap<usize, Vec<usize>>,
    features: FeatureIndex,
}

impl Groups {
    fn new(sides: &Sides<'_>) -> Self {
        let mut groups =
            Self { entries: HashMap::new(), items: HashMap::new(), features: Default::default() };
        let matched = groups.add_free_entries(sides);
        let known = &sides.snapshot.known;
        let mut first: HashMap<&str, usize> = HashMap::new();
        let items = known.iter().enumerate();
        let items: Vec<usize> =
            items.map(|(at, known)| *first.entry(&known.native_shown).or_insert(at)).collect();
        for (at, group) in items.iter().enumerate().filter(|(at, _)| sides.is_known_free(*at)) {
            groups.items.entry(*group).or_default().push(at);
        }
        groups.add_items(sides, &items, true);
        // Where no item that may be paired bears what a free entry bears, nobody else matters.
        if groups.features.have_items() {
            groups.add_matched_entries(sides, matched);
            groups.add_items(sides, &items, false);
        }
        groups
    }

    /// Adds the entries that are free; the others by group.
    fn add_free_entries(&mut self, sides: &Sides<'_>) -> Vec<(usize, usize)> {
        let mut first: HashMap<&str, usize> = HashMap::new();
        let mut matched = Vec::new();
        for (at, (entry, native)) in sides.document.entries.iter().zip(sides.names).enumerate() {
            if sides.is_copy(at) {
                continue;
            }
            let group = *first.entry(&native.shown).or_insert(at);
            if sides.is_entry_free(at) {
                self.entries.entry(group).or_default().push(at);
                self.features.add_entry(group, of_entry(entry, native, true), true);
            } else {
                matched.push((group, at));
            }
        }
        matched
    }

    /// Adds entries that are matched already, by group. Their texts are those of their items.
    fn add_matched_entries(&mut self, sides: &Sides<'_>, matched: Vec<(usize, usize)>) {
        for (group, at) in matched {
            let entry = sides.document.entries.get(at).zip(sides.names.get(at));
            let features = entry.map(|(entry, native)| of_entry(entry, native, false));
            self.features.add_entry(group, features.unwrap_or_default(), false);
        }
    }

    /// Adds the items of the groups that may be paired, or those of the others; `groups` has that of each item.
    fn add_items(&mut self, sides: &Sides<'_>, groups: &[usize], is_pairable: bool) {
        for (at, (known, group)) in sides.snapshot.known.iter().zip(groups).enumerate() {
            if self.items.contains_key(group) != is_pairable {
                continue;
            }
            let is_free = sides.is_known_free(at);
            let is_current = known.standing == ItemStatus::Current;
            self.features.add_item(*group, known, |feature| match feature {
                Feature::Text(_) => is_current,
                Feature::Published(_) | Feature::Updated(_) | Feature::Day(_) => {
                    is_free && is_current
                }
                Feature::Hostless(_) => is_free,
                // What bore it once shows that it is no one's own.
                _ => true,
            });
        }
    }

    /// The first unmatched members of two groups that bear different ids; what bears the same and
    /// was told apart in the first round stays apart.
    fn members(&self, sides: &Sides<'_>, (entry, item): (usize, usize)) -> Option<(usize, usize)> {
        let entry = *self.entries.get(&entry)?.first()?;
        let items = self.items.get(&item)?;
        let is_current = |at: &&usize| {
            sides.snapshot.known.get(**at).is_some_and(|k| k.standing == ItemStatus::Current)
        };
        let known = *items.iter().find(is_current).or_else(|| items.first())?;
        sides.differ_in_id(entry, known).then_some((entry, known))
    }

    /// What every two unmatched groups have in common, but for the date.
    fn signs(&self, sides: &Sides<'_>, without: &Without) -> BTreeMap<(usize, usize), Signs> {
        let mut all: BTreeMap<(usize, usize), Signs> = BTreeMap::new();
        for (feature, bearers) in &self.features.bearers {
            for pair in shared_by(feature, bearers) {
                let Some(members) = self.members(sides, pair) else { continue };
                let signs = all.entry(pair).or_default();
                let mut address = |sign: AddressSign| {
                    if !without.has("address") {
                        signs.address = signs.address.max(Some(sign));
                    }
                };
                match feature {
                    Feature::Title(_) => signs.title = !without.has("title"),
                    Feature::Text(_) => signs.text = !without.has("text"),
                    Feature::Sound(_) => signs.sound = !without.has("sound"),
                    Feature::Hostless(_) => address(AddressSign::Hostless),
                    Feature::Link(_) => address(AddressSign::Link),
                    Feature::Path(_) if differ_in_query(sides, members) => {
                        address(AddressSign::Path);
                    }
                    Feature::Name(_) => address(AddressSign::Name),
                    // Dates are looked at where something else is the same, too.
                    _ => {}
                }
            }
        }
        all
    }

    /// Whether two bear the same date, and whether others bear it as well, so that as a day it says
    /// little.
    fn same_date(&self, sides: &Sides<'_>, (entry, known): (usize, usize)) -> Option<SharedDate> {
        let (new, native) = (sides.document.entries.get(entry)?, sides.names.get(entry)?);
        let old = sides.snapshot.known.get(known)?;
        let days = || {
            let day_of = |shown: &str| day(shown).map(Feature::Day);
            day_of(&native.shown).filter(|day| day_of(&old.native_shown).as_ref() == Some(day))
        };
        let (feature, is_day, is_in_id) = match (new.published, old.published) {
            (Some(a), Some(b)) if a == b => {
                (Feature::Published(a), sides.is_day(a), days().is_some())
            }
            (None, None) => match (new.updated, old.updated) {
                (Some(a), Some(b)) if a == b => {
                    (Feature::Updated(a), sides.is_day(a), days().is_some())
                }
                _ => (days()?, true, true),
            },
            _ => return None,
        };
        let others = self.features.bearers.get(&feature).is_some_and(|bearers| {
            let is_its_own =
                |item: &usize| self.items.get(item).is_some_and(|members| members.contains(&known));
            let unmatched = |group: &&usize| self.entries.contains_key(group);
            bearers.entries.iter().filter(unmatched).count() > 1
                || bearers.all_items().any(|item| !is_its_own(&item))
        });
        Some(SharedDate { is_shared: is_day && others, tells_wording: !is_day || is_in_id })
    }
}

/// A date that an entry and an item share.
struct SharedDate {
    /// Whether it is a day that others have as well.
    is_shared: bool,
    /// Whether it is to the second, or stands in the ids.
    tells_wording: bool,
}

/// The pairs of groups that a feature tells of.
fn shared_by(feature: &Feature, bearers: &Bearers) -> Vec<(usize, usize)> {
    let several = matches!(
        feature,
        Feature::Hostless(_) | Feature::Published(_) | Feature::Updated(_) | Feature::Day(_)
    );
    if !several {
        return bearers.only().into_iter().collect();
    }
    let entries = &bearers.entries;
    if entries.len() > BEARERS_LIMIT || bearers.all_items().count() > BEARERS_LIMIT {
        return Vec::new();
    }
    entries.iter().flat_map(|entry| bearers.all_items().map(|item| (*entry, item))).collect()
}

/// Whether the address of an entry has another query than that of the item.
fn differ_in_query(sides: &Sides<'_>, (entry, known): (usize, usize)) -> bool {
    let (Some(new), Some(native), Some(old)) = (
        sides.document.entries.get(entry),
        sides.names.get(entry),
        sides.snapshot.known.get(known),
    ) else {
        return false;
    };
    let is_another = |new: &str, old: &str| plain_link(new) != plain_link(old);
    let links = new.link.as_deref().zip(old.link.as_deref());
    is_another(&native.shown, &old.native_shown)
        && (native.shown.contains('?') || links.is_some_and(|(new, old)| is_another(new, old)))
}

/// A group of entries and one of items, by their places, and what they have in common.
type SignedPair = ((usize, usize), Signs);

/// Pairs the groups that have two kinds of sign in common, those with the most first. Where two have
/// as many in common with one, neither is it.
fn by_signs(sides: &mut Sides<'_>, without: &Without) {
    let groups = Groups::new(sides);
    let mut levels: BTreeMap<usize, Vec<SignedPair>> = BTreeMap::new();
    for (pair, signs) in groups.signs(sides, without) {
        let Some(members) = groups.members(sides, pair) else { continue };
        let signs = judged(sides, &groups, members, signs, without);
        if let Some(signs) = signs {
            levels.entry(rank(&signs)).or_default().push((pair, signs));
        }
    }
    let (mut entries, mut items) = (HashSet::new(), HashSet::new());
    for (_, mut pairs) in levels.into_iter().rev() {
        pairs.retain(|((entry, item), _)| !entries.contains(entry) && !items.contains(item));
        let count = |of: fn(&(usize, usize)) -> usize| {
            let mut counts: HashMap<usize, usize> = HashMap::new();
            for (pair, _) in &pairs {
                *counts.entry(of(pair)).or_default() += 1;
            }
            counts
        };
        let (of_entry, of_item) = (count(|pair| pair.0), count(|pair| pair.1));
        for ((entry, item), signs) in pairs {
            entries.insert(entry);
            items.insert(item);
            if of_entry.get(&entry) == Some(&1) && of_item.get(&item) == Some(&1) {
                pair_groups(sides, &groups, (entry, item), signs);
            }
        }
    }
}

/// How much signs say beside those of other pairs.
fn rank(signs: &Signs) -> usize {
    /// More than there are kinds.
    const MOVED: usize = 10;
    let moved = signs.address == Some(AddressSign::Hostless);
    signs.kinds() + if moved { MOVED } else { 0 }
}

fn pair_groups(
    sides: &mut Sides<'_>,
    groups: &Groups,
    (entry, item): (usize, usize),
    signs: Signs,
) {
    let (Some(entries), Some(items)) = (groups.entries.get(&entry), groups.items.get(&item)) else {
        return;
    };
    let stays =
        signs.date || matches!(signs.address, Some(AddressSign::Hostless | AddressSign::Path));
    let Some((entry, known)) = groups.members(sides, (entry, item)) else { return };
    if stays || !sides.is_scroll(entry, known) {
        pair_group(sides, entries, items, Basis::Signs(signs));
    }
}

/// The signs that count of two that have some in common; `None` where they are too few.
fn judged(
    sides: &Sides<'_>,
    groups: &Groups,
    (entry, known): (usize, usize),
    mut signs: Signs,
    without: &Without,
) -> Option<Signs> {
    let (new, old) = (sides.document.entries.get(entry)?, sides.snapshot.known.get(known)?);
    let date = groups.same_date(sides, (entry, known)).filter(|_| !without.has("date"));
    signs.date = date.as_ref().is_some_and(|date| !date.is_shared || signs.text);
    if signs.address == Some(AddressSign::Name) {
        // A title and a name that was made of it are one sign.
        let is_sign = !signs.title && (signs.text || signs.date && has_telling_name(sides, entry));
        signs.address = signs.address.filter(|_| is_sign);
    }
    let title = new.title.as_deref().unwrap_or_default();
    signs.wording = signs.date
        && !signs.title
        && date.is_some_and(|date| date.tells_wording)
        && features::plain_title(title)
            .is_none_or(|new| features::plain_title(&old.title) != Some(new))
        && !without.has("wording")
        && is_reworded(title, &old.title);
    // Texts of what is listed no more are no one's own; beside the same id on another host they need not be.
    if signs.address == Some(AddressSign::Hostless) && old.standing != ItemStatus::Current {
        let has_same = || telling_texts(new).iter().any(|print| old.prints.contains(print));
        signs.text = !without.has("text") && has_same();
    }
    if signs.kinds() < ENOUGH_KINDS {
        return None;
    }
    if old.standing != ItemStatus::Current && !reaches_back(&signs) {
        return None;
    }
    let apart = match sides.dates(entry, known) {
        (Some(new), Some(old)) => Some(new.since(old).max(old.since(new))),
        _ => None,
    };
    let Signs { title, wording, date, text, address, sound } = signs;
    let alone = !wording && !date && !sound;
    // What went by another id before may be a series that was taken for one post.
    let is_series = || !old.aliases.is_empty();
    let is_next = match (title, text, address) {
        (true, true, None) if alone => {
            let is_long = || long_texts(new).iter().any(|print| old.prints.contains(print));
            apart.is_some_and(|apart| apart >= ANOTHER_DAY) && (is_series() || !is_long())
        }
        (true, false, Some(AddressSign::Link)) if alone => {
            apart.is_some_and(|apart| apart > NEAR || apart >= ANOTHER_DAY && is_series())
        }
        _ => false,
    };
    (!is_next).then_some(signs)
}

/// Whether signs tell of an item that is listed no more.
const fn reaches_back(signs: &Signs) -> bool {
    let is_moved = matches!(signs.address, Some(AddressSign::Hostless | AddressSign::Path));
    signs.title && signs.date || is_moved && (signs.title || signs.date || signs.text)
}

/// Whether the last part of the address has so many words that no two posts share it by chance.
fn has_telling_name(sides: &Sides<'_>, entry: usize) -> bool {
    let (Some(entry), Some(native)) = (sides.document.entries.get(entry), sides.names.get(entry))
    else {
        return false;
    };
    features::name(&native.shown, entry.link.as_deref())
        .is_some_and(|name| name.split(['-', '_', '+']).count() >= TELLING_WORDS)
}
