//! Which feeds the dashboard shows, in which order: a function of what is known of all of them.

use crate::paging::{self, NamedChoice as _, PagePlace, choices};
use crate::{IndexedFeed, Problem, Query, ReadQuery};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;
use tidegate_core::model::{FeedStanding, Time};
use tidegate_status::TicksAhead;

const DAY: Duration = Duration::from_secs(86_400);

/// What somebody looks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct DashboardQuery {
    /// What a title, a name, an address or a folder contains, in lower case.
    pub(super) search: String,
    pub(super) filter: FeedFilter,
    pub(super) order: FeedOrder,
    /// Which page, from 1.
    pub(super) page: usize,
}

impl ReadQuery for DashboardQuery {
    /// Reads `?q=`, `?show=`, `?sort=` and `?page=`.
    fn read(query: &str) -> Result<Self, Problem> {
        let query = Query::read(query)?;
        Ok(Self {
            search: paging::search(&query)?,
            filter: paging::choice(&query, "show")?,
            order: paging::choice(&query, "sort")?,
            page: paging::page(&query)?,
        })
    }
}

impl DashboardQuery {
    /// Whether somebody searches for words.
    pub(crate) const fn is_search(&self) -> bool {
        !self.search.is_empty()
    }

    /// The address of the dashboard that shows this.
    pub(super) fn address(&self) -> String {
        let (show, sort) = (paging::unusual(self.filter), paging::unusual(self.order));
        paging::address("/", &[("q", &self.search), ("show", show), ("sort", sort)], self.page)
    }
}

choices! {
    /// Which feeds are shown.
    #[derive(Default)]
    pub(crate) enum FeedFilter {
        /// All that are served.
        #[default]
        All = "all", "All feeds";
        /// Those with any of the problems below.
        Problems = "problems", "With problems";
        Failing = "failing", "Failing";
        Held = "held", "Held";
        Conflicts = "conflicts", "In conflict";
        /// Items may have been missed lately.
        Gaps = "gaps", "With gaps";
        Paused = "paused", "Paused";
        /// Their addresses answer 410.
        Gone = "gone", "Deleted";
    }
}

impl FeedFilter {
    /// Whether it shows a feed.
    pub(crate) fn admits(self, feed: &IndexedFeed, now: Time) -> bool {
        match self {
            Self::Gone => !feed.is_served(),
            _ if !feed.is_served() => false,
            Self::All => true,
            Self::Problems => feed.has_problem(now),
            Self::Failing => feed.is_failing(),
            Self::Held => feed.figures.held.is_some(),
            Self::Conflicts => feed.figures.contested > 0,
            Self::Gaps => feed.polling.gaps.lately(now).is_some(),
            Self::Paused => feed.record.standing == FeedStanding::Paused,
        }
    }
}

choices! {
    /// The order in which feeds are shown.
    #[derive(Default)]
    pub(super) enum FeedOrder {
        /// That of the reader's own list; feeds in no folder of it behind the others, by name.
        #[default]
        List = "list", "By folder";
        Title = "title", "By title";
        Changed = "changed", "Last changed first";
        Next = "next", "Polled next first";
        Items = "items", "Most items first";
    }
}

/// The feeds of a page.
#[derive(Debug, PartialEq)]
pub(super) struct ListPage<'a> {
    pub(super) feeds: Vec<&'a IndexedFeed>,
    pub(super) place: PagePlace,
}

/// Those of the feeds, which are in the order of the list, that a query asks for.
pub(super) fn select<'a>(
    feeds: impl Iterator<Item = &'a IndexedFeed>,
    query: &DashboardQuery,
    now: Time,
) -> ListPage<'a> {
    let is_found =
        |feed: &&IndexedFeed| query.filter.admits(feed, now) && feed.text.contains(&query.search);
    let mut found: Vec<&IndexedFeed> = feeds.filter(is_found).collect();
    match query.order {
        FeedOrder::List => {}
        // It begins with the title.
        FeedOrder::Title => found.sort_by(|one, other| one.text.cmp(&other.text)),
        FeedOrder::Changed => found.sort_by_key(|feed| Reverse(feed.figures.changed)),
        FeedOrder::Next => {
            found.sort_by_key(|feed| (feed.polling.next_poll.is_none(), feed.polling.next_poll))
        }
        FeedOrder::Items => found.sort_by_key(|feed| Reverse(feed.figures.living)),
    }
    let (feeds, place) = PagePlace::cut(found, query.page);
    ListPage { feeds: feeds.collect(), place }
}

/// Sums over all feeds that are served.
#[derive(Debug, Default)]
pub(super) struct ListTotals {
    /// How many feeds each filter shows.
    shown: HashMap<FeedFilter, usize>,
    pub(super) current: u64,
    pub(super) living: u64,
    pub(super) tombstones: u64,
    /// Feeds that changed within a day.
    pub(super) changed_today: usize,
    /// What changed at times that have still to come.
    pub(super) ahead: TicksAhead,
}

impl ListTotals {
    /// Adds up what all feeds have.
    pub(super) fn new<'a>(feeds: impl Iterator<Item = &'a IndexedFeed>, now: Time) -> Self {
        let mut totals = Self::default();
        for feed in feeds {
            let figures = &feed.figures;
            totals.ahead.note(feed.name(), figures.changed, now);
            for filter in FeedFilter::ALL.iter().filter(|filter| filter.admits(feed, now)) {
                *totals.shown.entry(*filter).or_default() += 1;
            }
            if feed.is_served() {
                totals.current += u64::from(figures.current);
                totals.living += u64::from(figures.living);
                totals.tombstones += u64::from(figures.tombstones);
                let age = figures.changed.map(|tick| now.since(tick.time()));
                totals.changed_today += usize::from(age.is_some_and(|age| age < DAY));
            }
        }
        totals
    }

    /// How many feeds a filter shows.
    pub(super) fn shown_by(&self, filter: FeedFilter) -> usize {
        self.shown.get(&filter).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;
    use tidegate_core::model::{FeedName, FeedRecord, FeedSource, Tick};
    use tidegate_status::PollGaps;

    const NOW: Time = Time::from_unix(200);

    fn names(feeds: &[IndexedFeed], query: &DashboardQuery) -> Vec<String> {
        let list = select(feeds.iter(), query, NOW);
        list.feeds.iter().map(|feed| feed.name().to_string()).collect()
    }

    fn stands(feed: &mut IndexedFeed, standing: FeedStanding) {
        feed.record = Arc::new(FeedRecord { standing, ..(*feed.record).clone() });
    }

    /// Four feeds, each with a trouble of its own, one without, and one that was deleted.
    fn feeds() -> Vec<IndexedFeed> {
        let names = ["failing", "held", "conflict", "gap", "fine", "gone", "paused"];
        let feed = |name: &str| {
            let url = format!("https://{name}.example/feed.xml");
            let record = FeedRecord::new(FeedName::new(name).unwrap(), url, FeedSource::Api);
            IndexedFeed::new(&Arc::new(record), false)
        };
        let mut feeds = names.map(feed).to_vec();
        feeds[0].polling.failures = 1;
        feeds[1].figures.held = Some("empty".into());
        feeds[2].figures.contested = 1;
        feeds[3].polling.gaps = PollGaps { count: 1, last: Some(Time::from_unix(7)) };
        feeds[4].figures.changed = Some(Tick::at(Time::from_unix(100)));
        stands(&mut feeds[5], FeedStanding::Gone);
        stands(&mut feeds[6], FeedStanding::Paused);
        feeds
    }

    #[test]
    fn each_filter_shows_what_it_says_and_the_sums_agree() {
        let mut feeds = feeds();
        let totals = ListTotals::new(feeds.iter(), NOW);
        for (filter, shown) in [
            (FeedFilter::All, vec!["failing", "held", "conflict", "gap", "fine", "paused"]),
            (FeedFilter::Problems, vec!["failing", "held", "conflict", "gap"]),
            (FeedFilter::Failing, vec!["failing"]),
            (FeedFilter::Held, vec!["held"]),
            (FeedFilter::Conflicts, vec!["conflict"]),
            (FeedFilter::Gaps, vec!["gap"]),
            (FeedFilter::Paused, vec!["paused"]),
            (FeedFilter::Gone, vec!["gone"]),
        ] {
            let query = DashboardQuery { filter, ..DashboardQuery::default() };
            assert_eq!(names(&feeds, &query), shown, "{filter:?}");
            assert_eq!(totals.shown_by(filter), shown.len(), "{filter:?}");
        }
        assert_eq!(totals.changed_today, 1);
        // Feeds are found by what they are called, and sorted.
        for (search, shown) in [("fai", "failing"), ("gap.example", "gap"), ("nothing", "")] {
            let query = DashboardQuery { search: search.to_owned(), ..DashboardQuery::default() };
            assert_eq!(names(&feeds, &query).join(" "), shown, "{search}");
        }
        feeds[3].polling.next_poll = Some(Time::from_unix(5));
        feeds[2].figures.living = 9;
        for (order, first) in [
            (FeedOrder::List, "failing"),
            (FeedOrder::Title, "conflict"),
            (FeedOrder::Changed, "fine"),
            (FeedOrder::Next, "gap"),
            (FeedOrder::Items, "conflict"),
        ] {
            let query = DashboardQuery { order, ..DashboardQuery::default() };
            assert_eq!(names(&feeds, &query)[0], first, "{order:?}");
        }
        // A search has a limit.
        let long = format!("q={}", "ä".repeat(300));
        assert_eq!(DashboardQuery::read(&long).unwrap().search.chars().count(), 100);
    }

    proptest! {
        #[test]
        fn an_address_leads_to_its_query(
            search in "[a-zäß&=+% ]{0,20}",
            filter in proptest::sample::select(FeedFilter::ALL.to_vec()),
            order in proptest::sample::select(FeedOrder::ALL.to_vec()),
            page in 1_usize..2_000,
        ) {
            let query = DashboardQuery { search: search.trim().to_owned(), filter, order, page };
            let address = query.address();
            let read = address.strip_prefix("/").and_then(|rest| rest.strip_prefix('?'));
            prop_assert_eq!(DashboardQuery::read(read.unwrap_or_default()).unwrap(), query);
        }
    }
}
