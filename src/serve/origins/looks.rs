//! Looks at addresses of sites, to see whether a feed is there: which are under way, what those before found, and how
//! many there may be.

use crate::shares::Share;
use crate::{Cache, Client, FairShares, Problem, Rate, RateLimiter, locked};
use http::StatusCode;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout};
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

/// Requests of ours at the same time, to see what is there: to one site, and those of one client, to all sites.
const SITE_LOOKS: u32 = 8;
const CLIENT_LOOKS: u32 = 2;
/// How fast addresses are looked at of which nothing is known: those of one site, and those that one client asks for.
/// What was found and became a feed does not count.
const SITE_PACE: Rate = Rate { burst: 30, each: Duration::from_millis(333) };
const CLIENT_PACE: Rate = Rate { burst: 20, each: Duration::from_secs(6) };
/// The part of a site's burst that is reserved for clients whose own rate is unused.
const RESERVED_BURST: u32 = 10;
/// Documents that may become feeds and are held in memory at the same time, of all sites.
const DOCUMENTS_AT_ONCE: usize = 16;
/// How many addresses are remembered, and for how long where they lead is.
const ADDRESSES: u64 = 100_000;
const LEAD_AGE: Duration = Duration::from_secs(86_400);
/// For how long a look is good that found a page, or where an address leads.
pub(super) const PAGE_AGE: Duration = Duration::from_secs(600);
/// For how long one is that found nothing, or another document: a site that is being worked on answers so for a moment.
pub(super) const NOTHING_AGE: Duration = Duration::from_secs(60);
/// How often requests for a feed check whether its polls fail.
const POLL_CHECKS: Rate = Rate { burst: 1, each: Duration::from_secs(60) };
/// How soon to ask again where too much is asked for.
const AGAIN: Duration = Duration::from_secs(5);

/// A permit of one client at one site, returned when dropped.
#[derive(Debug)]
pub(crate) struct ClientSitePermit {
    _own: Share<Client>,
    _site: Share<Url>,
}

/// Permits by client and by site: each has a share, so that none takes them from others. For looks and for slow
/// uploads.
pub(super) struct ClientSitePermits {
    clients: FairShares<Client>,
    sites: FairShares<Url>,
}

impl ClientSitePermits {
    pub(super) fn new(client: u32, site: u32) -> Self {
        Self { clients: FairShares::new(client), sites: FairShares::new(site) }
    }

    /// Waits at most `wait` for a permit.
    pub(super) async fn acquire(
        &self,
        (site, client): (&Url, Client),
        wait: Duration,
    ) -> Result<ClientSitePermit, Problem> {
        let (until, client) = (Instant::now() + wait, client.network());
        // One that is over its own share takes nothing of the site's from others.
        let own = self.clients.acquire_by(&client, 1, until).await.ok_or_else(|| {
            Problem::later("too many new addresses are looked at for this client").after(AGAIN)
        })?;
        let of_site = self.sites.acquire_by(site, 1, until).await.ok_or_else(|| {
            Problem::later("too many new addresses are asked for at once").after(AGAIN)
        })?;
        Ok(ClientSitePermit { _own: own, _site: of_site })
    }
}

/// What a look found at an address that is no feed.
struct KnownAddress {
    /// Where it leads at this gateway, and by which status.
    lead: Option<(StatusCode, String)>,
    until: Instant,
}

/// For each address that is looked at, whether others wait for the feed that is made of it.
type RunningLooks = Mutex<HashMap<u64, watch::Receiver<bool>>>;

/// Looks that are being made, and what is known of those that were.
pub(crate) struct Looks {
    running: Arc<RunningLooks>,
    known: Cache<u64, KnownAddress>,
    /// Limits how often the polls of a feed are checked.
    poll_checks: RateLimiter<u64>,
    /// Permits for requests to sites, and the rates at which sites are asked and clients ask.
    permits: ClientSitePermits,
    sites: RateLimiter<Url>,
    clients: RateLimiter<Client>,
    /// Addresses at which `/subscribe` found no feed.
    missing: Cache<u64, ()>,
    /// Permits to hold a document that may become a feed in memory.
    pub(super) documents: Semaphore,
}

/// The look at an address, until it is dropped.
pub(super) struct Look {
    key: u64,
    running: Arc<RunningLooks>,
    is_waited_for: watch::Sender<bool>,
}

pub(super) fn key(url: &str) -> u64 {
    xxh3_64(url.as_bytes())
}

impl Looks {
    pub(super) fn new() -> Self {
        Self {
            running: Arc::default(),
            known: Cache::with_ttl(ADDRESSES, LEAD_AGE),
            poll_checks: RateLimiter::default(),
            permits: ClientSitePermits::new(CLIENT_LOOKS, SITE_LOOKS),
            sites: RateLimiter::default(),
            clients: RateLimiter::default(),
            missing: Cache::with_ttl(ADDRESSES, NOTHING_AGE),
            documents: Semaphore::new(DOCUMENTS_AT_ONCE),
        }
    }

    /// Waits at most `wait` for the permit of a client to look at an unknown address of a site, and takes it off both
    /// rates.
    pub(crate) async fn acquire_permit(
        &self,
        (site, client): (&Url, Client),
        wait: Duration,
    ) -> Result<ClientSitePermit, Problem> {
        let permit = self.permits.acquire((site, client), wait).await?;
        self.keep_pace(site, client).map_err(|wait| {
            let detail =
                "more addresses are asked for of which nothing is known than the site is asked for";
            Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).after(wait)
        })?;
        Ok(permit)
    }

    fn keep_pace(&self, site: &Url, client: Client) -> Result<(), Duration> {
        if client == Client::Own {
            return Ok(());
        }
        let client = client.network();
        let wait = self.clients.wait(&client, CLIENT_PACE);
        if !wait.is_zero() {
            return Err(wait);
        }
        let burst = match self.clients.is_unused(&client) {
            true => SITE_PACE.burst,
            false => SITE_PACE.burst - RESERVED_BURST,
        };
        self.sites.take(site, Rate { burst, ..SITE_PACE })?;
        self.clients.take(&client, CLIENT_PACE)
    }

    /// Notes that a look found a feed, which is looked for no more.
    pub(crate) fn note_found(&self, site: &Url, client: Client) {
        self.sites.give_back(site, SITE_PACE);
        self.clients.give_back(&client.network(), CLIENT_PACE);
    }

    /// Notes that `/subscribe` found no feed at an address.
    pub(crate) fn note_missing(&self, url: &Url) {
        self.missing.insert(key(url.as_str()), ());
    }

    /// Whether that was noted a moment ago.
    pub(crate) fn is_missing(&self, url: &Url) -> bool {
        self.missing.get(&key(url.as_str())).is_some()
    }

    /// Notes for so long that no feed is at an address; `lead`: by which status it leads to another one here.
    pub(super) fn note(&self, url: &Url, lead: Option<(StatusCode, String)>, age: Duration) {
        self.known.insert(key(url.as_str()), KnownAddress { lead, until: Instant::now() + age });
    }

    /// Whether what was found at an address is good still.
    pub(super) fn is_known(&self, url: &Url) -> bool {
        self.known.get(&key(url.as_str())).is_some_and(|known| Instant::now() < known.until)
    }

    /// Where an address led when it was last looked at.
    pub(super) fn lead(&self, url: &Url) -> Option<(StatusCode, String)> {
        self.known.get(&key(url.as_str()))?.lead.clone()
    }

    /// Takes the one check a minute whether polls of a feed fail; false if it was taken.
    pub(super) fn take_poll_check(&self, url: &Url) -> bool {
        self.poll_checks.take(&key(url.as_str()), POLL_CHECKS).is_ok()
    }

    /// Begins to look at an address; `None` where somebody does, or what was found before is good still.
    pub(super) fn begin(&self, url: &Url) -> Option<Look> {
        if self.is_known(url) {
            return None;
        }
        let key = key(url.as_str());
        let mut running = locked(&self.running);
        if running.contains_key(&key) {
            return None;
        }
        let (is_waited_for, others) = watch::channel(true);
        running.insert(key, others);
        Some(Look { key, running: Arc::clone(&self.running), is_waited_for })
    }

    /// Waits at most `wait` while another request looks at an address or makes a feed of it. Does not wait for a feed
    /// that keeps its publisher's ids: the publisher's own document does as well meanwhile.
    pub(super) async fn wait_for_look(&self, url: &Url, wait: Duration) {
        let look = locked(&self.running).get(&key(url.as_str())).cloned();
        if let Some(mut look) = look.filter(|look| *look.borrow()) {
            let _ = timeout(wait, look.wait_for(|is_waited_for| !is_waited_for)).await;
        }
    }
}

impl Look {
    /// Lets others wait no more: the feed will have the ids of its publisher's document.
    pub(super) fn release_others(&self) {
        self.is_waited_for.send_replace(false);
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        locked(&self.running).remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::client;
    use tidegate_net::testing::url;
    use tokio::time::advance;

    const WAIT: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn one_looks_and_others_wait_unless_ids_stay() {
        let (looks, at) = (Looks::new(), url("http://a/feed"));
        let waits = async || {
            let begun = Instant::now();
            looks.wait_for_look(&at, WAIT).await;
            begun.elapsed()
        };
        let look = looks.begin(&at).unwrap();
        assert!(looks.begin(&at).is_none(), "two look");
        assert_eq!(waits().await, WAIT);
        let is_made = async {
            advance(WAIT / 2).await;
            drop(look);
        };
        let (waited, ()) = tokio::join!(waits(), is_made);
        assert_eq!((waited, waits().await), (WAIT / 2, Duration::ZERO));
        let look = looks.begin(&at).unwrap();
        look.release_others();
        assert_eq!(waits().await, Duration::ZERO);
        // What was found is good for a while, and where it leads until the next look.
        let (looks, at) = (Looks::new(), url("http://a/feed"));
        for age in [NOTHING_AGE, PAGE_AGE] {
            looks.note(&at, None, age);
            advance(age - Duration::from_secs(1)).await;
            assert!(looks.is_known(&at) && looks.begin(&at).is_none());
            advance(Duration::from_secs(1)).await;
            assert!(!looks.is_known(&at) && looks.begin(&at).is_some());
        }
        let lead = (StatusCode::MOVED_PERMANENTLY, "http://b/feed".to_owned());
        looks.note(&at, Some(lead.clone()), PAGE_AGE);
        advance(PAGE_AGE).await;
        assert_eq!((looks.is_known(&at), looks.lead(&at)), (false, Some(lead)));
        looks.note(&at, None, NOTHING_AGE);
        assert_eq!(looks.lead(&at), None);
        // One client takes no looks from another, and a site is asked eight things at once.
        let (looks, mut held) = (Looks::new(), Vec::new());
        let of_a = [("a", 1, 2), ("a", 2, 2), ("a", 3, 2), ("a", 4, 2), ("a", 5, 0)];
        for (site, last, count) in of_a.into_iter().chain([("b", 1, 0), ("b", 5, 2)]) {
            let (site, before) = (url(&format!("http://{site}/")), held.len());
            while let Ok(permit) = looks.permits.acquire((&site, client(last)), WAIT).await {
                held.push(permit);
            }
            assert_eq!(held.len() - before, count, "{last} at {site}");
        }
        held.remove(7);
        assert!(looks.permits.acquire((&url("http://a/"), client(4)), WAIT).await.is_ok());
        drop(held);
        assert_eq!((looks.permits.clients.keys(), looks.permits.sites.keys()), (0, 0));
        // A site is asked at a pace that no client takes from another.
        let (looks, site) = (Looks::new(), url("http://a/"));
        let look =
            async |last: u8| looks.acquire_permit((&site, client(last)), WAIT).await.map(drop);
        let mut asked = 0;
        // Two clients ask as fast as they are answered, for a minute.
        for second in 0..60 {
            for _ in 0..100 {
                for last in [1, 2] {
                    match look(last).await {
                        Ok(()) => asked += 1,
                        Err(no) => assert_eq!(no.status, StatusCode::TOO_MANY_REQUESTS),
                    }
                }
            }
            if second % 20 == 19 {
                assert_eq!(look(10 + second).await, Ok(()), "another one waited for them");
            }
            advance(Duration::from_secs(1)).await;
        }
        assert!((40..=60).contains(&asked), "{asked}");
        // However many clients there are, the site has its pace.
        let mut asked = 0;
        for last in 20..220 {
            asked += u32::from(look(last).await.is_ok());
        }
        assert!(asked <= SITE_PACE.burst, "{asked}");
        // What became feeds costs nothing.
        advance(Duration::from_secs(600)).await;
        for _ in 0..200 {
            look(1).await.unwrap();
            looks.note_found(&site, client(1));
        }
        assert_eq!(looks.acquire_permit((&site, Client::Own), WAIT).await.map(drop), Ok(()));
    }
}
