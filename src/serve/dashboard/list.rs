//! Which feeds the dashboard shows, in which order: a function of what is known of all of them.

use crate::paging::{self, NamedChoice as _, PagePlace, choices};
use crate::{Problem, Query, ReadQuery, explain, shown};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;
use tidegate_core::model::{
    FeedName, FeedRecord, FeedStanding, FeedState, ListPlace, Tick, Time, listed, shown_text,
};
use tidegate_status::FeedSummary;

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
    /// Whether it goes by the items in conflict.
    pub(super) const fn needs_conflicts(self) -> bool {
        matches!(self, Self::Problems | Self::Conflicts)
    }

    /// Whether it shows a feed.
    pub(super) fn admits(self, feed: &OverviewFeed) -> bool {
        let is_served = feed.standing != FeedStanding::Gone;
        match self {
            Self::Gone => !is_served,
            _ if !is_served => false,
            Self::All => true,
            Self::Problems => feed.has_problem(),
            Self::Failing => feed.is_failing,
            Self::Held => feed.held.is_some(),
            Self::Conflicts => feed.contested > 0,
            Self::Gaps => feed.gap.is_some(),
            Self::Paused => feed.standing == FeedStanding::Paused,
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

/// What the dashboard knows of a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OverviewFeed {
    pub(super) name: FeedName,
    /// What it is called: in the reader's list, by its publisher, else its name here.
    pub(super) title: String,
    /// The upstream's address as it may be shown; empty where it has none.
    pub(super) address: String,
    /// Where its items come from that no poll brings, in words.
    pub(super) made: Option<String>,
    pub(super) standing: FeedStanding,
    /// Whether only readers with a token may read it.
    pub(super) is_private: bool,
    /// The folder that it is in first, and the others; empty for none.
    pub(super) folder: String,
    pub(super) also: Vec<String>,
    pub(super) polling: FeedSummary,
    /// Whether its polls fail.
    pub(super) is_failing: bool,
    /// Why a document is held back, if one is.
    pub(super) held: Option<String>,
    /// How many items are in conflict.
    pub(super) contested: u32,
    /// When items may have been missed last, where that was lately.
    pub(super) gap: Option<Time>,
    /// Where permanent redirects lead, as it may be shown.
    pub(super) moved_to: Option<String>,
    /// What an aggregate could not gather, in words.
    pub(super) ungathered: Option<String>,
    /// When its last versions were taken in.
    pub(super) changed: Option<Tick>,
    /// When something that is pending is decided.
    pub(super) decides: Option<Time>,
    pub(super) current: u32,
    pub(super) living: u32,
    pub(super) tombstones: u32,
}

impl OverviewFeed {
    /// Puts together what is known of a feed; `is_private`: only readers with a token may read it.
    pub(super) fn new(
        (record, is_private): (&FeedRecord, bool),
        polling: FeedSummary,
        state: Option<&FeedState>,
        contested: u32,
        now: Time,
    ) -> Self {
        let ungathered = polling.gathered.as_ref().map(explain::ungathered);
        Self {
            name: record.name.clone(),
            title: record.shown_label(None).text.unwrap_or_else(|| record.name.to_string()),
            address: match record.has_upstream() {
                true => record.shown().text().to_owned(),
                false => String::new(),
            },
            made: explain::made(&record.options.sharing, record.has_upstream()),
            standing: record.standing,
            is_private,
            folder: String::new(),
            also: Vec::new(),
            is_failing: polling.is_failing(record),
            held: state.and_then(|state| state.hold.as_ref()).map(|hold| hold.reason.clone()),
            contested,
            gap: polling.gaps.lately(now),
            moved_to: polling
                .moved_to
                .as_ref()
                .map(|address| shown(address, record.options.secret)),
            ungathered: ungathered.filter(|parts| !parts.is_empty()).map(|parts| parts.join("; ")),
            changed: state.and_then(|state| state.tick),
            decides: state.and_then(|state| state.next_decision_at),
            current: state.map_or(0, |state| state.current),
            living: state.map_or(0, |state| state.living),
            tombstones: state.map_or(0, |state| state.tombstones),
            polling,
        }
    }

    /// Whether somebody should look at it.
    pub(super) fn has_problem(&self) -> bool {
        self.is_failing
            || self.held.is_some()
            || self.contested > 0
            || self.gap.is_some()
            || self.polling.is_hub_distrusted
            || self.ungathered.is_some()
    }

    /// Whether a text in lower case is found in what it is called.
    pub(super) fn contains(&self, text: &str) -> bool {
        let texts = [self.name.as_str(), &self.title, &self.address, &self.folder];
        text.is_empty() || texts.iter().any(|in_it| in_it.to_lowercase().contains(text))
    }
}

/// The feeds of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListPage<'a> {
    pub(super) feeds: Vec<&'a OverviewFeed>,
    pub(super) place: PagePlace,
}

/// Those of the feeds, which are in the order of the list, that a query asks for.
pub(super) fn select<'a>(feeds: &'a [OverviewFeed], query: &DashboardQuery) -> ListPage<'a> {
    let is_found = |feed: &&OverviewFeed| query.filter.admits(feed) && feed.contains(&query.search);
    let mut found: Vec<&OverviewFeed> = feeds.iter().filter(is_found).collect();
    match query.order {
        FeedOrder::List => {}
        FeedOrder::Title => found.sort_by_cached_key(|feed| feed.title.to_lowercase()),
        FeedOrder::Changed => found.sort_by_key(|feed| Reverse(feed.changed)),
        FeedOrder::Next => {
            found.sort_by_key(|feed| (feed.polling.next_poll.is_none(), feed.polling.next_poll))
        }
        FeedOrder::Items => found.sort_by_key(|feed| Reverse(feed.living)),
    }
    let (feeds, place) = PagePlace::cut(found, query.page);
    ListPage { feeds: feeds.collect(), place }
}

/// Sums over all feeds that are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListTotals {
    /// How many feeds each filter shows.
    shown: Vec<(FeedFilter, usize)>,
    pub(super) current: u64,
    pub(super) living: u64,
    pub(super) tombstones: u64,
    /// Feeds that changed within a day.
    pub(super) changed_today: usize,
}

impl ListTotals {
    /// Adds up what all feeds have.
    pub(super) fn new(feeds: &[OverviewFeed], now: Time) -> Self {
        let served = || feeds.iter().filter(|feed| FeedFilter::All.admits(feed));
        let sum =
            |number: fn(&OverviewFeed) -> u32| served().map(|feed| u64::from(number(feed))).sum();
        let shown = |filter: FeedFilter| feeds.iter().filter(|feed| filter.admits(feed)).count();
        let is_today = |feed: &&OverviewFeed| {
            feed.changed.is_some_and(|tick| now.since(tick.time()) < Duration::from_secs(86_400))
        };
        Self {
            shown: FeedFilter::ALL.iter().map(|filter| (*filter, shown(*filter))).collect(),
            current: sum(|feed| feed.current),
            living: sum(|feed| feed.living),
            tombstones: sum(|feed| feed.tombstones),
            changed_today: served().filter(is_today).count(),
        }
    }

    /// How many feeds a filter shows.
    pub(super) fn shown_by(&self, filter: FeedFilter) -> usize {
        let found = self.shown.iter().find(|(of, _)| *of == filter);
        found.map_or(0, |(_, feeds)| *feeds)
    }
}

/// Puts feeds into the order of the reader's list, and says where each is in it.
pub(super) fn place<'a>(feeds: &mut [OverviewFeed], records: impl Iterator<Item = &'a FeedRecord>) {
    let mut order: HashMap<&FeedName, usize> = HashMap::with_capacity(feeds.len());
    let by_name = feeds.iter_mut().map(|feed| (feed.name.clone(), feed));
    let mut by_name: HashMap<FeedName, &mut OverviewFeed> = by_name.collect();
    for (at, (record, place)) in listed(records).into_iter().enumerate() {
        let Some(feed) = by_name.get_mut(&record.name) else { continue };
        let folder = place.map(folder_path).unwrap_or_default();
        if order.contains_key(&record.name) {
            feed.also.push(folder);
            continue;
        }
        order.insert(&record.name, at);
        feed.folder = folder;
        // What the reader calls it goes before what its publisher does.
        let label = place.filter(|place| place.label.name().is_some());
        if let Some(title) = label.and_then(|place| record.shown_label(Some(place)).text) {
            feed.title = title;
        }
    }
    // What the list does not know yet comes last.
    feeds.sort_by_key(|feed| order.get(&feed.name).copied().unwrap_or(usize::MAX));
}

/// The folders around a place, as a page shows them.
fn folder_path(place: &ListPlace) -> String {
    let names = place.folders.iter().map(|folder| {
        let name = folder.label.heading().map(|name| shown_text(name, None));
        name.unwrap_or_else(|| "(no name)".to_owned())
    });
    names.collect::<Vec<_>>().join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tidegate_core::model::FeedSource;

    fn feed(name: &str) -> OverviewFeed {
        let record = FeedRecord::new(
            FeedName::new(name).unwrap(),
            format!("https://{name}.example/feed.xml"),
            FeedSource::Api,
        );
        OverviewFeed::new((&record, false), FeedSummary::default(), None, 0, Time::from_unix(0))
    }

    fn names(list: &ListPage<'_>) -> Vec<String> {
        list.feeds.iter().map(|feed| feed.name.to_string()).collect()
    }

    /// Four feeds, each with a trouble of its own, one without, and one that was deleted.
    fn feeds() -> Vec<OverviewFeed> {
        let mut feeds: Vec<_> =
            ["failing", "held", "conflict", "gap", "fine", "gone"].map(feed).to_vec();
        (feeds[0].is_failing, feeds[1].held) = (true, Some("empty".to_owned()));
        (feeds[2].contested, feeds[3].gap) = (1, Some(Time::from_unix(7)));
        feeds[4].changed = Some(Tick::at(Time::from_unix(100)));
        feeds[5].standing = FeedStanding::Gone;
        let mut paused = feed("paused");
        paused.standing = FeedStanding::Paused;
        feeds.push(paused);
        feeds
    }

    #[test]
    fn each_filter_shows_what_it_says_and_the_sums_agree() {
        let feeds = feeds();
        let totals = ListTotals::new(&feeds, Time::from_unix(200));
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
            assert_eq!(names(&select(&feeds, &query)), shown, "{filter:?}");
            assert_eq!(totals.shown_by(filter), shown.len(), "{filter:?}");
        }
        assert_eq!(totals.changed_today, 1);
    }

    #[test]
    fn feeds_are_found_by_title_name_address_and_folder_and_sorted() {
        let mut feeds = feeds();
        (feeds[0].title, feeds[1].folder) = ("Überblick".to_owned(), "Science".to_owned());
        for (search, shown) in
            [("überb", "failing"), ("scien", "held"), ("gap.example", "gap"), ("nothing", "")]
        {
            let query = DashboardQuery { search: search.to_owned(), ..DashboardQuery::default() };
            assert_eq!(names(&select(&feeds, &query)).join(" "), shown, "{search}");
        }
        feeds[3].polling.next_poll = Some(Time::from_unix(5));
        feeds[2].living = 9;
        for (order, first) in [
            (FeedOrder::List, "failing"),
            (FeedOrder::Title, "conflict"),
            (FeedOrder::Changed, "fine"),
            (FeedOrder::Next, "gap"),
            (FeedOrder::Items, "conflict"),
        ] {
            let query = DashboardQuery { order, ..DashboardQuery::default() };
            assert_eq!(names(&select(&feeds, &query))[0], first, "{order:?}");
        }
    }

    #[test]
    fn a_query_that_means_nothing_is_refused_with_what_would() {
        for (query, key) in
            [("show=x", "show"), ("sort=", "sort"), ("page=0", "page"), ("page=x", "page")]
        {
            let problem = serde_json::to_value(DashboardQuery::read(query).unwrap_err()).unwrap();
            assert_eq!(problem["parameter"], key, "{query}");
        }
        let long = format!("q={}", "ä".repeat(300));
        assert_eq!(DashboardQuery::read(&long).unwrap().search.chars().count(), 100);
    }

    proptest! {
        /// What a link says is what is read from it.
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

        /// Every feed is on one page, whatever the order.
        #[test]
        fn pages_have_every_feed_once(
            number in 0_usize..240,
            order in proptest::sample::select(FeedOrder::ALL.to_vec()),
        ) {
            let feeds: Vec<_> = (0..number).map(|n| feed(&format!("f{n}"))).collect();
            let mut seen = Vec::new();
            for page in 1..=number.div_ceil(paging::PAGE) {
                let query = DashboardQuery { order, page, ..DashboardQuery::default() };
                seen.extend(names(&select(&feeds, &query)));
            }
            seen.sort_unstable();
            let mut all: Vec<String> = feeds.iter().map(|feed| feed.name.to_string()).collect();
            all.sort_unstable();
            prop_assert_eq!(seen, all);
        }
    }
}
