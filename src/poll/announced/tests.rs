use super::*;
use tidegate_net::fetch::Fetch;

const LEAST: Duration = Duration::from_secs(300);
const DOCUMENT: &str = "http://a.example/sup.json";

fn feed(name: &str) -> FeedName {
    FeedName::new(name).unwrap()
}

fn id(name: &str) -> SupId {
    SupId::new(name).unwrap()
}

fn place(name: &str) -> Option<(SupAnnouncement, LeadScope)> {
    let place = SupAnnouncement { document: DOCUMENT.to_owned(), id: id(name) };
    Some((place, LeadScope::default()))
}

fn host(address: &str) -> Arc<str> {
    address.split('/').nth(2).unwrap().into()
}

/// Feeds that share a document, and the time.
struct Bench {
    announced: SupPolls,
    now: Instant,
    time: Time,
}

impl Bench {
    fn new(feeds: &[&str]) -> Self {
        let (now, time) = (Instant::now(), Time::from_unix(1_795_191_605));
        let mut bench = Self { announced: SupPolls::default(), now, time };
        for name in feeds {
            bench.announced.attach(&feed(name), place(name), bench.now);
        }
        bench
    }

    /// The document is asked for, and this comes of it.
    fn look(&mut self, result: Result<Option<Told>, SupError>) -> Vec<AnnouncedFeed> {
        let due = self.announced.wake_at().unwrap().max(self.now);
        self.wait((due - self.now).as_secs());
        let (address, look) = self.announced.take_due(self.now, host).unwrap();
        self.wait(1);
        let looked = Some(Looked { look, result });
        self.announced.looked(&address, looked, LEAST, (self.now, self.time))
    }

    fn wait(&mut self, seconds: u64) {
        let wait = Duration::from_secs(seconds);
        (self.now, self.time) = (self.now + wait, self.time.plus(wait));
    }

    /// A poll that has just begun.
    fn polled(&mut self, name: &str, poll: PushedPoll) -> bool {
        self.announced.polled(&feed(name), poll, self.now, (self.now, self.time))
    }

    /// Whether a poll covers the feed that began then.
    fn covers_since(&mut self, name: &str, begun: Instant) -> bool {
        let poll = PushedPoll::default();
        self.announced.polled(&feed(name), poll, begun, (self.now, self.time))
    }

    fn told(&mut self, listed: &[&str], missed: bool) -> Vec<String> {
        let wanted = self.look(Ok(Some(told(listed, missed))));
        wanted.into_iter().map(|wanted| wanted.feed.to_string()).collect()
    }

    fn covers(&mut self, name: &str) -> bool {
        self.covers_since(name, self.now)
    }
}

fn told(listed: &[&str], missed: bool) -> Told {
    Told {
        listed: listed.iter().map(|name| id(name)).collect(),
        missed,
        period: Some(60),
        available: [60, 300, 600].map(|p| (p, format!("{DOCUMENT}?seconds={p}"))).into(),
    }
}

fn broken() -> SupError {
    SupError::Defect("it broke".to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_feed_is_covered_by_a_poll_that_began_after_its_document_was_read() {
    let mut bench = Bench::new(&["a", "b"]);
    assert!(!bench.covers("a"));
    let before = bench.now;
    // The first document lists what was read already.
    assert_eq!(bench.told(&["a"], false), [""; 0]);
    assert!(!bench.covers_since("a", before));
    assert!(bench.covers("a") && bench.covers("b") && !bench.covers("stranger"));
    assert_eq!(bench.told(&["a", "stranger"], false), ["a"]);
    assert_eq!(bench.told(&[], false), [""; 0]);
    assert_eq!(bench.look(Ok(None)), [], "the same document tells nothing");
}

#[tokio::test(start_paused = true)]
async fn the_period_that_is_asked_for_is_that_of_polls() {
    let mut bench = Bench::new(&["a"]);
    bench.told(&[], false);
    let source = &bench.announced.sources[DOCUMENT];
    let question = &source.look.as_ref().unwrap().question;
    assert_eq!(question.address, format!("{DOCUMENT}?seconds=300"));
    assert_eq!(bench.announced.wake_at(), Some(bench.now + LEAST));
    let mut few = told(&[], false);
    few.available.clear();
    bench.look(Ok(Some(few)));
    assert_eq!(bench.announced.wake_at(), Some(bench.now + Duration::from_secs(60)));
}

#[tokio::test(start_paused = true)]
async fn a_gap_makes_every_feed_be_read_again() {
    let mut bench = Bench::new(&["a", "b"]);
    bench.told(&[], false);
    let covered = bench.now;
    assert_eq!(bench.told(&["a"], true), ["a", "b"]);
    assert!(!bench.covers_since("a", covered), "what was read before is not enough");
    assert!(bench.covers("a"));
}

#[tokio::test(start_paused = true)]
async fn a_document_that_cannot_be_read_covers_nothing_after_a_while() {
    let mut bench = Bench::new(&["a", "b"]);
    bench.told(&[], false);
    let mut waits = Vec::new();
    for failure in 1..=5 {
        let wanted = bench.look(Err(broken()));
        assert_eq!(wanted.len(), if failure == FAILURES_BORNE { 2 } else { 0 }, "{failure}");
        assert_eq!(bench.covers("a"), failure < FAILURES_BORNE);
        waits.push(bench.announced.wake_at().unwrap().duration_since(bench.now).as_secs());
    }
    // Three quick tries; from then on feeds are polled each for itself.
    assert_eq!(waits, [5, 10, 300, 300, 300]);
    bench.told(&["a"], false);
    assert!(bench.covers("a"));
    // A reader that panics is as good as none.
    let (address, _) = bench.announced.take_due(bench.now + LEAST, host).unwrap();
    let wanted = bench.announced.looked(&address, None, LEAST, (bench.now, bench.time));
    assert_eq!(wanted.len(), 2);
    assert!(!bench.covers("a"));
}

#[tokio::test(start_paused = true)]
async fn what_is_left_out_twice_is_held_against_it_for_that_feed() {
    let found = PushedPoll { changed: true, told: false, expected: true };
    let mut bench = Bench::new(&["a", "b"]);
    bench.told(&[], false);
    // Listed a little later: the poll was merely faster.
    assert!(bench.polled("a", found));
    let wanted = bench.look(Ok(Some(told(&["a"], false))));
    assert_eq!(wanted[0].told, ToldChange::Known);
    let wanted = bench.look(Ok(Some(told(&["a"], false))));
    assert_eq!(wanted[0].told, ToldChange::New, "that is another one");
    // Never listed, twice.
    for _ in 0..2 {
        assert!(bench.polled("a", found));
        for _ in 0..3 {
            assert_eq!(bench.told(&[], false), [""; 0]);
        }
    }
    assert!(!bench.covers("a") && bench.covers("b"));
    assert_eq!(bench.told(&["a"], false), ["a"], "what it lists is polled all the same");
}

#[tokio::test(start_paused = true)]
async fn a_document_without_feeds_is_forgotten_and_there_are_only_so_many() {
    let mut bench = Bench::new(&["a", "b"]);
    bench.announced.detach(&feed("a"));
    // The feed says now that it is announced nowhere.
    bench.announced.attach(&feed("b"), None, bench.now);
    assert_eq!(bench.announced.wake_at(), None);
    for n in 0..=MAX_DOCUMENTS {
        let place = SupAnnouncement { document: format!("http://h{n}.example/"), id: id("x") };
        let place = Some((place, LeadScope::default()));
        bench.announced.attach(&feed(&format!("f{n}")), place, bench.now);
    }
    assert_eq!(bench.announced.sources.len(), MAX_DOCUMENTS);
    let mut looks = Vec::new();
    while let Some(look) = bench.announced.take_due(bench.now, host) {
        looks.push(look);
    }
    assert_eq!(looks.len(), MAX_LOOKS_AT_ONCE, "one of each host");
    assert_eq!(bench.announced.wake_at(), None, "there is no room before one is over");
    // A feed that leaves while its document is read is not missed.
    let (address, look) = looks.remove(0);
    for n in 0..=MAX_DOCUMENTS {
        bench.announced.detach(&feed(&format!("f{n}")));
    }
    let looked = Some(Looked { look, result: Ok(None) });
    assert_eq!(bench.announced.looked(&address, looked, LEAST, (bench.now, bench.time)), []);
}

/// Documents of one publisher, or of several, that come slowly or never.
#[tokio::test(start_paused = true)]
async fn slow_documents_keep_no_other_from_being_read() {
    for hosts in [1, 26, 200] {
        let mut bench = Bench::new(&["a"]);
        bench.told(&[], false);
        let covered = bench.now;
        // Their addresses come first.
        for n in 0..200 {
            let document = format!("http://0{}.example/{n}", n % hosts);
            let place = SupAnnouncement { document, id: id("x") };
            bench.announced.attach(
                &feed(&format!("f{n}")),
                Some((place, LeadScope::default())),
                bench.now,
            );
        }
        let mut slow = Vec::new();
        for second in 0..3600 {
            bench.now = covered + Duration::from_secs(second);
            let now = (bench.now, bench.time);
            while let Some((address, look)) = bench.announced.take_due(bench.now, host) {
                if address == DOCUMENT {
                    let looked = Some(Looked { look, result: Ok(Some(told(&[], false))) });
                    bench.announced.looked(&address, looked, LEAST, now);
                } else {
                    slow.push((second + 15, address, look));
                }
            }
            let (over, left) = slow.into_iter().partition(|(end, ..)| *end <= second);
            slow = left;
            for (_, address, look) in over {
                let result = Ok(Some(Told { available: BTreeMap::new(), ..told(&[], false) }));
                bench.announced.looked(&address, Some(Looked { look, result }), LEAST, now);
            }
            assert!(slow.len() <= hosts.min(MAX_LOOKS_AT_ONCE));
            assert!(bench.covers("a"), "{hosts} {second}");
        }
    }
}

/// Its publisher sends it so slowly that no look ends, or its host is to be left alone.
#[tokio::test(start_paused = true)]
async fn what_is_not_read_for_two_periods_covers_nothing() {
    let mut bench = Bench::new(&["a"]);
    bench.told(&[], false);
    let confirmed = bench.now;
    bench.wait(LEAST.as_secs());
    let (address, look) = bench.announced.take_due(bench.now, host).unwrap();
    bench.wait((LEAST + LOOK_TIME).as_secs() - 1);
    assert!(bench.covers("a"));
    bench.wait(1);
    assert!(!bench.covers("a") && bench.announced.wake_at().is_none());
    bench.announced.put_off(&address, look, LEAST, bench.now);
    assert_eq!(bench.announced.wake_at(), Some(bench.now + LEAST));
    assert_eq!(bench.told(&["a"], false), ["a"]);
    assert!(bench.covers("a") && bench.covers_since("a", confirmed), "it has told of all since");
}

/// A document that leads to others must not take its time for each of them.
#[tokio::test(start_paused = true)]
async fn a_look_has_a_limit_however_many_documents_it_leads_to() {
    let mut bench = Bench::new(&["a"]);
    let (address, look) = bench.announced.take_due(bench.now, host).unwrap();
    let fetch = Fetch::new(tower::service_fn(|_: tidegate_net::fetch::FetchRequest| {
        std::future::pending::<Result<_, tidegate_net::fetch::FetchError>>()
    }));
    let looked = look.read_updates(&fetch, Time::from_unix(0)).await;
    assert_eq!(bench.now.elapsed().as_secs(), LOOK_TIME.as_secs());
    let error = looked.result.as_ref().unwrap_err().to_string();
    assert!(error.contains("did not send its SUP documents within 60 s"), "{error}");
    bench.announced.looked(&address, Some(looked), LEAST, (Instant::now(), bench.time));
    assert!(!bench.covers("a"));
}

#[tokio::test(start_paused = true)]
async fn several_feeds_may_share_an_id() {
    let mut bench = Bench::new(&["a"]);
    bench.announced.attach(&feed("b"), place("a"), bench.now);
    bench.told(&[], false);
    assert_eq!(bench.told(&["a"], false), ["a", "b"]);
    bench.announced.detach(&feed("a"));
    assert_eq!(bench.told(&["a"], false), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_publisher_that_says_when_to_come_back_is_not_tried_quickly() {
    let mut bench = Bench::new(&["a"]);
    bench.told(&[], false);
    let wait = Some(Duration::from_secs(1800));
    let busy = tidegate_net::fetch::FetchError::Status {
        code: 503,
        retry_after: wait,
        redirected_to: None,
    };
    assert_eq!(bench.look(Err(busy.into())).len(), 1);
    assert!(!bench.covers("a"));
    assert_eq!(bench.announced.wake_at(), Some(bench.now + Duration::from_secs(1800)));
}

/// A document of a million feeds costs what the feeds that are polled here do.
#[tokio::test(start_paused = true)]
async fn only_ids_that_matter_are_remembered() {
    let mut bench = Bench::new(&["a", "b"]);
    let (_, look) = bench.announced.take_due(bench.now, host).unwrap();
    let listed: Vec<String> = (0..2000).map(|n| format!("[\"x{n}\",\"1\"]")).collect();
    let text = format!(
        "{{\"period\":60,\"since_time\":\"2026-11-20T16:20:05Z\",\
         \"updated_time\":\"2026-11-20T16:22:05Z\",\"updates\":[{},[\"a\",\"1\"]]}}",
        listed.join(",")
    );
    let fetch = Fetch::new(tower::service_fn(move |request: tidegate_net::fetch::FetchRequest| {
        let (bytes, content_type) = (text.clone().into(), None);
        let prints = tidegate_core::model::BodyPrints { wire: 1, body: 1 };
        let document =
            tidegate_net::fetch::FetchedDocument { bytes, content_type, prints, delta: false };
        std::future::ready(Ok(tidegate_net::fetch::Fetched {
            answer: tidegate_net::fetch::FetchAnswer::Document(document),
            status: 200,
            validators: tidegate_net::fetch::Validators::default(),
            freshness: None,
            final_url: request.url,
            moved_to: None,
            wire_bytes: 1,
            notes: Vec::new(),
            is_handed: false,
            rate_reset: None,
            page_links: Vec::new(),
            announced: None,
            links: tidegate_core::websub::HubLinks::default(),
        }))
    }));
    let looked = look.read_updates(&fetch, Time::from_unix(0)).await;
    assert_eq!(looked.result.unwrap().unwrap().listed, BTreeSet::from([id("a")]));
    assert_eq!(looked.look.follower.remembered(), 1);
}

/// A document is asked for on the word of the feed that names it, and another one on that of both.
#[tokio::test(start_paused = true)]
async fn a_document_has_no_more_leave_than_the_feed_that_names_it() {
    let leads = LeadScope::default().by_answer("http://b.example/feed");
    let mut announced = SupPolls::default();
    let now = Instant::now();
    let (place, _) = place("a").unwrap();
    announced.attach(&feed("a"), Some((place, leads.clone())), now);
    let (address, look) = announced.take_due(now, host).unwrap();
    let asked = |look: &SupLook| look.question.leads().clone();
    assert_eq!(asked(&look), leads);
    // Where it failed, and where reading it broke off, it is asked for as before.
    let fetch = Fetch::new(tower::service_fn(|_: tidegate_net::fetch::FetchRequest| {
        std::future::ready(Err(tidegate_net::fetch::FetchError::Unasked304))
    }));
    let looked = look.read_updates(&fetch, Time::from_unix(0)).await;
    assert_eq!(asked(&looked.look), leads);
    announced.looked(&address, None, LEAST, (now, Time::from_unix(0)));
    let (_, look) = announced.take_due(now + RETRY.most, host).unwrap();
    assert_eq!(asked(&look), leads);
    let longer = look.question.of_another("http://c.example/sup.json");
    let by_document = leads.by_answer(DOCUMENT);
    assert_eq!(longer.leads(), &by_document);
    assert_eq!(longer.of_another("http://d.example/sup.json").leads(), &by_document);
}
