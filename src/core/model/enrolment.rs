//! What the list of subscriptions says of a feed, with its history (SSE 0.91 sections 2.3 to 2.5).

use super::list_place::shortened;
use super::{
    Count, EndpointId, FeedName, FeedRecord, FeedStanding, ListPlace, OutlineLabel, Stamp, Time,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
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

    /// The numbers of its outlines, those that were taken away included. A feed without a place has
    /// one.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        0..self.next_place.max(1)
    }

    /// Whether an outline of that number is in the list.
    pub fn has_number(&self, number: u32) -> bool {
        let is_unplaced = self.places.is_empty() && number == 0;
        is_unplaced || self.places.iter().any(|place| place.number == number)
    }

    /// Takes these places instead of those that it has. The numbers of the latter are given again,
    /// the lowest first, so that an outline that is moved stays the outline that it is.
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

// Feeds that a subscription list of this gateway added (`add_feeds`): which list, and how far it
// decides.

/// What a list has to do with a feed that it added.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ListMember {
    /// The feed here whose document is the list.
    pub list: FeedName,
    pub standing: MemberStanding,
    /// Fingerprint of the places that the list gave it last. Where the feed has others, somebody
    /// arranged it by hand.
    pub placed: u64,
}

/// Whether a list decides about a feed that it added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemberStanding {
    /// The list has it.
    Listed,
    /// The list deleted it, so it was paused.
    Dropped,
    /// The operator changed it by hand, so the list changes nothing of it any more.
    Own,
}

impl ListMember {
    /// The fingerprint of places: their folders and what the feed is called there, not their
    /// positions.
    pub fn fingerprint(places: &[ListPlace]) -> u64 {
        let mut hash = Sha256::new();
        let mut add = |text: Option<&str>| {
            let text = text.unwrap_or_default();
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        };
        for place in places {
            for folder in &place.folders {
                add(Some("folder"));
                add(folder.label.name());
            }
            let OutlineLabel { text, title, description, category, language } = &place.label;
            add(Some("feed"));
            for said in [text, title, description, category, language, &place.site] {
                add(said.as_deref());
            }
        }
        let digest = hash.finalize();
        digest.iter().take(size_of::<u64>()).fold(0, |all, byte| (all << 8) | u64::from(*byte))
    }
}

impl FeedRecord {
    /// The list that decides about it: none where it is the operator's own.
    pub fn deciding_list(&self) -> Option<&FeedName> {
        let member = self.list.as_ref().filter(|member| member.standing != MemberStanding::Own);
        member.map(|member| &member.list)
    }

    /// Whether the list of that name decides about it.
    pub fn is_member_of(&self, list: &FeedName) -> bool {
        self.deciding_list() == Some(list)
    }

    /// Whether it is a list that its feeds follow now.
    pub fn is_followed(&self) -> bool {
        self.adds_feeds && self.standing == FeedStanding::Active
    }

    /// Whether a list paused it because it does not have it any more.
    pub fn is_dropped(&self) -> bool {
        self.standing == FeedStanding::Paused
            && self.list.as_ref().is_some_and(|member| member.standing == MemberStanding::Dropped)
    }

    /// Takes it out of its list's hands, where the operator changed it from `before` by hand. What
    /// was paused or deleted, and the operator has polled again, is changed, too.
    pub fn own_if_changed(&mut self, before: &Self) {
        let said = |record: &Self| {
            let FeedRecord { url, options, access, private, adds_feeds, .. } = record;
            (url.clone(), options.clone(), access.clone(), *private, *adds_feeds)
        };
        let is_resumed =
            before.standing != FeedStanding::Active && self.standing == FeedStanding::Active;
        self.list.clone_from(&before.list);
        if is_resumed || said(self) != said(before) {
            self.leave_list();
        }
    }

    /// Takes it out of its list's hands.
    pub fn leave_list(&mut self) {
        self.list.iter_mut().for_each(|member| member.standing = MemberStanding::Own);
    }

    /// Notes that the operator paused it: it stays paused, also where its list has it again.
    pub fn pause_by_hand(&mut self) {
        self.standing = FeedStanding::Paused;
        self.on_demand.iter_mut().for_each(|made| made.is_let_go = false);
        self.list
            .iter_mut()
            .filter(|member| member.standing == MemberStanding::Dropped)
            .for_each(|member| member.standing = MemberStanding::Listed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::{at, name, record};
    use crate::model::{ListFolder, Probing};

    fn new_record(url: &str, standing: FeedStanding) -> FeedRecord {
        FeedRecord { standing, url: url.to_owned(), ..record("news") }
    }

    #[test]
    fn what_the_list_shows_makes_an_update_and_nothing_else_does() {
        let (here, other) = (EndpointId::own("here").unwrap(), EndpointId::own("other").unwrap());
        let mut first = new_record("http://a/", FeedStanding::Active);
        assert!(first.follow(None, at(0), &here));
        assert_eq!(first.enrolment.history, [Stamp::Both { when: at(0), by: here.clone() }]);

        let mut same = new_record("http://a/", FeedStanding::Active);
        assert!(!same.follow(Some(&first), at(1), &here));
        let mut probed = new_record("http://a/", FeedStanding::Active);
        probed.options.probe = Probing::All;
        assert!(probed.follow(Some(&first), at(1), &here), "it is another record");
        assert_eq!(probed.enrolment, first.enrolment, "and the list says the same");

        let mut gone = new_record("http://a/", FeedStanding::Gone);
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
        let mut record = new_record("http://a/", FeedStanding::Active);
        record.follow(None, at(0), &here);
        for n in 1..50 {
            let mut next = new_record(&format!("http://a/{n}"), FeedStanding::Active);
            next.follow(Some(&record), at(n), &here);
            record = next;
        }
        assert_eq!(record.enrolment.version.value(), 50);
        assert_eq!(record.enrolment.history.len(), Enrolment::KEPT);
        let other = new_record("http://b/", FeedStanding::Active);
        assert_eq!(FeedRecord::next_change([&record, &other], at(0)), at(50));
        assert_eq!(FeedRecord::next_change([&record], at(90)), at(90));
        assert_eq!(Enrolment::title(&"é".repeat(400)).map(|t| t.len()), Some(500));
        assert_eq!(Enrolment::title("  "), None);
    }

    fn label(text: &str) -> OutlineLabel {
        OutlineLabel::new(|name| (name == "text").then_some(text))
    }

    fn place(folders: &[(&str, u32)], text: &str, position: u32) -> ListPlace {
        let folder =
            |(text, position): &(&str, u32)| ListFolder { position: *position, label: label(text) };
        let folders = folders.iter().map(folder).collect();
        ListPlace { number: 0, folders, position, label: label(text), site: None }
    }

    #[test]
    fn a_place_is_told_by_names_and_not_by_positions() {
        let of = |places: &[ListPlace]| ListMember::fingerprint(places);
        let one = of(&[place(&[("A", 0), ("B", 2)], "x", 1)]);
        assert_eq!(one, of(&[place(&[("A", 4), ("B", 0)], "x", 9)]));
        for other in [
            vec![],
            vec![place(&[("A", 0)], "x", 1)],
            vec![place(&[("AB", 0), ("", 2)], "x", 1)],
            vec![place(&[("A", 0), ("B", 2)], "y", 1)],
            vec![place(&[("A", 0), ("B", 2)], "x", 1), place(&[], "x", 0)],
        ] {
            assert_ne!(one, of(&other), "{other:?}");
        }
    }

    #[test]
    fn what_the_operator_changes_is_the_operators() {
        use MemberStanding::{Dropped, Listed, Own};
        let member = ListMember { list: name("list"), standing: Listed, placed: 7 };
        let listed = FeedRecord { list: Some(member), ..record("a") };
        let after = |change: fn(&mut FeedRecord), before: &FeedRecord| {
            let mut record = FeedRecord { list: None, ..before.clone() };
            change(&mut record);
            record.own_if_changed(before);
            record.list.unwrap().standing
        };
        let resume: fn(&mut FeedRecord) = |record| record.standing = FeedStanding::Active;
        assert!(listed.is_member_of(&name("list")) && !listed.is_member_of(&name("other")));
        for (change, standing) in [
            ((|_| {}) as fn(&mut FeedRecord), Listed),
            (|record| record.standing = FeedStanding::Paused, Listed),
            (|record| record.url.push('x'), Own),
            (|record| record.options.complete = true, Own),
            (|record| record.private = true, Own),
        ] {
            assert_eq!(after(change, &listed), standing);
        }
        let mut dropped = FeedRecord { standing: FeedStanding::Paused, ..listed };
        assert!(!dropped.is_dropped(), "the operator paused it");
        assert_eq!(after(resume, &dropped), Own);
        dropped.list.as_mut().unwrap().standing = Dropped;
        assert!(dropped.is_dropped() && dropped.is_member_of(&name("list")));
        assert_eq!((after(|_| {}, &dropped), after(resume, &dropped)), (Dropped, Own));
        let gone = FeedRecord { standing: FeedStanding::Gone, ..dropped.clone() };
        assert_eq!(after(resume, &gone), Own);
        dropped.pause_by_hand();
        assert!(!dropped.is_dropped() && dropped.standing == FeedStanding::Paused);
    }
}
