//! What the cases name.

pub(super) use super::{StoreFixture, on_every_store};
use crate::record::specimen::specimen;
pub(crate) use crate::testing::draft::*;
pub(crate) use crate::*;
pub(crate) use tidegate_core::model::testing::{at as time, id, name as feed, record, tick};
pub(crate) use tidegate_core::model::*;

pub(super) fn applied(url: &str) -> AppliedOrigins {
    AppliedOrigins([(feed("blog"), url.to_owned())].into())
}

pub(crate) fn poll_state(name: &str) -> PollState {
    PollState { feed: feed(name), url: format!("https://example.org/{name}"), ..specimen(1) }
}

pub(super) fn ids(view: &View) -> Vec<&str> {
    view.items.iter().map(|item| item.shared.winner.id.as_str()).collect()
}

/// A change to the feed `news` at the given second.
pub(crate) async fn edit(store: &Store, seconds: i64) -> Draft {
    Draft::on(store, "news", seconds).await
}
