//! What is pending, held and learned, in words: the answer to "why not?".

use crate::document::{self, HOLD_LOOKS, LONGEST_HOLD, hold_terms};
use crate::hole::{Conclusion, conclude, ripens};
use crate::probe::describe_probe;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_core::model::{
    Absence, Character, Decision, Evidence, FeedOptions, Hold, LedgerEntry, Probe, Snapshot,
    SyncId, Time, WaitCause, WaitingChange, counted,
};

/// An item that is missing from its feed's document, and what is to come of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
pub struct PendingAbsence {
    #[serde(rename = "sync_id")]
    pub id: SyncId,
    pub native_id: String,
    pub title: String,
    pub evidence: Evidence,
    /// What was seen and what objects to a deletion, in words.
    #[serde(rename = "reason")]
    pub seen: String,
    /// Since when it has been missing.
    pub since: Time,
    /// In how many full observations.
    pub observations: u32,
    /// How many it takes.
    pub needed: u32,
    /// The earliest time at which it can be decided.
    pub decides_at: Time,
    /// What it would be then.
    pub would: Conclusion,
    /// What its own address said, where it was asked.
    #[serde(skip)]
    pub probe: Option<Probe>,
    /// The same in words.
    #[serde(skip)]
    pub answered: Option<String>,
}

/// The most items that are told of together.
pub const PENDING_SHOWN: usize = 50;
/// More observations than any evidence asks for.
const MANY: u32 = 64;
/// A time at which everything has stood long enough.
const END: Time = Time::from_unix(i64::MAX);

impl PendingAbsence {
    /// An item that waits for a conclusion; `same` full observations agreed since the last commit.
    pub fn new(known: &LedgerEntry, options: &FeedOptions, same: u32) -> Option<Self> {
        let absence = known.pending_absence()?;
        let later = |observations| conclude(absence, observations, options.deletions, END);
        let needed = (1..MANY).find(|n| later(*n) != Conclusion::Wait).unwrap_or(MANY);
        Some(Self {
            id: known.id.clone(),
            native_id: known.native_shown.clone(),
            title: known.title.clone(),
            evidence: absence.evidence,
            seen: absence.seen.clone(),
            since: absence.since,
            observations: absence.observations.saturating_add(same),
            needed,
            decides_at: ripens(absence, options.deletions),
            would: later(needed),
            answered: absence
                .probe
                .as_ref()
                .map(|probe| describe_probe(probe, known.link.as_deref())),
            probe: absence.probe.clone(),
        })
    }

    /// Why nothing has been concluded yet, and what it takes.
    pub fn describe(&self) -> String {
        let answered = self.answered.iter().map(|said| format!("; {said}")).collect::<String>();
        format!(
            "{}; seen {} since {}{answered}; {} if it is so at {} and in {} observations",
            self.seen,
            times(self.observations),
            self.since,
            self.would.describe(),
            self.decides_at,
            self.needed
        )
    }
}

impl Conclusion {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Retire => "retired",
            Self::Delete => "deleted",
        }
    }

    const fn describe(self) -> &'static str {
        match self {
            Self::Wait => "nothing is concluded",
            Self::Retire => "it is retired, not deleted,",
            Self::Delete => "it is deleted",
        }
    }
}

/// The items that wait for a conclusion, what is decided first first, at most `limit`; and how many there
/// are in all.
pub fn absent(
    snapshot: &Snapshot,
    options: &FeedOptions,
    limit: usize,
) -> (Vec<LedgerEntry>, usize) {
    let waits = |known: &&LedgerEntry| known.pending_absence().is_some();
    let mut waiting: Vec<&LedgerEntry> = snapshot.known.iter().filter(waits).collect();
    let ripe = |absence: &Absence| ripens(absence, options.deletions);
    waiting.sort_by_key(|known| known.absence.as_ref().map(ripe));
    let all = waiting.len();
    (waiting.into_iter().take(limit).cloned().collect(), all)
}

/// An item that changed without making a version, and why.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Quiet {
    #[serde(rename = "sync_id")]
    pub id: SyncId,
    pub native_id: String,
    pub title: String,
    /// What changed, and why that is no news or waits, in sentences without stops.
    pub words: Vec<String>,
}

/// The most items that are told of together because they changed without making a version.
pub const QUIET_SHOWN: usize = 20;

/// The items that changed without making a version, what changed last first, at most
/// `QUIET_SHOWN`.
pub fn quiet(snapshot: &Snapshot) -> Vec<Quiet> {
    let last = |known: &LedgerEntry| {
        let noise = &known.noise;
        let waits = noise.waiting.as_ref().map(|waiting| waiting.since);
        noise.unseen.as_ref().map(|unseen| unseen.last).max(waits)
    };
    let mut quiet: Vec<(Time, &LedgerEntry)> =
        snapshot.known.iter().filter_map(|known| Some((last(known)?, known))).collect();
    quiet.sort_by_key(|(last, _)| std::cmp::Reverse(*last));
    let shown = quiet.into_iter().take(QUIET_SHOWN).map(|(_, known)| Quiet {
        id: known.id.clone(),
        native_id: known.native_shown.clone(),
        title: known.title.clone(),
        words: known.noise.describe(),
    });
    shown.collect()
}

/// The fields in which a number or token never rests, with the number of items, in sentences without stops.
pub fn never_rests(snapshot: &Snapshot) -> Vec<String> {
    let noise = snapshot.known.iter().map(|known| &known.noise);
    let masks = |waiting: &WaitingChange| waiting.cause == WaitCause::Mask;
    let fields = noise.filter(|noise| noise.waiting.as_ref().is_some_and(masks));
    let fields = fields.flat_map(|noise| &noise.restless);
    let mut items: BTreeMap<&str, usize> = BTreeMap::new();
    for field in fields.filter(|field| field.masked.is_some()) {
        *items.entry(&field.path).or_default() += 1;
    }
    let words = items.into_iter().map(|(path, items)| {
        let items = counted(items, "item");
        format!("a number or token in {path} of {items} never rests; its changes make no version")
    });
    words.collect()
}

/// Why a document is held, in words alone: what is noted of it ([`Hold::describe`]) begins with the name of its rule.
pub fn hold_reason(noted: &str) -> &str {
    let names = document::RULES.iter().map(|rule| rule.rule.name);
    let rule = names.into_iter().find_map(|rule| noted.strip_prefix(rule)?.strip_prefix(": "));
    rule.unwrap_or(noted)
}

/// How often a held document was seen, what makes it believed, and what the operator can do.
pub fn hold_words(hold: &Hold) -> String {
    match hold.decision {
        Some(Decision::Release) => {
            return "released by the operator: it goes out with the next whole document".to_owned();
        }
        Some(Decision::Drop) => {
            return "dropped by the operator: another document is judged anew".to_owned();
        }
        None => {}
    }
    let terms = hold_terms(&hold.kind);
    let insisting =
        terms.documents.map(|n| format!(" or {n} different documents that say the same"));
    let kept = match hold.kept {
        0 => String::new(),
        n => format!("; new entries that were seen meanwhile and are kept: {n}"),
    };
    format!(
        "seen {} since {}; believed after {} looks over {}{}, at the latest after {}{kept}; it heals \
         with the first document that needs no hold, and an operator can release or drop it",
        times(hold.observations),
        hold.since,
        HOLD_LOOKS,
        span(terms.least),
        insisting.unwrap_or_default(),
        span(LONGEST_HOLD),
    )
}

/// What has been learned of how a feed behaves.
pub fn character_words(character: &Character) -> String {
    let Character { documents, largest, kept_order, reordered, grew_above, grew_below, .. } =
        *character;
    let Character { holes_returned, left_middle, left_end, .. } = *character;
    if documents < 2 {
        return "too little was seen to say anything".to_owned();
    }
    let mut words = vec![format!("learned from {documents} documents of up to {largest} items")];
    if reordered > 0 {
        let all = kept_order.saturating_add(reordered);
        words.push(format!("items changed their order {} of {all}", times(reordered)));
    } else if kept_order > 0 {
        words.push("items keep their order".to_owned());
    }
    match (grew_above, grew_below) {
        (0, 0) => words.push("nothing new came yet".to_owned()),
        (_, 0) => words.push(format!("new items come above the old ones ({grew_above})")),
        (0, _) => words.push(format!("new items come below old ones ({grew_below})")),
        _ => words.push(format!(
            "new items come above the old ones ({grew_above}) and between or below them ({grew_below})"
        )),
    }
    if left_end > 0 {
        words.push(format!("items left at the end {}", times(left_end)));
    }
    if left_middle > 0 {
        words.push(format!("items left from the middle {}", times(left_middle)));
    }
    if holes_returned > 0 {
        words.push(format!("{holes_returned} that were missing from the middle came back"));
    }
    words.join("; ")
}

fn times(n: u32) -> String {
    match n {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{n} times"),
    }
}

fn span(time: Duration) -> String {
    let minutes = time.as_secs() / 60;
    match minutes {
        60 => "an hour".to_owned(),
        1440 => "a day".to_owned(),
        m if m % 60 == 0 => format!("{} hours", m / 60),
        m => format!("{m} minutes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::{Deletions, ItemStatus, testing};

    fn hold(kind: &str, decision: Option<Decision>) -> Hold {
        let (kind, hold) = (kind.to_owned(), testing::hold(Time::from_unix(0)));
        Hold { kind, observations: 2, kept: 3, decision, ..hold }
    }

    #[test]
    fn a_hold_says_what_it_waits_for() {
        assert_eq!(
            hold_words(&hold("re-keyed", None)),
            "seen twice since 1970-01-01T00:00:00Z; believed after 3 looks over 30 minutes or 3 \
             different documents that say the same, at the latest after a day; new entries that \
             were seen meanwhile and are kept: 3; it heals with the first document that needs no \
             hold, and an operator can release or drop it"
        );
        let other = hold_words(&hold("other-feed", None));
        assert!(other.contains("3 looks over 6 hours, at the latest after a day"), "{other}");
        assert!(hold_words(&hold("empty", Some(Decision::Release))).starts_with("released"));
        assert!(hold_words(&hold("empty", Some(Decision::Drop))).starts_with("dropped"));
    }

    #[test]
    fn the_reason_of_a_hold_is_without_the_name_of_its_rule() {
        assert_eq!(hold_reason("mass-changed: 5 of 8 items changed"), "5 of 8 items changed");
        assert_eq!(hold_reason("empty: the document is empty"), "the document is empty");
        for other in ["it is empty: nothing", "emptyness: none", ""] {
            assert_eq!(hold_reason(other), other);
        }
    }

    #[test]
    fn a_character_is_told_in_words() {
        assert_eq!(character_words(&Character::default()), "too little was seen to say anything");
        let character = Character {
            documents: 9,
            largest: 20,
            kept_order: 8,
            grew_above: 4,
            left_end: 3,
            holes_returned: 2,
            ..Character::default()
        };
        assert_eq!(
            character_words(&character),
            "learned from 9 documents of up to 20 items; items keep their order; new items come \
             above the old ones (4); items left at the end 3 times; 2 that were missing from the \
             middle came back"
        );
    }

    #[test]
    fn an_absence_says_what_it_will_be() {
        let options = FeedOptions::default();
        for (evidence, words) in [
            (Evidence::Aged, "; it is retired, not deleted, if it is so at "),
            (Evidence::Hole, "; it is deleted if it is so at "),
        ] {
            let absence = Some(Absence::seen_once(evidence, Time::from_unix(0)));
            let standing = ItemStatus::Current;
            let known = LedgerEntry { absence, standing, ..LedgerEntry::left("a") };
            let said = PendingAbsence::new(&known, &options, 0).unwrap().describe();
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn every_evidence_says_when_it_ripens_and_into_what() {
        use Evidence::{Aged, Complete, Hole, Passed, Said, Unplaced};
        for evidence in [Aged, Hole, Complete, Passed, Said, Unplaced] {
            for deletions in [Deletions::Safe, Deletions::Eager, Deletions::Off] {
                let since = Time::from_unix(0);
                let absence = Absence::seen_once(evidence, since);
                let of = |observations, now| conclude(&absence, observations, deletions, now);
                let needed = (1..MANY).find(|n| of(*n, END) != Conclusion::Wait).unwrap();
                let ripe = ripens(&absence, deletions);
                assert_ne!(of(needed, ripe), Conclusion::Wait, "{evidence:?} {deletions:?}");
            }
        }
    }
}
