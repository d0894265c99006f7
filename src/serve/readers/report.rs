//! What is shown of readers: to the operator alone, since they are not told of each other.

use super::KnownReaders;
use crate::answers::answer;
use crate::audience::{Audience, AudienceKey, ServedFeed, TOKEN_PATH};
use crate::problem::Problem;
use crate::{AppState, SharedState};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use std::sync::Arc;
use tidegate_core::model::{FeedName, FeedRecord, FeedStanding};
use utoipa::ToSchema;

/// How many feeds of a reader are named, and how many of those that are no feeds here.
const FEEDS_SHOWN: usize = 1_000;
const MISSING_SHOWN: usize = 100;
/// How many readers of a feed are named.
const NAMES_SHOWN: usize = 20;

impl KnownReaders {
    /// Who may read a private feed.
    pub(crate) fn of_private(&self, feed: &FeedName) -> PrivateReaders {
        let all = self.all.load();
        let names =
            all.all.iter().filter(|reader| reader.opens(feed, true)).map(|reader| reader.name());
        let count = names.clone().count();
        let names: Vec<String> = names.take(NAMES_SHOWN).map(str::to_owned).collect();
        let more = match count.saturating_sub(names.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let about = match names.is_empty() {
            true => "no reader may see it yet".to_owned(),
            false => {
                format!("for {}{more}, below {TOKEN_PATH}TOKEN/feeds/{feed}", names.join(", "))
            }
        };
        PrivateReaders { count, names, words: format!("private: {about}"), about }
    }
}

/// Who may read a private feed.
#[derive(Serialize, ToSchema)]
pub(crate) struct PrivateReaders {
    count: usize,
    /// At most 20.
    names: Vec<String>,
    words: String,
    /// For whom it is, and where they find it, in words that follow "private".
    #[serde(skip)]
    pub(crate) about: String,
}

/// The readers of a feed, where it is private and the operator asks; and whose page of it that is.
pub(crate) async fn told_to(
    room: &AppState,
    audience: &Audience,
    feed: &ServedFeed,
) -> Result<(Option<PrivateReaders>, AudienceKey), Problem> {
    let is_private = room.directory.listing().await?.private().contains(&feed.name);
    // The operator is told of readers, who are not told of each other.
    Ok(match audience.is_operator() && is_private {
        true => (Some(room.readers.of_private(&feed.name)), AudienceKey::Operator),
        false => (None, feed.site.key()),
    })
}

/// The readers in the order of the configuration.
#[derive(Serialize, ToSchema)]
#[schema(as = ReaderList)]
struct ReadersAnswer {
    readers: Vec<ReaderAnswer>,
}

#[derive(Serialize, ToSchema)]
struct ReaderAnswer {
    name: String,
    /// Whether every private feed may be read.
    all_private: bool,
    /// How many feeds may be read.
    count: usize,
    #[schema(max_items = 1000)]
    feeds: Vec<FeedName>,
    /// Feeds of the reader's configuration that are not here.
    #[schema(max_items = 100)]
    missing: Vec<FeedName>,
}

/// The readers of private feeds, and what each may read; no token is shown.
#[utoipa::path(get, path = "/api/v1/readers", operation_id = "listReaders", responses(
    (status = 200, description = "The readers in the order of the configuration.", body = ReadersAnswer),
))]
pub(crate) async fn list(State(room): State<SharedState>) -> Result<Response, Problem> {
    let listing = room.directory.listing().await?;
    let all = room.readers.all.load();
    let readers = all.all.iter().map(|reader| {
        let is_there = |feed: &&Arc<FeedRecord>| feed.standing != FeedStanding::Gone;
        let is_missing =
            |name: &&FeedName| listing.get(*name).as_ref().is_none_or(|feed| !is_there(feed));
        let is_open = |feed: &&Arc<FeedRecord>| {
            reader.opens(&feed.name, listing.private().contains(&feed.name))
        };
        let open = listing.values().filter(is_there).filter(is_open);
        let mut feeds: Vec<FeedName> = open.map(|feed| feed.name.clone()).collect();
        let missing = reader.access.feeds.iter().filter(is_missing).take(MISSING_SHOWN);
        let (name, all_private) = (reader.name().to_owned(), reader.access.all_private);
        let (count, missing) = (feeds.len(), missing.cloned().collect());
        feeds.truncate(FEEDS_SHOWN);
        ReaderAnswer { name, all_private, count, feeds, missing }
    });
    Ok(answer(StatusCode::OK, &ReadersAnswer { readers: readers.collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::ReaderAccess;
    use crate::readers::tests::{TOKEN, access};

    #[test]
    fn a_private_feed_says_for_whom_it_is() {
        let feed = FeedName::new("diary").unwrap();
        let said = |readers: Vec<ReaderAccess>| KnownReaders::new(readers).of_private(&feed).about;
        assert_eq!(said(Vec::new()), "no reader may see it yet");
        let all = ReaderAccess { all_private: true, ..access("all", "x", &[]) };
        let some = vec![access("ann", TOKEN, &["diary"]), access("bob", "y", &["b"]), all];
        assert_eq!(said(some), "for ann, all, below /t/TOKEN/feeds/diary");
        let many = (0..=NAMES_SHOWN).map(|n| access(&format!("r{n}"), &n.to_string(), &["diary"]));
        let said = said(many.collect());
        assert!(said.contains("r19 and 1 more, below") && !said.contains("r20"), "{said}");
    }
}
