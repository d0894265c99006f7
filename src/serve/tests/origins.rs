//! A feed of an origin that has no document yet: the first reader has what the site answers, and whoever comes later
//! waits for the feed where its ids would be others at the next request.

use super::doubles::{feed, name};
use super::*;
use crate::{
    AdmittedSite, FeedThere, FeedTraits, FoundAddress, HeaderRule, NotMade, OriginService,
    PassError,
};
use async_trait::async_trait;
use http::{HeaderMap, HeaderValue};
use http_body_util::Full;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidegate_core::model::{FeedName, FeedRecord, FeedSource, FeedStanding, Format};
use tidegate_net::origin::{
    OriginConfig, OriginPlace, OriginSite, PassAnswer, PassMode, PassRequest, WholeAnswer,
};
use tidegate_status::{PollStatus, ScheduledPoll};
use tokio::sync::Semaphore;
use url::Url;

const BLOG: &str = "https://blog.example/";
const HOST: &str = "blog.example.org";
/// What the site answers.
const RAW: &str = "<rss>as the publisher has it</rss>";
/// A feed of which polling knows nothing, and one whose polls fail.
const MADE: &str = "made";
const FAILING: &str = "fresh";
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The same where nothing is to be refused.
const LONG_WAIT: Duration = Duration::from_secs(20);

/// The site, and what makes feeds of it.
struct BlogSite {
    stores: Vec<Arc<TestStore>>,
    /// What looks find; `None`: nothing.
    found: Mutex<Option<FeedTraits>>,
    feed: &'static str,
    /// One permit lets one first document be judged; closed: none ever is, and its poll failed.
    judging: Semaphore,
    /// How often the site was asked for clients, how often the gateway looked, and how often a feed was made.
    asked: AtomicUsize,
    looked: AtomicUsize,
    made: AtomicUsize,
    /// How often it was given an answer to read, since polls failed.
    read_again: AtomicUsize,
}

/// The polls of [`FAILING`] fail.
fn fail(site: &Site) {
    let next = Some(ScheduledPoll { at: at(60), reason: "it failed".to_owned() });
    let status = PollStatus { failures: 1, next, ..PollStatus::default() };
    site.polling.tell(&doubles::record(FAILING, FeedStanding::Active), status);
}

fn of_feed(keeps_ids: bool) -> Option<FeedTraits> {
    Some(FeedTraits { keeps_ids, is_json: false })
}

fn headers_of_feed() -> HeaderMap {
    let kind = HeaderValue::from_static("application/rss+xml");
    HeaderMap::from_iter([(http::header::CONTENT_TYPE, kind)])
}

impl BlogSite {
    /// How often it was asked, looked at, and made a feed of.
    fn counts(&self) -> [usize; 3] {
        [&self.asked, &self.looked, &self.made].map(|count| count.load(Ordering::SeqCst))
    }

    fn made(&self) -> usize {
        self.made.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl OriginService for BlogSite {
    async fn pass(&self, _: PassRequest) -> Result<PassAnswer, PassError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let headers = headers_of_feed();
        let body = Full::new(RAW.into()).map_err(|never| match never {}).boxed_unsync();
        Ok(PassAnswer { status: StatusCode::OK, headers, body })
    }

    async fn make_feed(
        &self,
        site: &AdmittedSite,
        url: &Url,
        _: FeedTraits,
        answer: Option<WholeAnswer>,
    ) -> Result<FeedName, NotMade> {
        assert!(answer.is_none_or(|answer| answer.body == RAW));
        self.made.fetch_add(1, Ordering::SeqCst);
        let made = name(self.feed);
        let mut record =
            FeedRecord::on_demand(made.clone(), url.as_str(), site.url.as_str(), at(0));
        record.follow(None, at(0), &endpoint());
        for store in &self.stores {
            store.put_feed(&record).await.unwrap();
        }
        self.judging.acquire().await.map_err(|_| NotMade::Later)?.forget();
        for store in &self.stores {
            store.put(self.feed, feed(Format::Atom10));
        }
        Ok(made)
    }

    async fn read_again(&self, feed: &FeedName, _: &Url, _: WholeAnswer) {
        assert_eq!(*feed, name(FAILING));
        self.read_again.fetch_add(1, Ordering::SeqCst);
    }

    fn polled_with(&self) -> HeaderMap {
        HeaderMap::new()
    }

    async fn discover(
        &self,
        site: &AdmittedSite,
        url: &Url,
        is_read: &HeaderRule<'_>,
    ) -> FoundAddress {
        self.looked.fetch_add(1, Ordering::SeqCst);
        assert!(is_read(&headers_of_feed()) && !is_read(&HeaderMap::new()));
        let end = match url.path() {
            "/moved.xml" => site.url.join("rss.xml").unwrap(),
            _ => url.clone(),
        };
        let Some(traits) = *self.found.lock().unwrap() else { return FoundAddress::Nothing };
        let title = "Blog".to_owned();
        let answer = WholeAnswer { headers: headers_of_feed(), body: RAW.into() };
        FoundAddress::Feed(Box::new(FeedThere { lasting: end.clone(), end, traits, title, answer }))
    }

    async fn usual_feed(&self, _: &AdmittedSite) -> Option<(Url, String)> {
        None
    }

    async fn announced(&self, _: &Url, _: WholeAnswer) -> Vec<Url> {
        Vec::new()
    }
}

/// A gateway in front of the site. `stores`: those that get what is made, the gateway's own one first.
fn gateway(
    (passes, first_wait): (PassMode, Duration),
    stores: Vec<Arc<TestStore>>,
    found: Option<FeedTraits>,
    feed: &'static str,
) -> (Site, Arc<BlogSite>) {
    let store = Arc::clone(&stores[0]);
    let blog = Arc::new(BlogSite {
        stores,
        found: Mutex::new(found),
        feed,
        judging: Semaphore::new(0),
        asked: AtomicUsize::default(),
        looked: AtomicUsize::default(),
        made: AtomicUsize::default(),
        read_again: AtomicUsize::default(),
    });
    let config = OriginConfig {
        name: name("blog"),
        url: Url::parse(BLOG).unwrap(),
        place: OriginPlace::Host(HOST.to_owned()),
        passes,
        sends_host: false,
        first_wait,
        idle: Duration::from_secs(86_400),
        feeds: 10,
        requests: 256,
    };
    let public = Url::parse("https://feeds.example.org/").unwrap();
    let origins = OriginSettings {
        sites: vec![Arc::new(OriginSite::new(config, &public))],
        service: Some(Arc::clone(&blog) as Arc<dyn OriginService>),
        ..OriginSettings::default()
    };
    (Site::before(store, settings(), origins), blog)
}

fn alone(passes: PassMode, found: Option<FeedTraits>, feed: &'static str) -> (Site, Arc<BlogSite>) {
    let store = Arc::new(TestStore::with_news());
    gateway((passes, FIRST_WAIT), vec![store], found, feed)
}

async fn get(site: &Site) -> Response<Body> {
    site.get_with("/rss.xml", &[("host", HOST)]).await
}

/// Checks that the client has what the publisher has, from here or from him.
async fn is_publishers(answer: Response<Body>, passes: PassMode, when: &str) {
    match passes {
        PassMode::Through => {
            assert_eq!(answer.status(), StatusCode::OK, "{when}");
            assert_eq!(text(answer).await, RAW, "{when}");
        }
        PassMode::Redirect => {
            assert_eq!(answer.status(), StatusCode::TEMPORARY_REDIRECT, "{when}");
            assert_eq!(header(&answer, "location"), format!("{BLOG}rss.xml"), "{when}");
        }
    }
}

async fn is_judged(answer: Response<Body>) {
    assert_eq!(answer.status(), StatusCode::OK);
    let said = text(answer).await;
    assert!(said.contains("\nitems "), "{said}");
}

/// Waits until something is so.
async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The made feed, once it is there.
async fn judged(site: &Site, feed: &'static str) {
    until(|| site.store.has(feed)).await;
    is_judged(get(site).await).await;
}

const MODES: [PassMode; 2] = [PassMode::Through, PassMode::Redirect];

#[tokio::test]
async fn what_keeps_its_ids_is_the_publishers_until_it_is_judged() {
    for passes in MODES {
        let (site, blog) = alone(passes, of_feed(true), MADE);
        is_publishers(get(&site).await, passes, "first").await;
        until(|| blog.made() == 1).await;
        for when in ["second", "third"] {
            is_publishers(get(&site).await, passes, when).await;
        }
        assert_eq!(blog.counts(), [if passes == PassMode::Through { 3 } else { 0 }, 1, 1]);
        blog.judging.add_permits(1);
        judged(&site, MADE).await;
    }
}

#[tokio::test]
async fn where_ids_will_be_others_the_second_reader_waits_for_the_feed() {
    for passes in MODES {
        let store = Arc::new(TestStore::with_news());
        let (site, blog) = gateway((passes, LONG_WAIT), vec![store], of_feed(false), MADE);
        is_publishers(get(&site).await, passes, "first").await;
        let judging = async {
            tokio::time::sleep(FIRST_WAIT / 4).await;
            blog.judging.add_permits(1);
        };
        let (one, other, ()) = tokio::join!(get(&site), get(&site), judging);
        is_judged(one).await;
        is_judged(other).await;
        assert_eq!(blog.counts(), [usize::from(passes == PassMode::Through), 1, 1]);
    }
}

#[tokio::test]
async fn a_feed_that_is_long_in_the_making_hides_nothing() {
    for passes in MODES {
        let (site, blog) = alone(passes, of_feed(false), MADE);
        for when in ["first", "second", "third"] {
            let begun = tokio::time::Instant::now();
            is_publishers(get(&site).await, passes, when).await;
            assert_eq!(begun.elapsed() >= FIRST_WAIT, when != "first", "{when}");
            until(|| blog.made() == 1).await;
        }
        blog.judging.add_permits(1);
        judged(&site, MADE).await;
        assert_eq!(blog.made(), 1);
    }
}

#[tokio::test]
async fn a_feed_whose_first_poll_failed_is_the_publishers() {
    for passes in MODES {
        for keeps_ids in [true, false] {
            let (site, blog) = alone(passes, of_feed(keeps_ids), FAILING);
            blog.judging.close();
            for when in ["first", "second", "third"] {
                is_publishers(get(&site).await, passes, when).await;
                until(|| blog.made() == 1).await;
            }
            assert_eq!(blog.counts()[1..], [1, 1]);
        }
    }
}

/// A client has 20 feeds made at once, and where the gateway asks by itself no more looks than that.
#[tokio::test]
async fn who_has_had_his_share_is_answered_all_the_same() {
    for passes in MODES {
        let (site, blog) = alone(passes, of_feed(true), MADE);
        blog.judging.close();
        let ask = async |n: u32, last: u8| {
            let mut asked = request("GET", &format!("/{n}.xml"), &[("host", HOST)], "");
            asked.extensions_mut().insert(crate::client::Peer([192, 0, 2, last].into()));
            site.ask(asked).await.status()
        };
        let answered = match passes {
            PassMode::Through => StatusCode::OK,
            PassMode::Redirect => StatusCode::TEMPORARY_REDIRECT,
        };
        for n in 0..40 {
            assert_eq!(ask(n, 1).await, answered);
            until(|| blog.made() == (n as usize + 1).min(20)).await;
        }
        tokio::time::sleep(FIRST_WAIT).await;
        assert_eq!(blog.made(), 20);
        assert_eq!(ask(40, 2).await, answered);
        until(|| blog.made() == 21).await;
    }
}

#[tokio::test]
async fn where_nothing_is_passed_on_an_address_leads_to_that_of_the_feed_here() {
    let (site, blog) = alone(PassMode::Redirect, of_feed(true), MADE);
    let moved = async || site.get_with("/moved.xml", &[("host", HOST)]).await;
    let first = moved().await;
    assert_eq!(first.status(), StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(header(&first, "location"), format!("{BLOG}moved.xml"));
    let second = moved().await;
    assert_eq!(second.status(), StatusCode::MOVED_PERMANENTLY);
    assert_eq!(header(&second, "location"), format!("https://{HOST}/rss.xml"));
    assert_eq!(blog.counts(), [0, 1, 0]);
}

#[tokio::test]
async fn a_feed_whose_polls_fail_reads_what_passes() {
    for passes in MODES {
        let (site, blog) = alone(passes, of_feed(true), FAILING);
        fail(&site);
        blog.judging.add_permits(1);
        is_publishers(get(&site).await, passes, "first").await;
        judged(&site, FAILING).await;
        let asked = usize::from(passes == PassMode::Through);
        let counts = || [&blog.asked, &blog.read_again].map(|count| count.load(Ordering::SeqCst));
        let reader = [("host", HOST), ("user-agent", "reader/1"), ("if-none-match", "\"x\"")];
        for when in ["at once", "and once in a while"] {
            is_judged(site.get_with("/rss.xml", &reader).await).await;
            assert_eq!(counts(), [2 * asked, asked], "{when}");
        }
    }
}

#[tokio::test]
async fn a_feed_that_the_operator_made_takes_no_answer_of_a_reader() {
    let (site, blog) = alone(PassMode::Through, of_feed(true), FAILING);
    fail(&site);
    let mut record = FeedRecord::new(name(FAILING), format!("{BLOG}rss.xml"), FeedSource::File);
    record.follow(None, at(0), &endpoint());
    blog.stores[0].put_feed(&record).await.unwrap();
    blog.stores[0].put(FAILING, feed(Format::Atom10));
    is_judged(get(&site).await).await;
    let counts = [&blog.asked, &blog.read_again].map(|count| count.load(Ordering::SeqCst));
    assert_eq!(counts, [0, 0], "the site was asked");
}

#[tokio::test(start_paused = true)]
async fn an_address_where_a_look_found_nothing_is_looked_at_again_after_a_minute() {
    for passes in MODES {
        let (site, blog) = alone(passes, None, MADE);
        for when in ["first", "second", "third"] {
            is_publishers(get(&site).await, passes, when).await;
        }
        assert_eq!(blog.counts()[1..], [1, 0]);
        *blog.found.lock().unwrap() = of_feed(true);
        blog.judging.add_permits(1);
        tokio::time::sleep(Duration::from_secs(60)).await;
        is_publishers(get(&site).await, passes, "a minute later").await;
        judged(&site, MADE).await;
        assert_eq!(blog.counts()[1..], [2, 1]);
    }
}

#[tokio::test]
async fn problems_of_a_site_are_pages_for_browsers() {
    let (site, _blog) = alone(PassMode::Through, of_feed(true), MADE);
    for (accept, kind) in
        [("text/html", "text/html; charset=utf-8"), ("*/*", "application/problem+json")]
    {
        let refused = site.get_with("/a/../b", &[("host", HOST), ("accept", accept)]).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
        assert_eq!(header(&refused, "content-type"), kind);
    }
}
