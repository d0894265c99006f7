//! What the list of subscriptions says of a feed, with its history (SSE 0.91 sections 2.3 to 2.5).

use super::list_place::shortened;
use super::{Count, EndpointId, FeedRecord, FeedStanding, ListPlace, Stamp, Time};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What the list of subscriptions has of a feed: its title, its places, and who changed that when.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Enrolment {
    /// The feed's own title as its documents last had it, or as the list that it came from did.
    pub title: Option<String>,
    /// How often it was changed, from 1.
    pub version: Count,
    /// When and by whom, newest first, at most [`Enrolment::KEPT`].
    pub history: Vec<Stamp>,
    /// Where it stands in the reader's own list, in the order in which it got there, at most
    /// [`ListPlace::MOST`]; empty where it stands in none.
    pub places: Vec<ListPlace>,
    /// The number of the next place. Those below that are no place any more were taken away.
    pub next_place: u32,
}

impl Default for Enrolment {
    fn default() -> Self {
        let (history, places) = (Vec::new(), Vec::new());
        Self { title: None, version: Count::ONE, history, places, next_place: 0 }
    }
}

impl Enrolment {
    /// The most updates that are kept; SSE 0.91 section 4.2 lets the oldest go.
    pub const KEPT: usize = 20;
    /// The longest title, in bytes; the rest is cut off.
    pub const TITLE_LIMIT: usize = 500;

    /// A title as it is kept; `None` where nothing is left of it.
    pub fn title(text: &str) -> Option<String> {
        shortened(text, Self::TITLE_LIMIT)
    }

    /// The numbers of its outlines, those that were taken away included. A feed without a place has one.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        0..self.next_place.max(1)
    }

    /// Whether an outline of that number is in the list.
    pub fn has_number(&self, number: u32) -> bool {
        let is_unplaced = self.places.is_empty() && number == 0;
        is_unplaced || self.places.iter().any(|place| place.number == number)
    }

    /// Takes these places instead of those that it has. The numbers of the latter are given again, the
    /// lowest first, so that an outline that is moved stays the outline that it is.
    pub fn set_places(&mut self, places: Vec<ListPlace>) {
        self.places = places;
        self.places.truncate(ListPlace::MOST);
        for (place, number) in self.places.iter_mut().zip(0..) {
            place.number = number;
            self.next_place = self.next_place.max(number.saturating_add(1));
        }
    }

    /// When it was last changed, where that is known.
    pub fn changed(&self) -> Option<Time> {
        self.history.first().and_then(Stamp::when)
    }

    /// The creation (section 4.1).
    fn create(&mut self, when: Time, by: &EndpointId) {
        self.version = Count::ONE;
        self.history = vec![Stamp::Both { when, by: by.clone() }];
    }

    /// An update (section 4.2). At 2³¹−1 it stays as it is.
    fn update(&mut self, when: Time, by: &EndpointId) {
        let Ok(version) = self.version.next() else { return };
        self.version = version;
        self.history.insert(0, Stamp::Both { when, by: by.clone() });
        self.history.truncate(Self::KEPT);
    }
}

impl FeedRecord {
    /// Takes the place of the record `before` at the time `when`: its history goes on, by one
    /// update where the list of subscriptions says something else from now on. Answers whether the
    /// record is another than before.
    pub fn follow(&mut self, before: Option<&Self>, when: Time, by: &EndpointId) -> bool {
        let Some(before) = before else {
            self.enrolment.create(when, by);
            return true;
        };
        let said = std::mem::replace(&mut self.enrolment, before.enrolment.clone());
        if said.title.is_some() {
            self.enrolment.title = said.title;
        }
        // No place is said by whoever changes something else.
        if !said.places.is_empty() {
            self.enrolment.places = said.places;
            self.enrolment.next_place = said.next_place.max(before.enrolment.next_place);
        }
        let listed = |record: &Self| {
            let Enrolment { places, .. } = &record.enrolment;
            let is_unnamed = places.iter().all(|place| place.label.name().is_none());
            // A title that the reader's own name stands before is not shown.
            let title = record.enrolment.title.clone().filter(|_| is_unnamed);
            (record.url.clone(), record.standing, title, places.clone())
        };
        if listed(self) != listed(before) {
            self.enrolment.update(when, by);
        }
        *self != *before
    }

    /// Whether the list of subscriptions has it as a tombstone.
    pub fn is_unlisted(&self) -> bool {
        self.standing == FeedStanding::Gone
    }

    /// The time of a change that is made at `now`: after every change of the list so far, so that
    /// what the list says of itself (`until`) rises with each (SSE 0.91 section 2.1).
    pub fn next_change<'a>(records: impl IntoIterator<Item = &'a Self>, now: Time) -> Time {
        let last = records.into_iter().filter_map(|record| record.enrolment.changed()).max();
        last.map_or(now, |last| now.max(last.plus(Duration::from_secs(1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FeedName, FeedSource, Probing};

    fn record(url: &str, standing: FeedStanding) -> FeedRecord {
        FeedRecord {
            standing,
            ..FeedRecord::new(FeedName::new("news").unwrap(), url, FeedSource::Api)
        }
    }

    fn at(seconds: i64) -> Time {
        Time::from_unix(1_795_191_605 + seconds)
    }

    #[test]
    fn what_the_list_shows_makes_an_update_and_nothing_else_does() {
        let (here, other) = (EndpointId::own("here").unwrap(), EndpointId::own("other").unwrap());
        let mut first = record("http://a/", FeedStanding::Active);
        assert!(first.follow(None, at(0), &here));
        assert_eq!(first.enrolment.history, [Stamp::Both { when: at(0), by: here.clone() }]);

        let mut same = record("http://a/", FeedStanding::Active);
        assert!(!same.follow(Some(&first), at(1), &here));
        let mut probed = record("http://a/", FeedStanding::Active);
        probed.options.probe = Probing::All;
        assert!(probed.follow(Some(&first), at(1), &here), "it is another record");
        assert_eq!(probed.enrolment, first.enrolment, "and the list says the same");

        let mut gone = record("http://a/", FeedStanding::Gone);
        assert!(gone.follow(Some(&probed), at(2), &other));
        assert_eq!((gone.enrolment.version.value(), gone.enrolment.history.len()), (2, 2));
        assert_eq!(gone.enrolment.changed(), Some(at(2)));
        assert!(gone.is_unlisted());
        let mut titled = gone.clone();
        titled.enrolment = Enrolment { title: Some("T".into()), ..Enrolment::default() };
        assert!(titled.follow(Some(&gone), at(3), &here));
        assert_eq!(titled.enrolment.version.value(), 3);
        let mut untitled = titled.clone();
        untitled.enrolment = Enrolment::default();
        assert!(!untitled.follow(Some(&titled), at(4), &here), "a title that is not said stays");
    }

    #[test]
    fn the_oldest_updates_go() {
        let here = EndpointId::own("here").unwrap();
        let mut record = record("http://a/", FeedStanding::Active);
        record.follow(None, at(0), &here);
        for n in 1..50 {
            let mut next = super::tests::record(&format!("http://a/{n}"), FeedStanding::Active);
            next.follow(Some(&record), at(n), &here);
            record = next;
        }
        assert_eq!(record.enrolment.version.value(), 50);
        assert_eq!(record.enrolment.history.len(), Enrolment::KEPT);
        assert_eq!(
            FeedRecord::next_change(
                [&record, &tests::record("http://b/", FeedStanding::Active)],
                at(0)
            ),
            at(50)
        );
        assert_eq!(FeedRecord::next_change([&record], at(90)), at(90));
        assert_eq!(Enrolment::title(&"é".repeat(400)).map(|t| t.len()), Some(500));
        assert_eq!(Enrolment::title("  "), None);
    }
}
