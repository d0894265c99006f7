//! A feed of an origin that has no document yet: the first reader has what the site answers, and whoever comes later
//! waits for the feed where its ids would be others at the next request.

use super::*;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use tidegate_net::origin::{OriginConfig, OriginPlace, OriginSite, PassMode};
use tidegate_status::ScheduledPoll;
use url::Url;

const BLOG: &str = "https://blog.example/";
const HOST: &str = "blog.example.org";
/// What the site answers: a feed that would be published with the ids that it has, one with others, and no feed.
const WITH_IDS: &str = "<rss version='2.0'><channel><title>Blog</title><link>https://blog.example/</link>\
                        <description/><item><guid>a</guid><title>A</title></item></channel></rss>";
const WITHOUT_IDS: &str = "<rss version='2.0'><channel><title>Blog</title><link>https://blog.example/</link>\
                           <description/><item><title>A</title></item></channel></rss>";
const NO_FEED: &str = "<urlset/>";
/// The feed that is made of the site's.
const MADE: &str = "blog-example-org-rss-xml";
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The same where nothing is to be refused.
const LONG_WAIT: Duration = Duration::from_secs(20);

/// A gateway in front of the site.
struct BlogFront {
    site: Site,
    blog: Arc<ScriptedSite>,
    found: Arc<Mutex<&'static str>>,
    passes: PassMode,
}

impl BlogFront {
    fn new((passes, first_wait): (PassMode, Duration), found: &'static str) -> Self {
        let found = Arc::new(Mutex::new(found));
        let answer = Arc::clone(&found);
        let blog = ScriptedSite::new(0, move |url| match url.path() {
            "/moved.xml" => SiteAnswer::Moved("https://blog.example/rss.xml"),
            _ => SiteAnswer::Text((*answer.lock().unwrap()).to_owned()),
        });
        let config = OriginConfig {
            passes,
            first_wait,
            feeds: 100,
            ..crate::origins::tests::config(OriginPlace::Host(HOST.to_owned()))
        };
        let public = Url::parse("https://feeds.example.org/").unwrap();
        let sites = vec![Arc::new(OriginSite::new(config, &public))];
        let origins = OriginSettings { sites, ..OriginSettings::default() };
        let site = Site::before(TestStore::with_news(), settings(), origins, blog.services());
        site.polling.start_empty();
        Self { site, blog, found, passes }
    }

    /// How many requests were passed on, and how many looks there were.
    fn asked(&self) -> (usize, usize) {
        (self.blog.passed(), self.blog.looked().len())
    }

    /// So many, where requests are passed on.
    fn if_passed(&self, count: usize) -> usize {
        if self.passes == PassMode::Through { count } else { 0 }
    }

    async fn made(&self) -> usize {
        let feeds = self.site.app.store.feed_list().await.unwrap();
        feeds.values().filter(|record| record.on_demand.is_some()).count()
    }

    async fn until_made(&self, feeds: usize) {
        while self.made().await != feeds {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn get(&self) -> Response<Body> {
        self.site.get_with("/rss.xml", &[("host", HOST)]).await
    }

    /// Checks that the client has what the publisher has, from here or from them.
    async fn is_publishers(&self, when: &str) {
        let answer = self.get().await;
        match self.passes {
            PassMode::Through => {
                assert_eq!(answer.status(), StatusCode::OK, "{when}");
                assert_eq!(text(answer).await, *self.found.lock().unwrap(), "{when}");
            }
            PassMode::Redirect => {
                assert_eq!(answer.status(), StatusCode::TEMPORARY_REDIRECT, "{when}");
                assert_eq!(header(&answer, "location"), format!("{BLOG}rss.xml"), "{when}");
            }
        }
    }

    /// Waits for the made feed, which is served then.
    async fn until_judged(&self) {
        while self.site.app.store.state(&name(MADE)).await.unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        is_judged(self.get().await).await;
    }
}

async fn is_judged(answer: Response<Body>) {
    assert_eq!(answer.status(), StatusCode::OK);
    let said = text(answer).await;
    assert!(said.contains("\nitems "), "{said}");
}

const MODES: [PassMode; 2] = [PassMode::Through, PassMode::Redirect];

#[tokio::test]
async fn what_keeps_its_ids_is_the_publishers_until_it_is_judged_and_read_while_polls_fail() {
    for passes in MODES {
        let front = BlogFront::new((passes, FIRST_WAIT), WITH_IDS);
        front.is_publishers("first").await;
        front.until_made(1).await;
        for when in ["second", "third"] {
            front.is_publishers(when).await;
        }
        assert_eq!((front.asked(), front.made().await), ((front.if_passed(3), 1), 1));
        front.blog.polls.add_permits(3);
        front.until_judged().await;
        // A feed whose polls fail reads what passes.
        front.blog.refuses_polls.store(true, Ordering::SeqCst);
        let operator = &front.site.app.operator;
        assert!(operator.poll_now(&name(MADE)).await.unwrap().error.is_some());
        let reader = [("host", HOST), ("user-agent", "reader/1"), ("if-none-match", "\"x\"")];
        for when in ["at once", "and once in a while"] {
            is_judged(front.site.get_with("/rss.xml", &reader).await).await;
            // One poll took what was passed on.
            let polls = front.blog.polls.available_permits();
            let expected = (front.if_passed(4), 2 - front.if_passed(1));
            assert_eq!((front.blog.passed(), polls), expected, "{when}");
        }
        // One that was deleted hides nothing that is passed on.
        front.site.store.edit_record(MADE, |record| record.standing = FeedStanding::Gone);
        match passes {
            PassMode::Through => front.is_publishers("deleted").await,
            PassMode::Redirect => assert_eq!(front.get().await.status(), StatusCode::GONE),
        }
        assert_eq!(front.site.get(&format!("/feeds/{MADE}")).await.status(), StatusCode::GONE);
    }
}

#[tokio::test]
async fn where_ids_will_be_others_the_second_reader_waits_for_the_feed() {
    for passes in MODES {
        let front = BlogFront::new((passes, LONG_WAIT), WITHOUT_IDS);
        front.is_publishers("first").await;
        let judging = async {
            tokio::time::sleep(FIRST_WAIT / 4).await;
            front.blog.polls.add_permits(1);
        };
        let (one, other, ()) = tokio::join!(front.get(), front.get(), judging);
        is_judged(one).await;
        is_judged(other).await;
        assert_eq!((front.asked(), front.made().await), ((front.if_passed(1), 1), 1));
        // One that is long in the making hides nothing.
        let front = BlogFront::new((passes, FIRST_WAIT), WITHOUT_IDS);
        for when in ["first", "second", "third"] {
            let begun = tokio::time::Instant::now();
            front.is_publishers(when).await;
            assert_eq!(begun.elapsed() >= FIRST_WAIT, when != "first", "{when}");
            front.until_made(1).await;
        }
        front.blog.polls.add_permits(1);
        front.until_judged().await;
        assert_eq!(front.made().await, 1);
    }
}

#[tokio::test]
async fn a_feed_whose_first_poll_failed_is_the_publishers() {
    for passes in MODES {
        for found in [WITH_IDS, WITHOUT_IDS] {
            let front = BlogFront::new((passes, FIRST_WAIT), found);
            front.blog.polls.close();
            for when in ["first", "second", "third"] {
                front.is_publishers(when).await;
                front.until_made(1).await;
            }
            assert_eq!(front.asked().1, 1);
        }
        // Who has had his share is answered all the same. How large it is, is shown where it is counted.
        let front = BlogFront::new((passes, FIRST_WAIT), WITH_IDS);
        let shares = &front.site.app.origins.feed_shares;
        while shares.take_share(client(1), 100).is_ok() {}
        for (last, made) in [(1, 0), (2, 1)] {
            let asked = request("GET", "/rss.xml", &[("host", HOST)], "");
            let peer = crate::client::Peer([192, 0, 2, last].into());
            let answer = front.site.ask(with_extension(asked, peer)).await;
            let expected = if passes == PassMode::Through { 200 } else { 307 };
            assert_eq!(answer.status(), expected, "{last}");
            tokio::time::sleep(FIRST_WAIT / 4).await;
            front.until_made(made).await;
            assert_eq!(front.asked(), (front.if_passed(usize::from(last)), made), "{last}");
        }
    }
}

#[tokio::test]
async fn a_feed_that_the_operator_made_takes_no_answer_of_a_reader() {
    let front = BlogFront::new((PassMode::Through, FIRST_WAIT), WITH_IDS);
    let mut record = FeedRecord::new(name(MADE), format!("{BLOG}rss.xml"), FeedSource::File);
    record.follow(None, at(0), &endpoint());
    front.site.store.put_feed(&record).await.unwrap();
    front.site.store.put(MADE, feed(Format::Atom10));
    let next = Some(ScheduledPoll { at: at(60), reason: "it failed".to_owned() });
    let status = PollStatus { failures: 1, next, ..PollStatus::default() };
    front.site.polling.tell(&record, status);
    is_judged(front.get().await).await;
    assert_eq!(front.asked(), (0, 0), "the site was asked");
    // Problems of a site are pages for browsers.
    for (accept, kind) in [("text/html", "text/html"), ("*/*", "application/problem+json")] {
        let refused = front.site.get_with("/a/../b", &[("host", HOST), ("accept", accept)]).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
        assert!(header(&refused, "content-type").starts_with(kind));
    }
    let refused = front.site.ask(request("TRACE", "/", &[("host", HOST)], "")).await;
    assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert!(header(&refused, "allow").starts_with("GET, HEAD, POST"), "{refused:?}");
    // Where nothing is passed on an address leads to that of the feed here.
    let front = BlogFront::new((PassMode::Redirect, LONG_WAIT), WITH_IDS);
    let cases = [(307, format!("{BLOG}moved.xml")), (301, format!("https://{HOST}/rss.xml"))];
    for (status, to) in cases {
        let answer = front.site.get_with("/moved.xml", &[("host", HOST)]).await;
        assert_eq!((answer.status().as_u16(), header(&answer, "location")), (status, &*to));
    }
    let looked = ["moved.xml", "rss.xml"].map(|path| format!("{BLOG}{path}"));
    assert_eq!((front.blog.looked(), front.asked()), (looked.to_vec(), (0, 0)));
    assert_eq!(front.made().await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_address_where_a_look_found_nothing_is_looked_at_again_after_a_minute() {
    for passes in MODES {
        let front = BlogFront::new((passes, FIRST_WAIT), NO_FEED);
        for when in ["first", "second", "third"] {
            front.is_publishers(when).await;
        }
        assert_eq!((front.asked().1, front.made().await), (1, 0));
        *front.found.lock().unwrap() = WITH_IDS;
        front.blog.polls.add_permits(1);
        tokio::time::sleep(Duration::from_secs(60)).await;
        front.is_publishers("a minute later").await;
        front.until_judged().await;
        assert_eq!((front.asked().1, front.made().await), (1, 1));
    }
}
