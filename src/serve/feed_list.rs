//! `GET /api/v1/feeds`: all feeds, or those that are looked for, page by page. What is looked for is what the
//! overview looks for.

use super::answers::{FeedAnswer, answer};
use super::dashboard::FeedFilter;
use super::paging::{self, NamedChoice as _};
use super::{
    API, BadRequest, Client, FeedIndex, IndexedFeed, Problem, Query, ReadQuery, Reply, SharedState,
    TypedQuery, Work, WorkKind,
};
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use std::sync::Arc;
use tidegate_core::model::{FeedName, Time};
use tidegate_status::describe;
use tidegate_status::schema::words;
use utoipa::{IntoParams, ToSchema};

/// The most feeds of an answer, and how many it has where no number is asked for.
const LIMIT: usize = 1000;
const PAGE: usize = 500;
/// What a feed takes that is listed, in bytes.
const ROW: u64 = 4 * 1024;

describe! {
    /// The words of the overview.
    FeedFilterWord: words(FeedFilter::ALL.iter().map(|filter| filter.name()));
}

/// Which feeds are asked for.
#[derive(Debug, Clone, PartialEq, Eq, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct FeedListQuery {
    /// Only feeds with this text in title, name, address or folder.
    #[param(rename = "q", required = false)]
    search: String,
    /// Only those that the overview shows under this word. Without it, feeds that were deleted are listed too.
    #[param(rename = "show", value_type = Option<FeedFilterWord>, inline)]
    filter: Option<FeedFilter>,
    /// Only those behind this one.
    after: Option<FeedName>,
    /// At most so many.
    #[param(required = false, minimum = 1, maximum = 1000, default = 500)]
    limit: usize,
}

impl ReadQuery for FeedListQuery {
    /// Reads `?q=`, `?show=`, `?after=` and `?limit=`.
    fn read(query: &str) -> Result<Self, Problem> {
        let query = Query::read(query)?;
        let filter = paging::choice(&query, "show")?;
        let within = |value: &str| value.parse().ok().filter(|limit| (1..=LIMIT).contains(limit));
        Ok(Self {
            search: paging::search(&query)?,
            filter: query.get("show")?.map(|_| filter),
            after: query
                .parse("after", "after is the name of a feed", |name| FeedName::new(name).ok())?,
            limit: query
                .parse("limit", &format!("limit is a number from 1 to {LIMIT}"), within)?
                .unwrap_or(PAGE),
        })
    }
}

impl FeedListQuery {
    /// Whether a feed is asked for.
    fn admits(&self, feed: &IndexedFeed, now: Time) -> bool {
        self.filter.is_none_or(|filter| filter.admits(feed, now))
            && feed.text.contains(&self.search)
    }

    /// The address of the feeds behind one.
    fn address_after(&self, last: &FeedName) -> String {
        let limit = if self.limit == PAGE { String::new() } else { self.limit.to_string() };
        let pairs = [
            ("q", self.search.as_str()),
            ("show", self.filter.map(|filter| filter.name()).unwrap_or_default()),
            ("limit", &limit),
            ("after", last.as_str()),
        ];
        paging::address(&format!("{API}/feeds"), &pairs, 1)
    }
}

/// A page of feeds.
#[derive(Serialize, ToSchema)]
#[schema(as = FeedList)]
struct FeedListAnswer {
    feeds: Vec<FeedAnswer>,
    /// How many all pages have together.
    matches: usize,
    /// The address of the next page.
    next: Option<String>,
}

/// Lists feeds with their states.
#[utoipa::path(get, path = "/api/v1/feeds", operation_id = "listFeeds", params(FeedListQuery), responses(
    (status = 200, description = "The feeds, by name.", body = FeedListAnswer),
    BadRequest,
))]
pub(super) async fn list(
    State(app): State<SharedState>,
    client: Client,
    TypedQuery(query): TypedQuery<FeedListQuery>,
) -> Reply {
    let (index, now) = (app.whole_index().await?, app.clock.now());
    let found = index.feeds().filter(|feed| query.admits(feed, now));
    let mut names: Vec<FeedName> = found.map(|feed| feed.name().clone()).collect();
    let matches = names.len();
    // The feed that a page ended with may be gone by now.
    names.retain(|name| query.after.as_ref().is_none_or(|after| name > after));
    names.sort_unstable();
    let has_more = names.len() > query.limit;
    names.truncate(query.limit);
    let next = names.last().filter(|_| has_more);
    let next = next.map(|last| app.site.at(&query.address_after(last)));
    let cost = cost(&app, &index, &names);
    let telling = Arc::clone(&app);
    let listed = async move {
        let mut feeds = Vec::with_capacity(names.len());
        // One that was purged meanwhile is left out.
        for status in telling.operator.statuses(&names).await? {
            let name = &status.record.name;
            let (state, now) = (telling.store.state(name).await?, telling.clock.now());
            let is_private = index.get(name).is_some_and(|feed| feed.is_private);
            feeds.push(FeedAnswer::new(status, state.as_ref(), is_private, now));
        }
        Ok::<_, Problem>(FeedListAnswer { feeds, matches, next })
    };
    let work = Work::of_all(WorkKind::Standing);
    Ok(answer(StatusCode::OK, &app.admission.run(client, &work, cost, listed).await?))
}

/// What telling how these feeds stand takes: a row of each, and the largest of the ledgers that something waits in,
/// which are read one after the other.
fn cost(app: &SharedState, index: &FeedIndex, names: &[FeedName]) -> u64 {
    let waiting = names.iter().filter_map(|name| index.get(name));
    let waiting = waiting.filter(|feed| feed.figures.decides.is_some());
    let ledgers = waiting.map(|feed| {
        let items = u64::from(feed.figures.living) + u64::from(feed.figures.tombstones);
        app.admission.cost_of(&Work::new(feed.name(), WorkKind::Ledger), items)
    });
    let rows = u64::try_from(names.len()).unwrap_or(u64::MAX).saturating_mul(ROW);
    rows.saturating_add(ledgers.max().unwrap_or(0))
}
