//! Subscription lists with `add_feeds`: what such a list decides about the feeds that it added, and about no others.

use super::{FeedDraft, Planner};
use std::collections::HashSet;
use std::sync::Arc;
use tidegate_core::model::{
    FeedName, FeedRecord, FeedStanding, ListMember, ListPlace, MemberStanding,
};
use tidegate_net::fetch::{self, AllowPrivate, LeadScope};
use url::Url;

/// The most feeds that follow one list.
const LIST_FEEDS: usize = 5_000;

/// The rules for the feeds that follow a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRules {
    /// The feed here whose document the list is.
    pub list: FeedName,
    /// Whether only readers with a token may read it, and so its feeds.
    pub private: bool,
    /// Which private addresses may be polled.
    pub allow: AllowPrivate,
    /// Which of those private addresses the list itself may name.
    pub lead_scope: LeadScope,
}

impl ListRules {
    /// Whether the list decides about a feed: one that it added, or one that another list dropped.
    pub(super) fn decides(&self, record: &FeedRecord) -> bool {
        record.is_member_of(&self.list) || record.is_dropped()
    }

    /// How many feeds more may follow it.
    pub(super) fn capacity(&self, stored: &[Arc<FeedRecord>]) -> usize {
        let is_one = |record: &&Arc<FeedRecord>| {
            record.standing != FeedStanding::Gone && record.is_member_of(&self.list)
        };
        LIST_FEEDS.saturating_sub(stored.iter().filter(is_one).count())
    }

    /// Checks a feed that the gateway does not have, and takes one off `capacity`, how many may still be added.
    pub(super) fn check_new(&self, url: &Url, capacity: &mut usize) -> Result<(), String> {
        fetch::check(url, &self.allow).map_err(|refusal| refusal.to_string())?;
        if !self.lead_scope.admits(url, &self.allow) {
            let why = "the list is at a public address, and adds no feed of a host that \
                       polling.allow_private lists; add the feed yourself if it is meant";
            return Err(why.to_owned());
        }
        let full = || format!("{LIST_FEEDS} feeds follow the list, which is the limit");
        *capacity = capacity.checked_sub(1).ok_or_else(full)?;
        Ok(())
    }

    /// A new feed, as one that follows the list.
    pub(super) fn own(&self, record: FeedRecord) -> FeedRecord {
        FeedRecord { private: self.private, list: Some(self.member(0)), ..record }
    }

    fn member(&self, placed: u64) -> ListMember {
        ListMember { list: self.list.clone(), standing: MemberStanding::Listed, placed }
    }

    /// Gives a feed the places that the list has for it, and polls it again where a list had dropped it.
    /// Where the list says what it did, or somebody arranged the feed by hand, it stays where it is.
    pub(super) fn lay_out(&self, record: &mut FeedRecord, places: Vec<ListPlace>) {
        if places.is_empty() {
            return;
        }
        if record.is_dropped() {
            record.standing = FeedStanding::Active;
        }
        record.private |= self.private;
        let before = record.list.as_ref().map(|member| member.placed);
        let placed = ListMember::fingerprint(&places);
        let is_new = record.enrolment.places.is_empty();
        let is_by_hand =
            !is_new && before != Some(ListMember::fingerprint(&record.enrolment.places));
        if before != Some(placed) && !is_by_hand {
            record.enrolment.set_places(places);
        }
        record.list = Some(self.member(placed));
    }
}

impl Planner<'_> {
    /// Pauses the feeds that follow the list and are not in it, and has all of a private list be private. What has
    /// the address of a feed of the list is in it, whichever feed of that address the list is about.
    pub(super) fn drop_missing(&mut self, rules: &ListRules) {
        let (names, addresses): (HashSet<FeedName>, HashSet<String>) =
            self.drafts.iter().map(|d| (d.record.name.clone(), d.record.url.clone())).unzip();
        let others = |record: &&FeedRecord| {
            record.is_member_of(&rules.list) && !names.contains(&record.name)
        };
        for before in self.before.stored.iter().map(Arc::as_ref).filter(others) {
            let mut record = before.clone();
            record.private |= rules.private;
            if before.standing == FeedStanding::Active && !addresses.contains(&before.url) {
                let standing = MemberStanding::Dropped;
                record.standing = FeedStanding::Paused;
                record.list.iter_mut().for_each(|member| member.standing = standing);
            }
            if record != *before {
                self.drafts.push(FeedDraft::new(record, Some(before.clone())));
            }
        }
    }
}

#[cfg(test)]
mod tests;
