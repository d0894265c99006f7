//! A feed of an origin that has no document yet: what the site answers is passed on where that is honest, and nobody
//! is shown ids that are others at the next request.

use super::doubles::{feed, name};
use super::*;
use crate::relay::RelayedSite;
use crate::{AdmittedSite, FeedTraits, FoundAddress, Inspected, NotMade, OriginService, PassError};
use async_trait::async_trait;
use http::{HeaderMap, HeaderValue};
use http_body_util::Full;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use tidegate_core::model::{FeedName, FeedRecord, FeedSource, Format};
use tidegate_net::origin::{
    OriginConfig, OriginPlace, OriginSite, PassAnswer, PassMode, PassRequest, WholeAnswer,
};
use tidegate_store::{DatabaseOwner, Store as _, StoreCondition};
use tokio::sync::Semaphore;
use url::Url;

const BLOG: &str = "https://blog.example/";
const HOST: &str = "blog.example.org";
/// What the site answers.
const RAW: &str = "<rss>as the publisher has it</rss>";
/// A feed of which polling knows nothing, and one whose polls fail, as the operator's double has it.
const MADE: &str = "made";
const FAILING: &str = "fresh";
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The same where nothing is to be refused.
const LONG_WAIT: Duration = Duration::from_secs(20);

/// The site, and what makes feeds of it.
struct BlogSite {
    stores: Vec<Arc<TestStore>>,
    /// The gateway, which is told of what is made.
    room: OnceLock<SharedState>,
    /// What the next documents are, the last one first; then all are as the first of these.
    documents: Mutex<Vec<Inspected>>,
    feed: &'static str,
    /// One permit lets one first document be judged; closed: none ever is, and its poll failed.
    judging: Semaphore,
    /// How often the site was asked, and how often a feed was made of it.
    asked: AtomicUsize,
    made: AtomicUsize,
    /// How often it was given an answer to read, since polls failed.
    read_again: AtomicUsize,
}

fn of_feed(keeps_ids: bool) -> Inspected {
    Inspected::Feed(FeedTraits { keeps_ids, is_json: false })
}

#[async_trait]
impl OriginService for BlogSite {
    async fn pass(&self, _: PassRequest) -> Result<PassAnswer, PassError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let kind = HeaderValue::from_static("application/rss+xml");
        let headers = HeaderMap::from_iter([(http::header::CONTENT_TYPE, kind)]);
        let body = Full::new(RAW.into()).map_err(|never| match never {}).boxed_unsync();
        Ok(PassAnswer { status: StatusCode::OK, headers, body })
    }

    async fn inspect(&self, _: &Url, _: WholeAnswer) -> Inspected {
        let mut documents = self.documents.lock().unwrap();
        if documents.len() > 1 { documents.pop().unwrap() } else { documents[0] }
    }

    async fn make_feed(
        &self,
        site: &AdmittedSite,
        url: &Url,
        _: FeedTraits,
        _: Option<WholeAnswer>,
    ) -> Result<FeedName, NotMade> {
        self.made.fetch_add(1, Ordering::SeqCst);
        let made = name(self.feed);
        let mut record =
            FeedRecord::on_demand(made.clone(), url.as_str(), site.url.as_str(), at(0));
        record.follow(None, at(0), &endpoint());
        for store in &self.stores {
            store.put_feed(&record).await.unwrap();
        }
        self.room.get().unwrap().directory.changed();
        self.judging.acquire().await.map_err(|_| NotMade::Later)?.forget();
        for store in &self.stores {
            store.feeds.lock().unwrap().insert(made.clone(), feed(Format::Atom10));
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

    async fn discover(&self, _: &AdmittedSite, _: &Url) -> FoundAddress {
        FoundAddress::Nothing
    }

    async fn announced(&self, _: &Url, _: WholeAnswer) -> Vec<Url> {
        Vec::new()
    }
}

/// A gateway in front of the site. `stores`: those that get what is made, the gateway's own one first.
fn gateway(
    (passes, first_wait): (PassMode, Duration),
    stores: Vec<Arc<TestStore>>,
    documents: Vec<Inspected>,
    feed: &'static str,
) -> (Site, Arc<BlogSite>) {
    let store = Arc::clone(&stores[0]);
    let blog = Arc::new(BlogSite {
        stores,
        room: OnceLock::new(),
        documents: Mutex::new(documents),
        feed,
        judging: Semaphore::new(0),
        asked: AtomicUsize::default(),
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
    let site = Site::before(store, settings(), origins);
    assert!(blog.room.set(Arc::clone(&site.room)).is_ok());
    (site, blog)
}

fn alone(passes: PassMode, document: Inspected, feed: &'static str) -> (Site, Arc<BlogSite>) {
    let store = Arc::new(TestStore::with_news());
    gateway((passes, FIRST_WAIT), vec![store], vec![document], feed)
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

/// The judged document, once it is there.
async fn judged(site: &Site) {
    while site.store.feeds.lock().unwrap().get(&name(MADE)).is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    is_judged(get(site).await).await;
}

const MODES: [PassMode; 2] = [PassMode::Through, PassMode::Redirect];

#[tokio::test]
async fn what_keeps_its_ids_is_the_publishers_until_it_is_judged() {
    for passes in MODES {
        let (site, blog) = alone(passes, of_feed(true), MADE);
        for when in ["first", "second", "third"] {
            is_publishers(get(&site).await, passes, when).await;
        }
        let (asked, made) = (blog.asked.load(Ordering::SeqCst), blog.made.load(Ordering::SeqCst));
        // The gateway asks by itself once; what is passed on is asked each time.
        assert_eq!((asked, made), (if passes == PassMode::Through { 3 } else { 1 }, 1));
        blog.judging.add_permits(1);
        judged(&site).await;
    }
}

#[tokio::test]
async fn ids_that_would_be_others_are_not_shown() {
    for passes in MODES {
        let (site, blog) = alone(passes, of_feed(false), MADE);
        for _ in 0..2 {
            let refused = get(&site).await;
            assert_eq!(header(&refused, "retry-after"), "5");
            problem(refused, 503).await;
        }
        let browser = [("host", HOST), ("accept", "text/html")];
        let page = site.get_with("/rss.xml", &browser).await;
        assert_eq!(page.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(header(&page, "content-type"), "text/html; charset=utf-8");
        let page = text(page).await;
        // Nothing of ours is at the site's host.
        assert!(page.contains("the feed is new") && !page.contains("href"), "{page}");
        blog.judging.add_permits(1);
        judged(&site).await;
        assert_eq!(blog.made.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn who_asks_while_the_document_is_judged_waits_for_it() {
    let store = Arc::new(TestStore::with_news());
    let mode = (PassMode::Through, LONG_WAIT);
    let (site, blog) = gateway(mode, vec![store], vec![of_feed(false)], MADE);
    let judging = async {
        tokio::time::sleep(FIRST_WAIT / 4).await;
        blog.judging.add_permits(1);
    };
    let (one, other, ()) = tokio::join!(get(&site), get(&site), judging);
    is_judged(one).await;
    is_judged(other).await;
    assert_eq!(blog.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_feed_is_new_for_a_while_after_it_was_made_whenever_it_is_asked_for() {
    for passes in MODES {
        let (site, _blog) = alone(passes, of_feed(false), MADE);
        problem(get(&site).await, 503).await;
        site.clock.set(at(599));
        problem(get(&site).await, 503).await;
        site.store.edit_record(MADE, |record| record.ask_for(at(600)));
        site.room.directory.changed();
        site.clock.set(at(600));
        is_publishers(get(&site).await, passes, "later").await;
    }
}

#[tokio::test]
async fn a_feed_whose_first_poll_failed_is_the_publishers() {
    for passes in MODES {
        for keeps_ids in [true, false] {
            let (site, blog) = alone(passes, of_feed(keeps_ids), FAILING);
            blog.judging.close();
            for when in ["first", "second"] {
                is_publishers(get(&site).await, passes, when).await;
            }
            assert_eq!(blog.made.load(Ordering::SeqCst), 1);
        }
    }
}

#[tokio::test]
async fn a_feed_whose_polls_fail_reads_what_passes() {
    for passes in MODES {
        let (site, blog) = alone(passes, of_feed(true), FAILING);
        *site.operator.own.lock().unwrap() = Some(vec![FAILING]);
        blog.judging.add_permits(1);
        is_judged(get(&site).await).await;
        let counts = || [&blog.asked, &blog.read_again].map(|count| count.load(Ordering::SeqCst));
        let reader = [("host", HOST), ("user-agent", "reader/1"), ("if-none-match", "\"x\"")];
        let read = usize::from(passes == PassMode::Through);
        for when in ["at once", "and once in a while"] {
            is_judged(site.get_with("/rss.xml", &reader).await).await;
            assert_eq!(counts(), [1 + read, read], "{when}");
        }
    }
}

#[tokio::test]
async fn a_feed_that_the_operator_made_takes_no_answer_of_a_reader() {
    let (site, blog) = alone(PassMode::Through, of_feed(true), FAILING);
    *site.operator.own.lock().unwrap() = Some(vec![FAILING]);
    let mut record = FeedRecord::new(name(FAILING), format!("{BLOG}rss.xml"), FeedSource::File);
    record.follow(None, at(0), &endpoint());
    blog.stores[0].put_feed(&record).await.unwrap();
    blog.stores[0].feeds.lock().unwrap().insert(name(FAILING), feed(Format::Atom10));
    site.room.directory.changed();
    is_judged(get(&site).await).await;
    let counts = [&blog.asked, &blog.read_again].map(|count| count.load(Ordering::SeqCst));
    assert_eq!(counts, [0, 0], "the site was asked");
}

#[tokio::test]
async fn a_broken_answer_is_forgotten_and_another_kind_of_document_is_not() {
    for passes in MODES {
        for (first, is_remembered) in [(Inspected::Unreadable, false), (Inspected::NoFeed, true)] {
            let store = Arc::new(TestStore::with_news());
            let documents = vec![of_feed(false), first];
            let (site, blog) = gateway((passes, LONG_WAIT), vec![store], documents, MADE);
            blog.judging.add_permits(1);
            is_publishers(get(&site).await, passes, "first").await;
            match is_remembered {
                true => is_publishers(get(&site).await, passes, "second").await,
                false => is_judged(get(&site).await).await,
            }
        }
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

/// A gateway, and the site behind it.
type SiteBefore = (Site, Arc<BlogSite>);

/// A gateway that writes and one that follows, with a site for each; what the one makes, both have.
fn pair(keeps_ids: bool) -> (SiteBefore, SiteBefore, Arc<RelayedSite>) {
    let [ours, theirs] = [(); 2].map(|()| Arc::new(TestStore::with_news()));
    let (mode, documents) = ((PassMode::Through, LONG_WAIT), vec![of_feed(keeps_ids)]);
    let both = vec![Arc::clone(&ours), Arc::clone(&theirs)];
    let writer = gateway(mode, both, documents.clone(), MADE);
    let follower = gateway(mode, vec![theirs], documents, MADE);
    let relayed = RelayedSite::new(&writer.0.room);
    *follower.0.store.writer.lock().unwrap() = Some(relayed.answers());
    let owner = DatabaseOwner { name: "process 7 elsewhere".to_owned(), is_gone: false };
    *follower.0.store.condition.lock().unwrap() =
        StoreCondition { owner: Some(owner), ..StoreCondition::default() };
    (writer, follower, relayed)
}

#[tokio::test]
async fn of_several_gateways_one_makes_the_feed_and_the_others_wait_for_it() {
    let ((writer, makes), (follower, asks), _relayed) = pair(false);
    makes.judging.add_permits(1);
    let (one, other) = tokio::join!(get(&follower), get(&follower));
    let (one, other) = (text(one).await, text(other).await);
    assert!(one.contains("\nitems "), "{one}");
    assert_eq!((&one, &one), (&other, &text(get(&writer).await).await));
    is_judged(get(&follower).await).await;
    let counts =
        |blog: &BlogSite| (blog.asked.load(Ordering::SeqCst), blog.made.load(Ordering::SeqCst));
    assert_eq!((counts(&makes), counts(&asks)), ((1, 1), (1, 0)));
}

#[tokio::test]
async fn nobody_waits_for_the_gateway_that_writes_where_ids_stay() {
    let ((_writer, makes), (follower, asks), _relayed) = pair(true);
    for when in ["first", "second"] {
        // Nothing is judged yet.
        let answer = tokio::time::timeout(LONG_WAIT / 4, get(&follower)).await.unwrap();
        is_publishers(answer, PassMode::Through, when).await;
    }
    makes.judging.add_permits(1);
    judged(&follower).await;
    let made = [&makes, &asks].map(|blog| blog.made.load(Ordering::SeqCst));
    assert_eq!(made, [1, 0]);
}

#[tokio::test]
async fn where_the_gateway_that_writes_makes_no_feed_ids_stay_too() {
    for keeps_ids in [true, false] {
        let (_writer, (follower, asks), relayed) = pair(keeps_ids);
        // It is not there.
        drop(relayed);
        *follower.store.writer.lock().unwrap() = None;
        for when in ["first", "second"] {
            let answer = get(&follower).await;
            match keeps_ids {
                true => is_publishers(answer, PassMode::Through, when).await,
                false => drop(problem(answer, 503).await),
            }
        }
        assert_eq!(asks.made.load(Ordering::SeqCst), 0);
    }
}
