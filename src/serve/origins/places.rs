//! At which addresses feeds are beside `/feeds/NAME`: at their publisher's path below an origin, or at a path of
//! their own.

use std::collections::HashMap;
use std::sync::Arc;
use tidegate_core::model::{FeedName, FeedRecord, FeedStanding, ShownAddress};
use tidegate_format::render::Container;
use tidegate_net::origin::{OriginPlace, OriginSite};
use tidegate_store::FeedList;
use url::Url;

/// What says where feeds are.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlaceRules {
    pub(crate) sites: Vec<Arc<OriginSite>>,
    pub(crate) paths: HashMap<FeedName, String>,
    /// The address of this gateway, without a slash at its end.
    pub(crate) base: String,
}

/// Feeds with an address of their own.
#[derive(Debug, Default)]
pub(crate) struct FeedPlaces {
    by_path: HashMap<String, FeedName>,
    by_upstream: HashMap<String, FeedName>,
    by_address: HashMap<String, FeedName>,
    addresses: HashMap<FeedName, FeedPlace>,
    /// What references are relative to, of feeds whose publisher's paths are those of ours; of private ones too.
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
    /// Of these feeds; none of a private one, which is nowhere but where its readers find it.
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
            let path = rules.paths.get(&record.name).map(|path| (path, rules.base.clone() + path));
            let upstream = UpstreamPlace::of(rules, record);
            let own = path.as_ref().map(|(_, address)| address.clone());
            let host = upstream.as_ref().filter(|place| place.is_host);
            if let Some(base) = own.or_else(|| host.map(|place| place.shown.base(None))) {
                places.bases.insert(record.name.clone(), base);
            }
            if is_private(&record.name) {
                continue;
            }
            if let Some((path, address)) = path {
                places.by_path.insert(path.clone(), record.name.clone());
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

    /// A feed whose upstream is below an origin. Of several with one upstream, one that is not deleted and that
    /// the operator made goes before. Where the address has a key in it, the feed is found by who knows it, and named
    /// by that address to nobody.
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

    /// The feed at a path of its own.
    pub(crate) fn feed_at_path(&self, path: &str) -> Option<&FeedName> {
        self.by_path.get(path)
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

    /// The address of a feed that what it refers to is relative to, where that is ours.
    pub(crate) fn base(&self, feed: &FeedName) -> Option<&str> {
        self.bases.get(feed).map(String::as_str)
    }

    /// Whether a feed is answered as JSON Feed at its publisher's address.
    pub(crate) fn is_json(&self, feed: &FeedName) -> bool {
        self.addresses.get(feed).is_some_and(|place| place.is_json)
    }
}
