//! Feeds that a subscription list of this gateway added (`add_feeds`): which list, and how far it decides.

use super::{FeedName, FeedRecord, FeedStanding, ListPlace, OutlineLabel};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What a list has to do with a feed that it added.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ListMember {
    /// The feed here whose document is the list.
    pub list: FeedName,
    pub standing: MemberStanding,
    /// Fingerprint of the places that the list gave it last. Where the feed has others, somebody arranged it
    /// by hand.
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
    /// The fingerprint of places: their folders and what the feed is called there, not their positions.
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

    /// Takes it out of its list's hands, where the operator changed it from `before` by hand. What was paused
    /// or deleted, and the operator has polled again, is changed, too.
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
    use crate::model::{FeedSource, ListFolder};

    fn name(text: &str) -> FeedName {
        FeedName::new(text).unwrap()
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
        let listed = FeedRecord {
            list: Some(ListMember {
                list: name("list"),
                standing: MemberStanding::Listed,
                placed: 7,
            }),
            ..FeedRecord::new(name("a"), "http://a/", FeedSource::Api)
        };
        let after = |change: fn(&mut FeedRecord), before: &FeedRecord| {
            let mut record = FeedRecord { list: None, ..before.clone() };
            change(&mut record);
            record.own_if_changed(before);
            record.list.unwrap().standing
        };
        assert!(listed.is_member_of(&name("list")) && !listed.is_member_of(&name("other")));
        assert_eq!(after(|_| {}, &listed), MemberStanding::Listed);
        assert_eq!(after(|r| r.standing = FeedStanding::Paused, &listed), MemberStanding::Listed);
        assert_eq!(after(|r| r.url.push('x'), &listed), MemberStanding::Own);
        assert_eq!(after(|r| r.options.complete = true, &listed), MemberStanding::Own);
        assert_eq!(after(|r| r.private = true, &listed), MemberStanding::Own);

        let mut dropped = FeedRecord { standing: FeedStanding::Paused, ..listed };
        assert!(!dropped.is_dropped(), "the operator paused it");
        assert_eq!(after(|r| r.standing = FeedStanding::Active, &dropped), MemberStanding::Own);
        dropped.list.as_mut().unwrap().standing = MemberStanding::Dropped;
        assert!(dropped.is_dropped() && dropped.is_member_of(&name("list")));
        assert_eq!(after(|_| {}, &dropped), MemberStanding::Dropped);
        assert_eq!(after(|r| r.standing = FeedStanding::Active, &dropped), MemberStanding::Own);
        let gone = FeedRecord { standing: FeedStanding::Gone, ..dropped.clone() };
        assert_eq!(after(|r| r.standing = FeedStanding::Active, &gone), MemberStanding::Own);
        dropped.pause_by_hand();
        assert!(!dropped.is_dropped() && dropped.standing == FeedStanding::Paused);
    }
}
