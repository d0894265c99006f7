//! At which addresses feeds are beside `/feeds/NAME`: at their publisher's path below an origin, or at a path of
//! their own.
//!
//! How much feeds and addresses of sites are asked for: when last, by which clients lately, and whether the front page of
//! the site names them. By that it is told which feed gives way where a site has as many as it may. All of it is forgotten at a restart.

use super::looks::key;
use crate::{Cache, Client, locked};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedRecord, FeedStanding, ShownAddress, Time};
use tidegate_format::render::Container;
use tidegate_net::origin::{OriginPlace, OriginSite, site_of};
use tidegate_store::FeedList;
use tokio::sync::Notify;
use url::Url;

/// What says where feeds are.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PlaceRules {
    pub(crate) sites: Vec<Arc<OriginSite>>,
    pub(crate) paths: HashMap<FeedName, String>,
    /// The address of this gateway, without a slash at its end.
    pub(crate) base: String,
}

impl PlaceRules {
    /// Whether a poll of an address tells the site the same name as a request that is passed on by way of this origin,
    /// and not that of another origin with this address.
    pub(super) fn is_polled_as(&self, site: &OriginSite, url: &Url) -> bool {
        site_of(&self.sites, url).is_some_and(|polled| **polled == *site)
    }
}

/// Feeds with an address of their own.
#[derive(Debug, Default)]
pub(crate) struct FeedPlaces {
    by_upstream: HashMap<String, FeedName>,
    by_address: HashMap<String, FeedName>,
    addresses: HashMap<FeedName, FeedPlace>,
    /// The base URL of a feed's references, for feeds at a path of their own or at their publisher's host here; of
    /// private ones too.
    bases: HashMap<FeedName, String>,
}

/// The address that a feed's reader view has beside `/feeds/NAME`.
#[derive(Debug)]
struct FeedPlace {
    address: String,
    /// Whether it is answered there as JSON Feed.
    is_json: bool,
}

/// Where a feed's upstream is below an origin.
struct UpstreamPlace {
    /// The address there, by which requests for it are known.
    there: Url,
    /// The address here, as it may be shown.
    shown: ShownAddress,
    /// Whether it is at a host of its own.
    is_host: bool,
}

impl UpstreamPlace {
    fn of(rules: &PlaceRules, record: &FeedRecord) -> Option<Self> {
        if rules.sites.is_empty() || !record.has_upstream() || record.options.sharing.local {
            return None;
        }
        let url = Url::parse(&record.url).ok()?;
        let holds = rules.sites.iter().find(|site| site.holds(&url));
        // One with a site's public address is polled there as well.
        let is_ours = || rules.sites.iter().find(|site| site.is_public(&record.url));
        let site = holds.or_else(is_ours)?;
        let there = site.there(&url)?;
        let here = site.public_address(&there)?;
        let shown = ShownAddress::new(&here, record.options.secret);
        let is_host = matches!(site.config().place, OriginPlace::Host(_));
        Some(Self { there, shown, is_host })
    }
}

impl FeedPlaces {
    /// The places of these feeds. A private feed has none: only the addresses of its readers lead to it.
    pub(crate) fn new(
        rules: &PlaceRules,
        feeds: &FeedList,
        is_private: impl Fn(&FeedName) -> bool,
    ) -> Self {
        let mut places = Self::default();
        if rules.sites.is_empty() && rules.paths.is_empty() {
            return places;
        }
        for record in feeds.values() {
            let path = rules.paths.get(&record.name).map(|path| rules.base.clone() + path);
            let upstream = UpstreamPlace::of(rules, record);
            let host = upstream.as_ref().filter(|place| place.is_host);
            if let Some(base) = path.clone().or_else(|| host.map(|place| place.shown.base(None))) {
                places.bases.insert(record.name.clone(), base);
            }
            if is_private(&record.name) {
                continue;
            }
            if let Some(address) = path {
                places.add(record, address);
            }
            if let Some(place) = upstream {
                places.add_upstream(feeds, record, place);
            }
        }
        places
    }

    fn add(&mut self, record: &FeedRecord, address: String) {
        self.by_address.insert(address.clone(), record.name.clone());
        let is_json = record.on_demand.as_ref().is_some_and(|made| made.is_json);
        self.addresses.insert(record.name.clone(), FeedPlace { address, is_json });
    }

    /// Adds a feed whose upstream is below an origin. Of several with one upstream the first wins that is not deleted,
    /// and that the operator made. An address with a secret key in it finds the feed, but no document names it.
    fn add_upstream(&mut self, feeds: &FeedList, record: &FeedRecord, place: UpstreamPlace) {
        let rank = |it: &FeedRecord| (it.standing == FeedStanding::Gone, it.on_demand.is_some());
        let before = self.by_upstream.get(place.there.as_str()).and_then(|name| feeds.get(name));
        if let Some(before) = before {
            if rank(before) <= rank(record) {
                return;
            }
            self.addresses.remove(&before.name);
        }
        self.by_upstream.insert(place.there.into(), record.name.clone());
        if let Some(address) = place.shown.link()
            && !self.addresses.contains_key(&record.name)
        {
            self.add(record, address.to_owned());
        }
    }

    /// The feed whose upstream is at an address.
    pub(crate) fn feed_of(&self, upstream: &Url) -> Option<&FeedName> {
        self.by_upstream.get(upstream.as_str())
    }

    /// The feed whose address here is this one.
    pub(crate) fn feed_at(&self, address: &str) -> Option<&FeedName> {
        self.by_address.get(address)
    }

    /// The address of a feed's reader view in a container (`None`: its own one), where it has one beside
    /// `/feeds/NAME`.
    pub(crate) fn address(&self, feed: &FeedName, container: Option<Container>) -> Option<&str> {
        let place = self.addresses.get(feed)?;
        let own = place.is_json.then_some(Container::JsonFeed);
        (own == container).then_some(place.address.as_str())
    }

    /// The base URL of a feed's references, if that is an address of this gateway.
    pub(crate) fn base(&self, feed: &FeedName) -> Option<&str> {
        self.bases.get(feed).map(String::as_str)
    }

    /// Whether a feed is answered as JSON Feed at its publisher's address.
    pub(crate) fn is_json(&self, feed: &FeedName) -> bool {
        self.addresses.get(feed).is_some_and(|place| place.is_json)
    }
}

/// For how long it counts that somebody asked: readers ask once a day at least.
const LATELY: Duration = Duration::from_secs(2 * 86_400);
/// How soon it is noted anew that a client asks.
const NOTED_EVERY: Duration = Duration::from_secs(3600);
/// How many clients of an address are told apart.
const CLIENTS: usize = 16;
/// How many addresses are remembered, and for how long it is that a page names one.
const ADDRESSES: u64 = 100_000;
const NAMED_AGE: Duration = Duration::from_secs(30 * 86_400);

/// Who asked for an address, and when last.
type Askers = Vec<(Client, Time)>;

/// The demand for feeds that requests made: when each was last asked for, and which clients ask for an address, by
/// its key.
#[derive(Debug)]
pub struct FeedDemand {
    times: Mutex<HashMap<FeedName, Time>>,
    wanted: Notify,
    askers: Cache<u64, Askers>,
    named: Cache<u64, ()>,
}

impl Default for FeedDemand {
    fn default() -> Self {
        Self {
            times: Mutex::default(),
            wanted: Notify::new(),
            askers: Cache::with_ttl(ADDRESSES, LATELY),
            named: Cache::with_ttl(ADDRESSES, NAMED_AGE),
        }
    }
}

/// How much an address is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demand {
    is_named: bool,
    pub(super) clients: usize,
    /// The client, where one alone asks.
    only: Option<Client>,
}

impl FeedDemand {
    /// Notes that a feed was asked for or announced.
    pub fn note(&self, feed: &FeedName, now: Time) {
        locked(&self.times).entry(feed.clone()).and_modify(|at| *at = now.max(*at)).or_insert(now);
    }

    /// Notes that a feed was asked for that was let go.
    pub fn want(&self, feed: &FeedName, now: Time) {
        self.note(feed, now);
        self.wanted.notify_one();
    }

    /// Forgets when a feed was asked for that is no more.
    pub fn forget(&self, feed: &FeedName) {
        locked(&self.times).remove(feed);
    }

    /// Comes when a feed was asked for that was let go.
    pub async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// When each was, since the start.
    pub fn all(&self) -> HashMap<FeedName, Time> {
        locked(&self.times).clone()
    }

    /// Notes that a client asks for an address.
    pub(crate) fn note_client(&self, url: &str, client: Client, now: Time) {
        let (key, client) = (key(url), client.network());
        let known = self.askers.get(&key).unwrap_or_default();
        if known.iter().any(|(of, at)| *of == client && now.since(*at) < NOTED_EVERY) {
            return;
        }
        let others = known.iter().filter(|(of, at)| *of != client && now.since(*at) < LATELY);
        let mut askers: Vec<_> = others.copied().collect();
        if askers.len() >= CLIENTS {
            askers.sort_unstable_by_key(|(_, at)| *at);
            askers.remove(0);
        }
        askers.push((client, now));
        self.askers.insert(key, askers);
    }

    /// Notes that the front page of its site names a feed at an address.
    pub(crate) fn note_named(&self, url: &Url) {
        self.named.insert(key(url.as_str()), ());
    }

    /// How much an address is asked for lately, as far as clients are told apart.
    pub(super) fn of(&self, url: &str, now: Time) -> Demand {
        let key = key(url);
        let askers = self.askers.get(&key).unwrap_or_default();
        let mut lately = askers.iter().filter(|(_, at)| now.since(*at) < LATELY);
        let clients = lately.clone().count();
        let only = lately.next().filter(|_| clients == 1).map(|(client, _)| *client);
        Demand { is_named: self.named.get(&key).is_some(), clients, only }
    }

    /// The demand for an existing feed. If no client is known any more, its stored time of last use counts.
    fn of_feed(&self, feed: &FeedRecord, now: Time) -> Demand {
        let demand = self.of(&feed.url, now);
        let last_use = feed.on_demand.as_ref().map_or(Time::MIN, |made| made.asked);
        let clients = match demand.clients {
            0 if now.since(last_use) < LATELY => usize::MAX,
            clients => clients,
        };
        Demand { clients, only: demand.only.filter(|_| clients == 1), ..demand }
    }

    /// Chooses the feed to remove for a new one at `to`: the one in least demand, if that is less than the new one's.
    /// Feeds that one client alone asks for rank lower the more such feeds that client has. Feeds with subscribers at
    /// the hub stay.
    pub fn choose_evicted<'f>(
        &self,
        feeds: &[&'f FeedRecord],
        has_subscribers: impl Fn(&FeedName) -> bool,
        to: &Url,
        now: Time,
    ) -> Option<&'f FeedRecord> {
        let newcomer = self.of(to.as_str(), now);
        let feeds = feeds.iter().filter(|feed| !has_subscribers(&feed.name));
        let all: Vec<_> = feeds.map(|feed| (self.of_feed(feed, now), *feed)).collect();
        let mut counts: HashMap<Client, usize> = HashMap::new();
        for only in all.iter().filter_map(|(demand, _)| demand.only) {
            *counts.entry(only).or_default() += 1;
        }
        let count =
            |demand: &Demand| demand.only.and_then(|only| counts.get(&only)).copied().unwrap_or(0);
        // What one client alone asks for goes sooner the more such feeds it has.
        let rank = |demand: &Demand, more: usize| {
            (demand.is_named, demand.clients, Reverse(count(demand) + more))
        };
        let last_use = |feed: &FeedRecord| feed.on_demand.as_ref().map(|made| made.asked);
        let least = all.iter().min_by_key(|(demand, feed)| (rank(demand, 0), last_use(feed)));
        let (demand, feed) = least?;
        (rank(demand, 0) < rank(&newcomer, 1)).then_some(*feed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{DAY, at, client};

    fn feeds(urls: &[&str]) -> Vec<FeedRecord> {
        let made = |(n, url): (usize, &&str)| {
            let name = FeedName::new(&format!("f{n}")).unwrap();
            FeedRecord::on_demand(name, url, "http://a/", at(0))
        };
        urls.iter().enumerate().map(made).collect()
    }

    fn gives_way(demand: &FeedDemand, urls: &[&str], to: &str, now: i64) -> Option<String> {
        let feeds = feeds(urls);
        let all: Vec<_> = feeds.iter().collect();
        let url = Url::parse(to).unwrap();
        demand.choose_evicted(&all, |_| false, &url, at(now)).map(|feed| feed.url.clone())
    }

    const NEW: &str = "http://a/new";

    #[test]
    fn what_one_client_filled_a_site_with_gives_way_to_another_one() {
        let demand = FeedDemand::default();
        let urls = ["http://a/1", "http://a/2", "http://a/3", "http://a/own"];
        let (junk, own) = urls.split_at(3);
        junk.iter().for_each(|url| demand.note_client(url, client(1), at(0)));
        demand.note_client(own[0], client(2), at(0));
        demand.note_client(NEW, client(1), at(0));
        assert_eq!(gives_way(&demand, &urls, NEW, 1), None, "it has most itself");
        let demand_of = |last: u8| {
            demand.note_client("http://a/other", client(last), at(0));
            gives_way(&demand, &urls, "http://a/other", 1)
        };
        assert!(demand_of(3).is_some_and(|url| junk.contains(&url.as_str())));
        // Of those that a few clients ask for, none gives way to what one asks for.
        urls.iter().for_each(|url| demand.note_client(url, client(9), at(1)));
        demand.note_client("http://a/x", client(4), at(1));
        assert_eq!(gives_way(&demand, &urls, "http://a/x", 1), None);
        // What more ask for, or the front page names, comes first.
        let demand = FeedDemand::default();
        let urls = ["http://a/1", "http://a/2"];
        for (url, clients) in urls.iter().zip([1..=2, 1..=3]) {
            clients.for_each(|last| demand.note_client(url, client(last), at(0)));
        }
        for (last, expected) in [(11, None), (12, None), (13, Some(urls[0].to_owned()))] {
            demand.note_client(NEW, client(last), at(0));
            assert_eq!(gives_way(&demand, &urls, NEW, 1), expected, "{last}");
        }
        // The same client again and again is one.
        for hour in 0..10 {
            demand.note_client("http://a/own", client(1), at(hour * 3600));
        }
        assert_eq!(gives_way(&demand, &urls, "http://a/own", 1), None);
        demand.note_named(&Url::parse("http://a/own").unwrap());
        assert_eq!(gives_way(&demand, &urls, "http://a/own", 1), Some(urls[0].to_owned()));
        urls.iter().for_each(|url| demand.note_named(&Url::parse(url).unwrap()));
        (20..40).for_each(|last| demand.note_client(NEW, client(last), at(0)));
        assert_eq!(gives_way(&demand, &urls, NEW, 1), None, "all are named");
        // What nobody asks for any more goes, and what is not known stays.
        let demand = FeedDemand::default();
        let urls = ["http://a/1"];
        demand.note_client(NEW, client(1), at(0));
        // It was asked for before the start.
        assert_eq!(gives_way(&demand, &urls, NEW, DAY), None);
        demand.note_client(urls[0], client(1), at(DAY));
        demand.note_client(urls[0], client(2), at(DAY));
        demand.note_client(NEW, client(3), at(4 * DAY));
        assert_eq!(gives_way(&demand, &urls, NEW, 4 * DAY), Some(urls[0].to_owned()));
        // What subscribers want stays.
        let (demand, urls) = (FeedDemand::default(), ["http://a/1", "http://a/2"]);
        let (feeds, url) = (feeds(&urls), Url::parse(NEW).unwrap());
        let all: Vec<_> = feeds.iter().collect();
        urls.iter().for_each(|url| demand.note_client(url, client(1), at(0)));
        [2, 3].iter().for_each(|last| demand.note_client(NEW, client(*last), at(0)));
        let goes = |subscribed: &[&str]| {
            let is_one = |feed: &FeedName| subscribed.contains(&feed.as_str());
            demand.choose_evicted(&all, is_one, &url, at(1)).map(|feed| feed.name.to_string())
        };
        assert_eq!(goes(&["f0"]).as_deref(), Some("f1"));
        assert_eq!(goes(&["f0", "f1"]), None);
        // So many clients are told apart.
        let demand = FeedDemand::default();
        (0..=u8::MAX).for_each(|last| demand.note_client(NEW, client(last), at(i64::from(last))));
        assert_eq!(demand.of(NEW, at(300)).clients, CLIENTS);
    }
}
