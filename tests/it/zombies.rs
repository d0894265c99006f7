//! Two gateways that share a feed: what one of them has purged does not come back from the other, however
//! old the version that the other has.

use crate::support::gateways::{Paper, get, name};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidegate::app::{ConfigSource, Gateway, Outside, export, import};
use tidegate_config::{self as config, Overrides};
use tidegate_core::clock::{Clock, ManualClock};
use tidegate_core::model::{FeedState, Time};
use tidegate_store::Select;

const START: i64 = 1_795_191_605;

/// A document of an upstream that lists everything.
fn plain(posts: &[u32]) -> String {
    let entries = posts.iter().map(|n| {
        format!(
            "<entry><id>urn:post:{n}</id><title>Post {n}</title>\
             <updated>2026-01-{n:02}T00:00:00Z</updated><content>Text of post {n}</content></entry>"
        )
    });
    let entries: String = entries.collect();
    format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>News</title><id>urn:news</id>\
         <updated>2026-01-01T00:00:00Z</updated>{entries}</feed>"
    )
}

/// A gateway on disk, and what of it outlives a restart.
struct Site {
    gateway: Option<Gateway>,
    clock: ManualClock,
    endpoint: &'static str,
    url: String,
    /// How long it keeps tombstones.
    tombstones: &'static str,
    folder: tempfile::TempDir,
}

impl Site {
    async fn start(
        endpoint: &'static str,
        url: &str,
        tombstones: &'static str,
        clock: &ManualClock,
    ) -> Self {
        let (clock, url) = (clock.clone(), url.to_owned());
        let folder = tempfile::tempdir().unwrap();
        let mut site = Self { gateway: None, clock, endpoint, url, tombstones, folder };
        site.open("data").await;
        site
    }

    async fn open(&mut self, data: &str) {
        let path = self.folder.path().join(data);
        let Self { endpoint, url, tombstones, .. } = &self;
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\n[store]\nkind = \"sled\"\npath = \"{}\"\n[publish]\n\
             endpoint = \"{endpoint}\"\nwindow = \"1m\"\ntombstones = \"{tombstones}\"\n[polling]\n\
             allow_private = true\nhost_spacing = \"0s\"\nmin_interval = \"1d\"\n[websub]\nhub = false\n\
             subscribe = false\n[[feed]]\nname = \"news\"\nurl = \"{url}\"\ncomplete = true\n\
             deletions = \"eager\"\n",
            path.display()
        );
        let config = config::check("t.toml", &text).unwrap_or_else(|e| panic!("{e}")).config;
        let outside = Outside { clock: Arc::new(self.clock.clone()), ..Outside::default() };
        self.gateway = Some(Gateway::start(&config, outside).await.unwrap());
    }

    fn gateway(&self) -> &Gateway {
        self.gateway.as_ref().unwrap()
    }

    async fn poll(&self) {
        let report = self.gateway().operator().poll_now(&name()).await.unwrap();
        assert_eq!(report.error, None, "{report:?}");
    }

    async fn state(&self) -> FeedState {
        self.gateway().store().state(&name()).await.unwrap().unwrap()
    }

    /// The titles of what a reader sees, in order.
    async fn titles(&self) -> Vec<String> {
        let view = self.gateway().store().view(&name(), Select::Current).await.unwrap().unwrap();
        let titles = view.items.into_iter().map(|item| item.shared.winner.data.card.title);
        let mut titles: Vec<String> = titles.collect();
        titles.sort();
        titles
    }

    async fn stop(&mut self) {
        self.gateway.take().unwrap().stop().await.unwrap();
    }

    /// Goes on from a copy of itself.
    async fn import_copy(&mut self) {
        self.stop().await;
        let of = |data: &Path| {
            let overrides = Overrides { data: Some(data.to_owned()), ..Overrides::default() };
            ConfigSource::File { path: None, overrides }
        };
        let at = self.folder.path();
        let (file, settings) = (at.join("gate.tg"), of(&at.join("data")));
        export(&file, &settings).await.unwrap();
        let settings = of(&at.join("copy"));
        import(&file, &settings, false, Arc::new(self.clock.clone())).await.unwrap();
        self.open("copy").await;
    }
}

/// Lets time pass for the gateways, by which what they keep ages.
fn pass(clock: &ManualClock, hours: u64) {
    clock.set(clock.now().plus(Duration::from_secs(hours * 3600)));
}

/// Makes the hourly look at what is kept due.
async fn look_at_what_is_kept() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(3601)).await;
    tokio::time::resume();
}

/// Waits until a gateway has so many tombstones.
async fn until_tombstones(site: &Site, wanted: u32) {
    for _ in 0..2_000 {
        if site.state().await.tombstones == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{} tombstones, not {wanted}", site.state().await.tombstones);
}

/// `b` follows a publisher, and `a` what `b` says; in between stands a paper, so that `a` can be shown what
/// `b` said earlier.
struct Pair {
    publisher: Paper,
    between: Paper,
    a: Site,
    b: Site,
    clock: ManualClock,
    /// What `b` said when everything was alive.
    alive: String,
}

impl Pair {
    /// Both know of posts 1 to 4, and of the deletion of the second.
    async fn new() -> Self {
        let clock = ManualClock::at(Time::from_unix(START));
        let publisher = Paper::start("application/atom+xml", &plain(&[4, 3, 2, 1])).await;
        let b = Site::start("b.example", &publisher.url, "180d", &clock).await;
        b.poll().await;
        let alive = get(b.gateway(), "/complete").await;
        let between = Paper::start("application/atom+xml", &alive).await;
        let a = Site::start("a.example", &between.url, "1m", &clock).await;
        let pair = Self { publisher, between, a, b, clock, alive };
        pair.a.poll().await;
        assert_eq!(pair.a.titles().await, ["Post 1", "Post 2", "Post 3", "Post 4"]);
        pass(&pair.clock, 1);
        pair.publisher.print(&plain(&[4, 3, 1]));
        pair.b.poll().await;
        pair.b_is_read().await;
        assert_eq!((pair.a.state().await.tombstones, pair.b.state().await.tombstones), (1, 1));
        pair
    }

    /// `a` reads what `b` says now.
    async fn b_is_read(&self) {
        self.between.print(&get(self.b.gateway(), "/complete").await);
        self.a.poll().await;
    }

    /// Over several periods, whatever `b` says, nothing comes back.
    async fn assert_stays_gone(&self) {
        for _ in 0..3 {
            pass(&self.clock, 1);
            self.between.print(&self.alive);
            self.a.poll().await;
            assert_eq!(self.a.titles().await, ["Post 1", "Post 3", "Post 4"], "alive as of before");
            assert_eq!(self.a.state().await.tombstones, 0);
            pass(&self.clock, 1);
            self.b_is_read().await;
            assert_eq!(self.a.titles().await, ["Post 1", "Post 3", "Post 4"], "a tombstone");
            assert_eq!(self.a.state().await.tombstones, 0);
            assert_eq!(self.b.state().await.tombstones, 1);
        }
    }
}

#[tokio::test]
async fn what_was_purged_does_not_come_back_from_a_peer_after_a_restart_or_an_import() {
    let mut pair = Pair::new().await;
    pass(&pair.clock, 1);
    look_at_what_is_kept().await;
    until_tombstones(&pair.a, 0).await;
    assert!(!get(pair.a.gateway(), "/complete").await.contains("Post 2"));
    pair.assert_stays_gone().await;

    pair.a.stop().await;
    pass(&pair.clock, 1);
    pair.a.open("data").await;
    pair.assert_stays_gone().await;

    pair.a.import_copy().await;
    pair.assert_stays_gone().await;
    pair.a.stop().await;
    pair.b.stop().await;
}

/// The other way round: who still has the tombstone reads of who purged it.
#[tokio::test]
async fn a_peer_that_keeps_a_tombstone_is_not_confused_by_one_that_purged_it() {
    let mut pair = Pair::new().await;
    let keeps =
        Paper::start("application/atom+xml", &get(pair.a.gateway(), "/complete").await).await;
    let mut c = Site::start("c.example", &keeps.url, "180d", &pair.clock).await;
    c.poll().await;
    assert_eq!(c.state().await.tombstones, 1);
    pass(&pair.clock, 1);
    look_at_what_is_kept().await;
    until_tombstones(&pair.a, 0).await;
    for _ in 0..3 {
        pass(&pair.clock, 1);
        keeps.print(&get(pair.a.gateway(), "/complete").await);
        c.poll().await;
        assert_eq!(c.titles().await, ["Post 1", "Post 3", "Post 4"]);
        assert_eq!(c.state().await.tombstones, 1);
    }
    for site in [&mut pair.a, &mut pair.b, &mut c] {
        site.stop().await;
    }
}
