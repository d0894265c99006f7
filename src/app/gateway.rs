//! A running gateway: what is started, in which order, and how it ends.

mod settings;
mod site;

use super::disk::LastingStore;
use super::{AppError, ErrorContext, disk, feeds, followers, maintenance, origins, outgoing};
use site::{PreparedSite, RunningSite};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Config;
use tidegate_core::clock::{Clock, RunningClock, SystemClock};
use tidegate_poll::{self as poll, HostQueue, PollError, Poller};
use tidegate_serve::Operator;
use tidegate_store::{FreeSpace, Store};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Until the others have seen that a gateway's lease ended.
const SEEN_WITHIN: Duration = Duration::from_secs(2);
/// How often it is looked whether it does.
const GONE_LOOK: Duration = Duration::from_millis(500);

/// What a gateway takes from outside itself.
pub struct Outside {
    /// Tells the time; set by hand in tests.
    pub clock: Arc<dyn Clock>,
    /// Measures the space on the store's file system; `None`: as the system says.
    pub space: Option<Arc<FreeSpace>>,
    /// Where to listen, instead of `server.listen`: a socket that a service manager opened.
    pub listener: Option<Arc<std::net::TcpListener>>,
    /// The same instead of `server.admin_listen`.
    pub admin_listener: Option<Arc<std::net::TcpListener>>,
}

impl Default for Outside {
    fn default() -> Self {
        Self { clock: Arc::new(SystemClock), space: None, listener: None, admin_listener: None }
    }
}

/// What a gateway stands on, whatever its configuration says.
struct Ground {
    outside: Outside,
    store: Arc<Store>,
    /// The running time by which leases, which are promised to last, go on.
    unhurried: Arc<dyn Clock>,
    /// The lines of hosts, in which polls and the hub wait.
    hosts: Arc<HostQueue>,
}

/// A gateway that polls and serves until it is stopped.
pub struct Gateway {
    ground: Ground,
    operator: Arc<Operator>,
    polling: CancellationToken,
    poll_task: JoinHandle<()>,
    site: RunningSite,
    /// The hub that a reload turned off, until it has ended.
    ending_hub: Option<JoinHandle<()>>,
    /// What ends with polling, and before the store.
    background: Vec<JoinHandle<()>>,
}

/// Why the address cannot be listened on, and what to do; `choose`: what says another one.
pub(super) fn refused(listen: SocketAddr, choose: &str, error: std::io::Error) -> AppError {
    let advice = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            format!(
                ": another program listens there; stop it, or choose another address with {choose}"
            )
        }
        std::io::ErrorKind::AddrNotAvailable => {
            format!(": this machine does not have that address; choose another with {choose}")
        }
        std::io::ErrorKind::PermissionDenied => format!(
            ": a port below 1024 needs a right that this user does not have; choose another with \
             {choose}"
        ),
        _ => String::new(),
    };
    AppError::run(format!("{listen} cannot be listened on{advice}"), error)
}

impl Gateway {
    /// Starts a gateway: the store first, then the socket, then polling, then serving. When it
    /// returns, the gateway answers.
    pub async fn start(config: &Config, outside: Outside) -> Result<Self, AppError> {
        // One for the store and for who measures.
        let space = disk::watched(config, outside.space);
        let store = disk::open(config, Arc::clone(&outside.clock), space.clone()).await?;
        let has_others = || store.gateways().is_some_and(|it| it.live().len() > 1);
        let is_required = config.store.require_standby;
        if is_required.unwrap_or_else(has_others)
            && let Err(refused) = check_standby(config).await
        {
            // One that was killed, this one perhaps, counts as living for a moment.
            let lease = store.gateways().map_or(Duration::ZERO, |it| it.lease());
            let end = Instant::now() + lease + SEEN_WITHIN;
            while is_required.is_none() && has_others() && Instant::now() < end {
                sleep(GONE_LOOK).await;
            }
            if is_required.unwrap_or_else(has_others) {
                return Err(refused);
            }
        }
        Self::start_over(config, Outside { space, ..outside }, store).await
    }

    /// The same over a store that is open.
    async fn start_over(
        config: &Config,
        outside: Outside,
        store: Arc<Store>,
    ) -> Result<Self, AppError> {
        let clock = &outside.clock;
        let last = maintenance::last_running(store.as_ref(), clock.as_ref()).await;
        let running: Arc<dyn Clock> = Arc::new(RunningClock::since(Arc::clone(clock), last));
        let unhurried = Arc::new(RunningClock::unhurried(Arc::clone(clock), last));
        let ground = Ground { outside, store, unhurried, hosts: HostQueue::new() };
        let prepared = PreparedSite::new(&ground, config, None).await?;
        let (store, Outside { clock, space, .. }) = (&ground.store, &ground.outside);
        feeds::reconcile(store.as_ref(), config, clock.now()).await?;
        let polling = CancellationToken::new();
        let parts = poll::PollerConfig {
            settings: outgoing::polling(config, &prepared.public_url),
            store: Arc::clone(store),
            clock: Arc::clone(clock),
            running: Arc::clone(&running),
            services: prepared.services.clone(),
            hosts: Arc::clone(&ground.hosts),
            cancel: polling.clone(),
        };
        let (poller, poll_task) =
            Poller::start(parts).await.context("polling could not be started")?;
        let active_config = prepared.active_config(config);
        let operator = Operator::new(Arc::clone(store), Arc::clone(clock), poller, active_config);
        let operator = Arc::new(operator);
        let site = prepared.put_in_force(&ground, config, &operator, None).await;
        let ends = || polling.clone();
        tokio::spawn(origins::maintain(Arc::clone(&operator), Arc::clone(clock), ends()));
        let work = (Arc::clone(&operator), space.clone());
        let clocks = (Arc::clone(clock), running);
        let aging = feeds::run_maintenance(Arc::clone(store), clocks, work, ends());
        let following = followers::follow_sources(Arc::clone(store), Arc::clone(&operator), ends());
        let background = vec![tokio::spawn(aging), tokio::spawn(following)];
        if let Some(space) = space {
            tokio::spawn(disk::watch(Arc::clone(space), ends()));
        }
        Ok(Self { ground, operator, polling, poll_task, site, ending_hub: None, background })
    }

    /// Where it is reached at the address that it listens on: `http://127.0.0.1:8080`.
    pub fn origin(&self) -> &str {
        &self.site.origin
    }

    /// The address that it listens on.
    pub const fn address(&self) -> SocketAddr {
        self.site.address
    }

    /// The address that administration has of its own, where it has one.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.site.admin_address()
    }

    /// Where it keeps what it knows.
    pub const fn store(&self) -> &Arc<Store> {
        &self.ground.store
    }

    /// What administration does.
    pub fn operator(&self) -> Arc<Operator> {
        Arc::clone(&self.operator)
    }

    /// Hands over to another configuration, with the open store, the sockets, the schedule and what was made. Answers the
    /// keys that differ and say where the store is, which stay. Where it fails, nothing has changed.
    pub async fn reload(&mut self, config: &Config) -> Result<Vec<&'static str>, AppError> {
        let mut config = config.clone();
        let operator = Arc::clone(&self.operator);
        // Two hubs would deliver twice, and write over each other.
        if config.websub.hub
            && let Some(ending) = &mut self.ending_hub
        {
            let ended = ending.await;
            self.ending_hub = None;
            if let Err(error) = ended {
                tracing::warn!(%error, "the hub that a reload turned off ended badly");
            }
        }
        // No other change of the feeds comes between.
        let guard = operator.lock_feeds().await;
        let (guard, _) = guard.context("the feeds cannot be read")?;
        let before = operator.active_config();
        let kept = config.keep_store(&before.config);
        // What can fail comes first, and last of that what is stored: then all of it is taken.
        let prepared =
            PreparedSite::new(&self.ground, &config, Some((&self.site, &before.config))).await?;
        let Ground { store, outside: Outside { clock, space, .. }, .. } = &self.ground;
        let changed = feeds::reconcile(store.as_ref(), &config, clock.now()).await?;
        // Polling has ended only where the gateway ends.
        let stopped = |error: PollError| AppError::run("polling cannot go on", error);
        let polling = outgoing::polling(&config, &prepared.public_url);
        operator.poller.reconfigure(polling, prepared.services.clone()).await.map_err(stopped)?;
        for record in changed {
            operator.poller.put(record).await.map_err(stopped)?;
        }
        if let Some(space) = space {
            space.set_limits(config.store.space);
        }
        operator.replace_config(prepared.active_config(&config));
        let next =
            prepared.put_in_force(&self.ground, &config, &operator, Some(&mut self.site)).await;
        drop(guard);
        let mut before = std::mem::replace(&mut self.site, next);
        self.ending_hub = before.end_hub().or(self.ending_hub.take());
        self.background.retain(|task| !task.is_finished());
        self.background.push(tokio::spawn(async move {
            if let Err(error) = before.stop().await {
                tracing::warn!(error = error.report(), "what served before a reload ended badly");
            }
        }));
        Ok(kept)
    }

    /// Whether serving, polling or the hub has ended by itself.
    pub fn has_failed(&self) -> bool {
        self.site.has_failed() || self.poll_task.is_finished()
    }

    /// Ends in order: no new polls, then the answers in flight, then the store.
    pub async fn stop(self) -> Result<(), AppError> {
        self.polling.cancel();
        let (polled, served) = tokio::join!(self.poll_task, self.site.stop());
        for task in self.background.into_iter().chain(self.ending_hub) {
            let _ = task.await;
        }
        self.ground.store.close().await.context("the store could not be closed")?;
        polled.context("polling ended badly")?;
        served
    }
}

/// An error where the database has no standby that commits wait for. As a gateway starts: one that runs goes on while
/// the database fails over.
async fn check_standby(config: &Config) -> Result<(), AppError> {
    let Some(LastingStore::Postgres(request)) = disk::request(config)? else { return Ok(()) };
    request.check_standby().await.context("this gateway is not started")
}

#[cfg(test)]
pub(super) mod tests {
    use super::site::SocketKey;
    use super::*;
    use tidegate_poll::testing::double::{StoreFault, store_of};
    use tidegate_poll::testing::gateway as offline;
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    /// Over a store in memory.
    fn config(server: &str, rest: &str) -> Config {
        let text = format!("[server]\n{server}\n[store]\nkind = \"memory\"\n{rest}");
        tidegate_config::check("t.toml", &text).unwrap().config
    }

    /// What administration does at a gateway without a network.
    pub fn operator_of(gateway: &offline::Gateway, config: &Config) -> Operator {
        let (store, clock) = (gateway.store.real(), Arc::new(gateway.clock.clone()));
        let (url, services) = ("https://feeds.example.org", gateway.publisher.services());
        let active_config = tidegate_serve::ActiveConfig::new(config, url, services, None);
        Operator::new(store, clock, gateway.poller.clone(), active_config)
    }

    /// Whatever cannot be stored, the token that is let in stays the one that the log says.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_reload_is_taken_as_a_whole_or_not_at_all() {
        let config = |token: &str, feeds: &str| {
            let server = format!("listen = \"127.0.0.1:0\"\nadmin_token = {token:?}");
            self::config(&server, &format!("[websub]\nhub = false\n{feeds}"))
        };
        let (old, new) = ("the-token-that-was-before", "the-token-that-comes-then");
        let first = config(old, "");
        let feed = "[[feed]]\nname = \"a\"\nurl = \"https://a.example/\"\n";
        let second = config(new, feed);
        let store = store_of(&[]);
        let over = store.real();
        let started = Gateway::start_over(&first, Outside::default(), over).await;
        let mut gateway = started.unwrap();
        let address = format!("{}/api/v1/subscriptions", gateway.origin());
        let is_let_in = async |token: &str| {
            let asked = reqwest::Client::new().get(&address).bearer_auth(token).send().await;
            asked.unwrap().status() != 401
        };
        store.fault(StoreFault::Writes("feeds"));
        let feeds = async || store.feed_list().await.unwrap().len();
        assert!(gateway.reload(&second).await.is_err());
        assert!(is_let_in(old).await && !is_let_in(new).await);
        assert_eq!(feeds().await, 0);
        store.mend();
        assert_eq!(gateway.reload(&second).await.unwrap(), Vec::<&str>::new());
        assert!(is_let_in(new).await && !is_let_in(old).await);
        assert_eq!(feeds().await, 1);
        gateway.stop().await.unwrap();
    }

    /// What is shown, the hub and where it listens change at a reload; where that fails, nothing does.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_reload_hands_over_to_another_site() {
        let any = "listen = \"127.0.0.1:0\"";
        let other = format!("{any}\npublic_url = \"https://other.example\"");
        let store = store_of(&["a"]).real();
        let first = config(any, "");
        let mut gateway = Gateway::start_over(&first, Outside::default(), store).await.unwrap();
        let first = gateway.origin().to_owned();
        let get = async |origin: &str, path: &str| {
            let answer = reqwest::get(format!("{origin}{path}")).await?;
            Ok::<_, reqwest::Error>((answer.status().as_u16(), answer.text().await?))
        };
        let says = async |origin: &str, public: &str| {
            get(origin, "/sup.json").await.unwrap().1.contains(public)
        };
        assert!(says(&first, &first).await);
        let has_hub = async |origin: &str| {
            let asked = reqwest::Client::new().post(format!("{origin}/websub")).send().await;
            asked.unwrap().status() != 404
        };
        assert!(has_hub(&first).await);
        let mut stream = reqwest::get(format!("{first}/events")).await.unwrap();
        assert!(stream.chunk().await.unwrap().is_some());
        gateway.reload(&config(&other, "[websub]\nhub = false\n")).await.unwrap();
        assert_eq!(gateway.origin(), first, "the same socket");
        assert!(says(&first, "https://other.example").await);
        assert!(!has_hub(&first).await);
        let silent = timeout(Duration::from_millis(300), stream.chunk()).await;
        assert!(silent.is_err(), "the stream goes on: {silent:?}");

        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let elsewhere = format!("listen = \"{}\"", taken.local_addr().unwrap());
        assert!(gateway.reload(&config(&elsewhere, "")).await.is_err());
        assert!(says(&first, "https://other.example").await);
        drop(taken);
        let with_operators = format!("{elsewhere}\nadmin_listen = \"127.0.0.1:0\"");
        gateway.reload(&config(&with_operators, "")).await.unwrap();
        let (second, own) = (gateway.origin().to_owned(), gateway.admin_address().unwrap());
        assert_ne!(second, first);
        assert!(says(&second, &second).await);
        assert!(has_hub(&second).await, "the hub is back");
        assert_eq!(get(&second, "/metrics").await.unwrap().0, 404);
        assert_ne!(get(&format!("http://{own}"), "/metrics").await.unwrap().0, 404);
        assert!(get(&first, "/healthz").await.is_err(), "nobody listens there any more");
        let ended = async { while stream.chunk().await.unwrap().is_some() {} };
        timeout(Duration::from_secs(5), ended).await.expect("what was open there ends");
        // The next address covers the one that is listened on.
        let all = format!("listen = \"0.0.0.0:{}\"", gateway.address().port());
        let all = format!("{all}\nadmin_listen = \"127.0.0.1:0\"");
        gateway.reload(&config(&all, "")).await.unwrap();
        assert_eq!(get(&second, "/healthz").await.unwrap().0, 200);
        assert_eq!(gateway.admin_address(), Some(own), "the same socket");
        gateway.stop().await.unwrap();
    }

    #[tokio::test]
    async fn an_address_in_use_is_said_with_what_to_do() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listen = taken.local_addr().unwrap();
        let error = TcpListener::bind(listen).await.unwrap_err();
        let said = refused(listen, SocketKey::Listen.choose(), error).report();
        assert!(said.contains(&listen.to_string()) && said.contains("--listen"), "{said}");
        assert!(said.contains("another program listens there"), "{said}");
    }
}
