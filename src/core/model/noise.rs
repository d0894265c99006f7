//! What is no news: changes that nobody sees, spans that never rest, and changes that wait.
//!
//! The newest bytes of an item are served in any case; what stands here says why they made no
//! version, what has been learned of how the item changes, and what is still to come out.

use super::Time;
use super::flaws::set_of;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The most updates of one item in a day that make a version each, unless configured.
pub const VERSIONS_PER_DAY: u32 = 24;

impl NoiseClass {
    /// The classes of which each item has a [trace](Noise::traces), in its order.
    pub const TRACED: [Self; 8] = [
        Self::Dates,
        Self::Counters,
        Self::Ids,
        Self::Images,
        Self::Machinery,
        Self::Addresses,
        Self::Ignored,
        Self::Markup,
    ];

    /// What changed, in words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Dates => "dates",
            Self::Counters => "counters",
            Self::Ids => "ids",
            Self::Images => "preview images",
            Self::Machinery => "fields for machines",
            Self::Addresses => "how addresses are written",
            Self::Ignored => "what the configuration ignores",
            Self::Markup => "markup",
            Self::Span => "a span that keeps changing",
        }
    }
}

set_of! {
    /// A set of classes.
    NoiseClasses(u16) of
    /// A kind of change that makes no version.
    NoiseClass {
        /// Dates and times.
        Dates,
        /// Counters, ratings, ranks.
        Counters,
        /// Ids, which are judged elsewhere.
        Ids,
        /// Addresses of preview images.
        Images,
        /// Elements for machines: generators, keywords, addresses of comment feeds.
        Machinery,
        /// How an address is written: its scheme, host, or tracking parameters.
        Addresses,
        /// What the operator ignores.
        Ignored,
        /// Tags, attributes, prefixes, white space, the order of elements.
        Markup,
        /// A span within a text that changes again and again while nothing else does.
        Span,
    }
}

impl fmt::Display for NoiseClasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.iter().map(NoiseClass::describe).collect();
        match words.as_slice() {
            [] => f.write_str("nothing that is told apart"),
            [one] => f.write_str(one),
            [all @ .., last] => write!(f, "{} and {last}", all.join(", ")),
        }
    }
}

/// How an item's bytes changed since its current version without making another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Unseen {
    /// In what.
    pub classes: NoiseClasses,
    /// How often.
    pub count: u32,
    /// The first time.
    pub since: Time,
    /// The last time.
    pub last: Time,
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { classes, count, since, last } = self;
        match count {
            1 => write!(f, "it changed in {classes} at {last}, which is no news"),
            _ => write!(
                f,
                "it changed {count} times from {since} to {last} in {classes}, which is no news"
            ),
        }
    }
}

/// A machine-like span (a number, a date, a token) of a restless field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// Fingerprint of what it says.
    pub value: u32,
    /// How often it was seen changing in a row.
    pub changes: u8,
}

/// A field of one item that changed, and may go on changing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Restless {
    pub path: String,
    /// Fingerprint of the value that it was last seen with.
    pub value: u32,
    /// How often in a row it changed in spans alone, while nothing else of the item did.
    pub changes: u8,
    /// Its spans, in order, at most [`Restless::SPAN_LIMIT`]; none where there were more, or before
    /// it changed in spans alone.
    pub spans: Vec<Span>,
    /// When it last changed.
    pub last: Time,
    /// Since when its changes make no version.
    pub masked: Option<Time>,
}

impl Restless {
    /// A field that just changed for the first time.
    pub fn new(path: &str, now: Time) -> Self {
        Self { path: path.to_owned(), last: now, ..Self::default() }
    }

    /// The most spans of a field that are told apart.
    pub const SPAN_LIMIT: usize = 64;
}

/// Why a change waits for its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum WaitCause {
    /// As many versions as a day may have were made.
    Cap,
    /// It is in what never rests; it comes out when that rests.
    Mask,
}

/// A change that made no version yet, and comes out as one although nothing else may change.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WaitingChange {
    /// Why.
    pub cause: WaitCause,
    /// Since when.
    pub since: Time,
    /// When it comes out.
    pub due: Time,
    /// Which fields changed last, in words.
    pub fields: String,
}

/// The versions of an item that count against a day's cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DayVersions {
    /// When the day began: with the first of them.
    pub since: Time,
    /// How many were made since.
    pub versions: u32,
}

/// What is known of how an item changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Noise {
    /// What changed since the current version without making another.
    pub unseen: Option<Unseen>,
    /// A fingerprint of the values of each class of [`NoiseClass::TRACED`].
    pub traces: [u32; NoiseClass::TRACED.len()],
    /// Fingerprint of what a reader sees but for machine-like spans; zero where it is not known.
    pub shape: u64,
    /// Fields that changed, at most [`Noise::RESTLESS_LIMIT`].
    pub restless: Vec<Restless>,
    /// Whether a document that is held back differs in what is no noise whatever follows.
    pub held: bool,
    /// The versions of the present day.
    pub made: Option<DayVersions>,
    /// A change that is still to come out.
    pub waiting: Option<WaitingChange>,
    /// The number of the scheme by which the item's fingerprints were made; 0: by none.
    pub scheme: u32,
}

impl Noise {
    /// The most restless fields of an item that are watched.
    pub const RESTLESS_LIMIT: usize = 4;

    /// What is to be said of changes that made no version, in sentences without stops.
    pub fn describe(&self) -> Vec<String> {
        let masked = self.restless.iter().filter_map(|field| {
            let since = field.masked?;
            let Restless { path, .. } = field;
            Some(format!("{path} never rests; since {since} such a change makes no version"))
        });
        let waiting = self.waiting.iter().map(|waiting| {
            let WaitingChange { since, due, fields, .. } = waiting;
            let why = match waiting.cause {
                WaitCause::Cap => "as many versions were made as a day may have",
                WaitCause::Mask => "it never rests",
            };
            format!(
                "a change of {fields} waits since {since}, for {why}; it comes out at {due} or \
                 with the next version"
            )
        });
        self.unseen.iter().map(Unseen::to_string).chain(masked).chain(waiting).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_a_set() {
        let mut set = NoiseClasses::default();
        assert_eq!(set.to_string(), "nothing that is told apart");
        for class in NoiseClass::ALL {
            assert!(!set.contains(class));
            set.insert(class);
            assert!(set.contains(class));
        }
        assert_eq!(set.iter().count(), NoiseClass::ALL.len());
        assert_eq!(NoiseClasses::from_bits(set.bits()), set);
        assert_eq!(NoiseClasses::from_bits(u16::MAX), set);
    }

    #[test]
    fn what_is_no_news_is_told_in_words() {
        let at = Time::from_unix;
        let mut classes = NoiseClasses::default();
        classes.insert(NoiseClass::Counters);
        classes.insert(NoiseClass::Dates);
        let once = Unseen { classes, count: 1, since: at(0), last: at(0) }.to_string();
        let said = "it changed in dates and counters at 1970-01-01T00:00:00Z, which is no news";
        assert_eq!(once, said);
        classes.insert(NoiseClass::Markup);
        let often = Unseen { classes, count: 3, since: at(0), last: at(60) }.to_string();
        let said = "it changed 3 times from 1970-01-01T00:00:00Z to 1970-01-01T00:01:00Z in dates, \
                    counters and markup, which is no news";
        assert_eq!(often, said);
    }
}
