//! Times in which a feed did not go on as usual.

use super::Time;
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Why a feed did not go on as usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum InterruptionKind {
    /// Its publisher could not be read.
    Failed,
    /// A document of it was held.
    Held,
}

impl InterruptionKind {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failing",
            Self::Held => "held",
        }
    }
}

/// A time in which a feed did not go on as usual.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interruption {
    pub kind: InterruptionKind,
    /// When it was first seen.
    pub since: Time,
    /// When it was seen to be over; `None` while it lasts.
    pub until: Option<Time>,
    /// Why it began, in words.
    pub reason: String,
}

impl Hash for Interruption {
    /// Its reason never changes, and is by far the longest of it.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.kind, self.since, self.until).hash(state);
    }
}

/// The last interruptions of a feed, at most one of each kind at a time. Shared by all who have them as they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Interruptions(
    /// In the order in which they began.
    Arc<[Interruption]>,
);

impl Interruptions {
    /// The most that are kept; the oldest are forgotten.
    pub const LIMIT: usize = 32;
    /// The most characters of a reason that are kept.
    pub const REASON_LIMIT: usize = 160;

    /// Those that are kept, in the order in which they began.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Interruption> {
        self.0.iter()
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes in whether the feed is interrupted at `now`, and why: with a reason an interruption of this
    /// kind begins or lasts, without one it ends.
    pub fn note(&mut self, kind: InterruptionKind, reason: Option<&str>, now: Time) {
        let lasts = |known: &Interruption| known.kind == kind && known.until.is_none();
        match (self.0.iter().any(lasts), reason) {
            (true, None) => {
                let all = Arc::make_mut(&mut self.0).iter_mut();
                all.filter(|it| lasts(it)).for_each(|it| it.until = Some(now.max(it.since)));
            }
            (false, Some(reason)) => {
                let reason = reason.chars().take(Self::REASON_LIMIT).collect();
                let new = Interruption { kind, since: now, until: None, reason };
                let surplus = (self.0.len() + 1).saturating_sub(Self::LIMIT);
                self.0 = self.0.iter().skip(surplus).cloned().chain([new]).collect();
            }
            (true, Some(_)) | (false, None) => {}
        }
    }
}

#[cfg(any(test, feature = "testing"))]
impl FromIterator<Interruption> for Interruptions {
    fn from_iter<I: IntoIterator<Item = Interruption>>(all: I) -> Self {
        Self(all.into_iter().take(Self::LIMIT).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use InterruptionKind::{Failed, Held};

    fn at(seconds: i64) -> Time {
        Time::from_unix(1_800_000_000 + seconds)
    }

    fn told(all: &Interruptions) -> Vec<(InterruptionKind, i64, Option<i64>, &str)> {
        let seconds = |time: Time| time.unix() - 1_800_000_000;
        all.iter()
            .map(|it| (it.kind, seconds(it.since), it.until.map(seconds), it.reason.as_str()))
            .collect()
    }

    #[test]
    fn an_interruption_lasts_from_its_first_sign_to_the_first_without() {
        let mut all = Interruptions::default();
        all.note(Failed, None, at(0));
        assert!(all.is_empty());
        all.note(Failed, Some("503"), at(1));
        all.note(Held, Some("empty"), at(2));
        all.note(Failed, Some("timeout"), at(3));
        assert_eq!(told(&all), [(Failed, 1, None, "503"), (Held, 2, None, "empty")]);
        all.note(Failed, None, at(4));
        all.note(Failed, None, at(5));
        all.note(Failed, Some("timeout"), at(6));
        assert_eq!(
            told(&all),
            [(Failed, 1, Some(4), "503"), (Held, 2, None, "empty"), (Failed, 6, None, "timeout")]
        );
    }

    #[test]
    fn a_clock_that_is_set_back_ends_nothing_before_it_began() {
        let mut all = Interruptions::default();
        all.note(Held, Some("empty"), at(100));
        all.note(Held, None, at(0));
        assert_eq!(told(&all), [(Held, 100, Some(100), "empty")]);
    }

    #[test]
    fn as_many_are_kept_as_the_limit_allows_and_those_are_the_newest() {
        let mut all = Interruptions::default();
        for n in 0..100 {
            all.note(Failed, Some(&"ä".repeat(1_000)), at(2 * n));
            all.note(Failed, None, at(2 * n + 1));
        }
        assert_eq!(all.iter().count(), Interruptions::LIMIT);
        let newest = all.iter().next_back().unwrap();
        assert_eq!((newest.since, newest.until), (at(198), Some(at(199))));
        assert_eq!(newest.reason.chars().count(), Interruptions::REASON_LIMIT);
    }
}
