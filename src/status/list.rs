//! The status of subscription lists whose feeds are added to the gateway, and of these feeds.

use serde::Serialize;
use tidegate_core::model::{FeedName, MemberStanding};
use utoipa::ToSchema;

/// The feeds of a subscription list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
#[schema(as = FeedsOfList)]
pub struct ListNote {
    /// The number of feeds that follow the list; `dropped`: of these, how many it no longer contains.
    pub following: usize,
    pub dropped: usize,
    /// The names of feeds that follow it, at most [`ListNote::LIMIT`].
    #[schema(max_items = 50)]
    pub feeds: Vec<FeedName>,
    /// The number of its feeds that existed before, added by hand or by another list.
    pub known: usize,
    /// The number of outlines that were not added; `refused`: which and why, at most [`ListNote::LIMIT`].
    pub not_taken: usize,
    #[schema(max_items = 50)]
    pub refused: Vec<RefusedFeed>,
    /// Why the last update of its feeds failed, if it did.
    pub error: Option<String>,
}

impl ListNote {
    /// The most feeds, and the most refusals, that are named.
    pub const LIMIT: usize = 50;
}

/// An outline of a list that was not added as a feed, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RefusedFeed {
    /// Its address without credentials and keys; `None` if it has none.
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
    /// Whether feeds of the list still follow it.
    #[serde(rename = "followed")]
    pub is_followed: bool,
    /// Whether only readers with a token may see the name of the list.
    #[serde(skip)]
    pub is_private: bool,
}

impl MemberNote {
    /// Describes the role of the list for the feed; omits the name of a private list.
    pub fn words(&self) -> String {
        let (before, after) = self.around();
        match self.is_private {
            true => format!("{before}a private list{after}"),
            false => format!("{before}the list {}{after}", self.list),
        }
    }

    /// Returns the words before and after the name of the list.
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
    use tidegate_core::model::testing::name;

    #[test]
    fn a_private_list_is_not_named() {
        let (list, standing) = (name("ours"), MemberStanding::Dropped);
        let mut note = MemberNote { list, standing, is_followed: true, is_private: false };
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
