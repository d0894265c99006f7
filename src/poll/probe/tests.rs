use super::*;
use std::sync::Mutex;
use tidegate_core::model::SyncId;
use tidegate_core::model::testing::{at, name};
use tidegate_judge::probe::ProbeScope;
use tidegate_net::fetch::{Called, FetchError, LeadScope};
use tokio::time::timeout;

type Script = dyn Fn(&str, &str) -> Result<Called, FetchError> + Send + Sync;

/// A site that answers by method and path, and the requests it received.
struct Site {
    script: Box<Script>,
    asked: Mutex<Vec<String>>,
}

impl Site {
    fn new(
        script: impl Fn(&str, &str) -> Result<Called, FetchError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { script: Box::new(script), asked: Mutex::default() })
    }

    fn service(self: &Arc<Self>) -> Call {
        let site = Arc::clone(self);
        Call::new(tower::service_fn(move |request: CallRequest| {
            let method = request.method.as_str().to_owned();
            let path = request.url.path().to_owned();
            let known = ["/listed", "/a", "/b", "/elsewhere", "/"].contains(&path.as_str());
            let path = if known { path } else { "/made-up".to_owned() };
            site.asked.lock().unwrap().push(format!("{method} {path}"));
            let answer = (site.script)(&method, &path);
            async move { answer }
        }))
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn status(code: u16) -> Result<Called, FetchError> {
    Ok(Called { status: code, ..Called::default() })
}

fn leads(to: &str) -> Result<Called, FetchError> {
    Ok(Called { status: 301, location: Some(url(to)), ..Called::default() })
}

fn url(path: &str) -> Url {
    Url::parse("https://example.org/").unwrap().join(path).unwrap()
}

fn plan() -> ProbePlan {
    let item = |name: &str| (SyncId::new(name).unwrap(), url(name));
    ProbePlan {
        scope: ProbeScope::from_feed_url("https://example.org/feed").unwrap(),
        listed: url("/listed"),
        items: vec![item("a"), item("b")],
    }
}

static PAGES: Semaphore = Semaphore::const_new(MAX_PAGES_AT_ONCE);

fn new<'a>(site: &Arc<Site>, plan: &'a ProbePlan, pause: Duration) -> ProbeRun<'a> {
    let (leads, now) = (LeadScope::default(), tidegate_core::model::Time::from_unix(0));
    let way = CallRequest::page(plan.listed.clone(), leads, now);
    ProbeRun::new(site.service(), &PAGES, plan, pause, way)
}

async fn ask(site: &Arc<Site>) -> (Replies, bool) {
    let plan = plan();
    let mut probe_run = new(site, &plan, Duration::from_secs(1));
    let replies = probe_run.ask_all().await;
    assert_eq!(usize::try_from(probe_run.requests).unwrap(), site.asked().len());
    (replies, probe_run.refused)
}

/// Returns what came of each item: the status and who answered, or why there was none.
fn answers(replies: &Replies) -> Vec<String> {
    let answer = |(_, reply): &(SyncId, Option<ProbeReply>)| match reply.as_ref().map(|it| &it.end)
    {
        Some(ProbeEnd::Status { code, at }) => format!("{code} {at}"),
        Some(ProbeEnd::NoStatus(why)) => why.clone(),
        None => "not asked".to_owned(),
    };
    replies.items.iter().map(answer).collect()
}

/// The listed item, a made-up address, and the two items answer by these codes to HEAD and to GET; 0: it is not asked.
#[tokio::test(start_paused = true)]
async fn what_is_listed_is_asked_for_then_a_made_up_address_then_the_items() {
    let by_get =
        "HEAD /listed GET /listed HEAD /made-up GET /made-up HEAD /a GET /a HEAD /b GET /b";
    let none = "HEAD /listed GET /listed GET /made-up GET /a GET /b";
    let any = "HEAD /listed HEAD /made-up GET /made-up GET /a GET /b";
    let busy = "HEAD /listed HEAD /made-up GET /made-up HEAD /a";
    for (to_head, to_get, asked, found) in [
        ([200, 404, 404, 404], [0; 4], "HEAD /listed HEAD /made-up HEAD /a HEAD /b", [404, 404]),
        // HEAD gives way to GET where it is refused.
        ([405; 4], [200, 410, 410, 200], by_get, [410, 200]),
        ([501; 4], [200, 410, 410, 200], by_get, [410, 200]),
        ([403; 4], [200, 410, 410, 200], by_get, [410, 200]),
        // A server that knows no HEAD, and answers 404 to every one, or 200, is asked by GET alone.
        ([404; 4], [200, 404, 200, 404], none, [200, 404]),
        ([200; 4], [200, 404, 200, 404], any, [200, 404]),
        // A wall is not asked further, and a site that is busy is left alone.
        ([404; 4], [404; 4], "HEAD /listed GET /listed", [0, 0]),
        ([200, 200, 429, 200], [200; 4], busy, [429, 0]),
        ([200, 200, 503, 200], [200; 4], busy, [503, 0]),
        ([503; 4], [503; 4], "HEAD /listed", [0, 0]),
    ] {
        let site = Site::new(move |method, path| {
            let place = ["/listed", "/made-up", "/a", "/b"].iter().position(|it| *it == path);
            status(if method == "HEAD" { to_head } else { to_get }[place.unwrap()])
        });
        let began = Instant::now();
        let (replies, refused) = ask(&site).await;
        assert_eq!(site.asked().join(" "), asked);
        let found = [("a", found[0]), ("b", found[1])].map(|(item, code)| match code {
            0 => "not asked".to_owned(),
            code => format!("{code} https://example.org/{item}"),
        });
        assert_eq!(answers(&replies), found, "{asked}");
        assert_eq!(refused, to_head.iter().any(|code| [429, 503].contains(code)), "{asked}");
        assert_eq!(replies.made_up.is_some(), asked.contains("made-up"));
        // Requests are apart by the host's pause.
        assert_eq!(began.elapsed(), Duration::from_secs(site.asked().len() as u64 - 1));
    }
}

#[tokio::test(start_paused = true)]
async fn no_page_is_asked_for_while_as_many_are_as_may_be() {
    let (site, plan, pages) = (Site::new(|_, _| status(200)), plan(), Semaphore::new(0));
    let mut probe_run = new(&site, &plan, Duration::ZERO);
    probe_run.pages = &pages;
    let mut all = std::pin::pin!(probe_run.ask_all());
    assert!(timeout(Duration::from_secs(60), &mut all).await.is_err());
    assert!(site.asked().is_empty());
    pages.add_permits(1);
    assert_eq!(all.await.items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn it_is_told_where_redirects_lead_and_what_fails() {
    let failed = FetchError::Connect { host: "example.org".into(), why: "no route".into() };
    for (a, expected) in [
        (leads("http://www.example.org/elsewhere#x"), "200 http://www.example.org/elsewhere"),
        (leads("/a"), "it sent more than 5 redirects"),
        (status(302), "a redirect (302) leads nowhere"),
        (Err(failed), "could not connect to example.org: no route"),
    ] {
        // The last page leads to another site, which is not asked.
        let site = Site::new(move |_, path| match path {
            "/a" => a.clone(),
            "/b" => leads("https://example.com/b"),
            _ => status(200),
        });
        let other = "a redirect (301) leads to another site, example.com";
        assert_eq!(answers(&ask(&site).await.0), [expected, other]);
        assert_eq!(site.asked().last().unwrap(), "HEAD /b");
    }
}

#[tokio::test(start_paused = true)]
async fn a_round_has_its_time() {
    let (site, plan) = (Site::new(|_, _| status(200)), plan());
    let replies = new(&site, &plan, PROBE_TIME).ask_all().await;
    assert_eq!(replies.items.len(), 0, "{:?}", site.asked());
    assert_eq!(site.asked(), ["HEAD /listed", "HEAD /made-up", "GET /made-up"]);
}

#[test]
fn a_few_within_any_hour() {
    let (mut all, of) = (Allowances::default(), AskedOf::Host("one".to_owned()));
    // A clock that goes back blocks for an hour at most.
    for (asked, second, room) in
        [(3, 0, 4), (0, 1800, 1), (1, 1800, 1), (0, 3599, 0), (0, 3600, 3), (4, 5400, 4)]
            .into_iter()
            .chain([(0, 0, 0), (0, 3599, 0), (0, 3600, 4)])
    {
        assert_eq!(all.room(&of, 4, at(second)), room, "{second}");
        all.record_requests(of.clone(), asked, at(second));
    }
}

#[test]
fn hosts_have_their_own_and_are_forgotten() {
    let mut all = Allowances::default();
    let (a, b) = (name("a"), name("b"));
    let mut take = |feed, host, probing, now| all.take((feed, host), probing, 10, at(now));
    assert_eq!(take(&a, "one", Probing::All, 0), 10);
    assert_eq!(take(&b, "one", Probing::All, 20), 2);
    assert_eq!(take(&b, "one", Probing::Doubts, 20), 0);
    assert_eq!(take(&b, "two", Probing::Doubts, 20), HOST_DOUBTS_PER_HOUR);
    all.exhaust(&b, "two", at(30));
    assert_eq!(all.take((&a, "two"), Probing::All, 10, at(40)), 0);
    assert_eq!(all.room_of_feed(&b, Probing::All, at(40)), 0);
    assert_eq!(all.room_of_feed(&name("c"), Probing::All, at(40)), FEED_ASKS_PER_HOUR);
    assert_eq!(all.room_of_feed(&name("c"), Probing::Doubts, at(40)), 1);
    assert_eq!(all.room_of_feed(&name("c"), Probing::Doubts, at(3639)), 0);
    assert_eq!(all.room_of_feed(&name("c"), Probing::Off, at(3640)), 0);
    assert_eq!(all.room(&AskedOf::Host("one".to_owned()), 1, at(7300)), 1);
    assert!(all.0.is_empty());
}
