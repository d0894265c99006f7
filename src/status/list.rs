//! What there is to say of subscription lists whose feeds are feeds here, and of those feeds.

use serde::Serialize;
use tidegate_core::model::{FeedName, MemberStanding};
use utoipa::ToSchema;

/// What came of the feeds of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
#[schema(as = FeedsOfList)]
pub struct ListNote {
    /// How many feeds follow it, and how many of them it dropped.
    pub following: usize,
    pub dropped: usize,
    /// The feeds that follow it by name, at most [`ListNote::LIMIT`].
    #[schema(max_items = 50)]
    pub feeds: Vec<FeedName>,
    /// How many of its feeds were here already, added by hand or by another list.
    pub known: usize,
    /// How many of its outlines were not taken, and why, at most [`ListNote::LIMIT`].
    pub not_taken: usize,
    #[schema(max_items = 50)]
    pub refused: Vec<RefusedFeed>,
    /// Why its feeds could not be brought up to date when that was tried last.
    pub error: Option<String>,
}

impl ListNote {
    /// The most feeds and refusals that are named.
    pub const LIMIT: usize = 50;
}

/// An outline of a list that is no feed here, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RefusedFeed {
    /// Its address, without credentials and keys; `None` where it has none.
    pub address: Option<String>,
    pub why: String,
}

/// The list that added a feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ListMember)]
pub struct MemberNote {
    #[serde(rename = "name")]
    pub list: FeedName,
    pub standing: MemberStanding,
    /// Whether the feeds of the list follow it still.
    #[serde(rename = "followed")]
    pub is_followed: bool,
    /// Whether the name of the list is for readers with a token alone.
    #[serde(skip)]
    pub is_private: bool,
}

impl MemberNote {
    /// What the list means for the feed, in words. Where the list is private, its name is left out.
    pub fn words(&self) -> String {
        let (before, after) = self.around();
        match self.is_private {
            true => format!("{before}a private list{after}"),
            false => format!("{before}the list {}{after}", self.list),
        }
    }

    /// What the words say before they name the list, and behind it.
    pub const fn around(&self) -> (&'static str, &'static str) {
        match self.standing {
            MemberStanding::Listed if self.is_followed => ("it follows ", ""),
            MemberStanding::Listed => ("", " added it, and adds no feeds now"),
            MemberStanding::Dropped => ("", " no longer has it"),
            MemberStanding::Own => {
                ("", " added it; it was changed by hand, so it follows that no more")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_list_is_not_named() {
        let mut note = MemberNote {
            list: FeedName::new("ours").unwrap(),
            standing: MemberStanding::Dropped,
            is_followed: true,
            is_private: false,
        };
        assert_eq!(note.words(), "the list ours no longer has it");
        let listed = MemberNote { standing: MemberStanding::Listed, ..note.clone() };
        assert_eq!(listed.words(), "it follows the list ours");
        let alone = MemberNote { is_followed: false, ..listed };
        assert_eq!(alone.words(), "the list ours added it, and adds no feeds now");
        note.is_private = true;
        for standing in [MemberStanding::Listed, MemberStanding::Dropped, MemberStanding::Own] {
            let note = MemberNote { standing, ..note.clone() };
            assert!(note.words().contains("a private list") && !note.words().contains("ours"));
        }
    }
}
