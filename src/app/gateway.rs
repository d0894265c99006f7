//! A running gateway: what is started, in which order, and how it ends.

mod reload;
mod settings;

use self::reload::{Reloaded, without_feeds};
use super::disk::LastingStore;
use super::tls::CertificateFiles;
use super::{
    AppError, ErrorContext, disk, feeds, followers, maintenance, origins, outgoing, token,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::{Config, PageAudience};
use tidegate_core::clock::{Clock, RunningClock, SystemClock};
use tidegate_poll::hub::{Hub, HubConfig};
use tidegate_poll::{self as poll, ParseAndRecord, Poller};
use tidegate_serve::{self as serve, Operator, ServeError, SiteServer};
use tidegate_store::{FreeSpace, Store};
use tokio::net::TcpListener;
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

/// A gateway that polls and serves until it is stopped.
pub struct Gateway {
    origin: String,
    address: SocketAddr,
    admin_address: Option<SocketAddr>,
    operator: Arc<Operator>,
    reloaded: Reloaded,
    store: Arc<Store>,
    polling: CancellationToken,
    serving: CancellationToken,
    poll_task: JoinHandle<()>,
    serve_task: JoinHandle<Result<(), ServeError>>,
    /// What ends with polling, and before the store.
    background: Vec<JoinHandle<()>>,
    hub_task: Option<JoinHandle<()>>,
}

/// Why the address cannot be listened on, and what to do.
fn refused((listen, key): (SocketAddr, &str), error: std::io::Error) -> AppError {
    let choose = if key == "listen" { "--listen or server.listen" } else { "server.admin_listen" };
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
        let (given, operators) = (outside.listener.as_deref(), outside.admin_listener.as_deref());
        let (listener, address) = listen((config.server.listen, "listen"), given).await?;
        let of_operators = match config.server.admin_listen {
            Some(own) => Some(listen((own, "admin_listen"), operators).await?),
            None => None,
        };
        let (admin_listener, admin_address) = of_operators.unzip();
        let (clock, space) = (outside.clock, outside.space);
        let origin = config.server.origin(address);
        let tls = CertificateFiles::find(config, clock.now())?;
        let public_url = config.server.public_url.clone().unwrap_or_else(|| origin.clone());
        let keeps = disk::keeps(config);
        let admin_token = token::admin_token(config)?;
        let readers = token::readers(config)?;
        feeds::reconcile(store.as_ref(), config, clock.now()).await?;
        let polling = CancellationToken::new();
        let serving = CancellationToken::new();
        let fetch = outgoing::fetch_settings(config, &public_url);
        let services = outgoing::services(fetch.clone())?;
        let calling = outgoing::calling(config, fetch, &services)?;
        let last = maintenance::last_running(store.as_ref(), clock.as_ref()).await;
        let running: Arc<dyn Clock> = Arc::new(RunningClock::since(Arc::clone(&clock), last));
        // Leases are promised to last.
        let unhurried: Arc<dyn Clock> = Arc::new(RunningClock::unhurried(Arc::clone(&clock), last));
        let parts = poll::PollerConfig {
            settings: outgoing::polling(config, &public_url),
            store: Arc::clone(&store),
            clock: Arc::clone(&clock),
            running: Arc::clone(&running),
            services: services.clone(),
            judge: Arc::new(ParseAndRecord::default()),
            cancel: polling.clone(),
        };
        let (poller, poll_task) =
            Poller::start(parts).await.context("polling could not be started")?;
        let hub = match config.websub.hub {
            true => {
                let settings = outgoing::hub(config);
                let (store, hosts) = (Arc::clone(&store), poller.hosts());
                let parts = HubConfig { store, clock: unhurried, hosts, settings, calling };
                let opened = Hub::open(parts).await;
                let unread = "the subscriptions could not be read";
                Some(opened.context(unread)?)
            }
            false => None,
        };
        settings::publisher(store.as_ref(), config, &public_url)?();
        let operator = Arc::new(Operator::new(
            Arc::clone(&store),
            Arc::clone(&clock),
            (poller, services),
            without_feeds(config.clone()),
            public_url.clone(),
            hub.clone(),
        ));
        operator.open_all().await;
        if let Some(hub) = &hub {
            outgoing::keep_webhooks(hub, config, store.as_ref()).await;
        }
        let public_address = public_url.clone();
        let settings = serve::ServeSettings {
            public_url,
            connections: serve::connections_within_files(config.server.connections),
            memory: config.server.memory,
            trusted_proxies: config.server.trusted_proxies.clone(),
            admin_token,
            dialect: config.publish.dialect,
            window: config.publish.window,
            history: config.publish.history_links,
            absolute_urls: config.publish.absolute_urls,
            keep_new_feed_url: config.publish.keep_new_feed_url,
            deltas: config.publish.deltas,
            periods: config.sup.periods.clone(),
            hub: config.websub.hub,
            cloud: config.websub.hub && config.websub.rsscloud,
            keeping: serve::Keeping {
                archives: config.publish.archives,
                past: config.publish.past,
            },
            readers,
            challenge: config.server.challenge,
            pages_are_closed: config.server.pages == PageAudience::Operators,
            operators_apart: admin_address.is_some(),
            is_indexed: config.server.indexed,
        };
        let parts = serve::ServerConfig {
            operator: Arc::clone(&operator),
            settings,
            folder: keeps.then(|| config.store.path.clone()),
            origins: origins::settings(config, &public_address, &operator),
        };
        let keys = tls.as_ref().map(|tls| tls.keys());
        let server = SiteServer::new(parts, serving.clone()).with_tls(keys);
        let site = server.control();
        let reloaded = Reloaded {
            site,
            space: space.clone(),
            tls: tls.clone(),
            store: Arc::clone(&store),
            clock: Arc::clone(&clock),
            public_url: public_address,
        };
        let topics = server.topics();
        let serve_task = tokio::spawn(server.run(listener, admin_listener));
        let hub_task = hub.map(|hub| tokio::spawn(hub.run(topics, polling.clone())));
        let (wall, ends) = (Arc::clone(&clock), polling.clone());
        tokio::spawn(origins::maintain(Arc::clone(&operator), Arc::clone(&wall), ends.clone()));
        let (clocks, work) = ((clock, running), (Arc::clone(&operator), space.clone()));
        let aging = feeds::run_maintenance(Arc::clone(&store), clocks, work, ends.clone());
        let following = followers::follow_sources(Arc::clone(&store), Arc::clone(&operator), ends);
        let mut background = vec![tokio::spawn(aging), tokio::spawn(following)];
        if let Some(space) = space {
            tokio::spawn(disk::watch(space, polling.clone()));
        }
        background.extend(tls.map(|tls| tokio::spawn(tls.watch(wall, polling.clone()))));
        Ok(Self {
            origin,
            address,
            admin_address,
            background,
            operator,
            reloaded,
            store,
            polling,
            serving,
            poll_task,
            serve_task,
            hub_task,
        })
    }

    /// Where it is reached at the address that it listens on: `http://127.0.0.1:8080`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The address that it listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address that administration has of its own, where it has one.
    pub const fn admin_address(&self) -> Option<SocketAddr> {
        self.admin_address
    }

    /// Where it keeps what it knows.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// What administration does.
    pub fn operator(&self) -> Arc<Operator> {
        Arc::clone(&self.operator)
    }

    /// Goes on with another configuration. Answers the keys that differ and need a restart, by table and
    /// name: what is in force of them stays. Where it fails, nothing has changed.
    pub async fn reload(&self, config: &Config) -> Result<Vec<String>, AppError> {
        self.reloaded.take(&self.operator, config.clone()).await
    }

    /// Whether serving, polling or the hub has ended by itself.
    pub fn has_failed(&self) -> bool {
        let hub_ended = self.hub_task.as_ref().is_some_and(JoinHandle::is_finished);
        self.serve_task.is_finished() || self.poll_task.is_finished() || hub_ended
    }

    /// Ends in order: no new polls, then the answers in flight, then the store.
    pub async fn stop(self) -> Result<(), AppError> {
        self.polling.cancel();
        self.serving.cancel();
        let polled = self.poll_task.await;
        let served = self.serve_task.await;
        for task in self.background {
            let _ = task.await;
        }
        let delivered = match self.hub_task {
            Some(task) => task.await,
            None => Ok(()),
        };
        self.store.close().await.context("the store could not be closed")?;
        polled.context("polling ended badly")?;
        delivered.context("the hub ended badly")?;
        served.context("serving ended badly")?.context("serving failed")
    }
}

/// Listens at the address of a key of `[server]`, or on a socket that is there already; the socket, and the
/// address that it has.
async fn listen(
    wanted: (SocketAddr, &str),
    given: Option<&std::net::TcpListener>,
) -> Result<(TcpListener, SocketAddr), AppError> {
    let listener = match given {
        None => TcpListener::bind(wanted.0).await.map_err(|error| refused(wanted, error))?,
        Some(given) => {
            let taken = given.try_clone().and_then(|listener| {
                listener.set_nonblocking(true)?;
                TcpListener::from_std(listener)
            });
            let unusable = "the socket that was handed over is of no use";
            taken.context(unusable)?
        }
    };
    let address = listener.local_addr();
    let address = address.context("the listening address is unknown")?;
    Ok((listener, address))
}

/// An error where the database has no standby that commits wait for. As a gateway starts: one that runs goes on while
/// the database fails over.
async fn check_standby(config: &Config) -> Result<(), AppError> {
    let Some(LastingStore::Postgres(request)) = disk::request(config)? else { return Ok(()) };
    request.check_standby().await.context("this gateway is not started")
}

/// What administration does at a gateway without a network.
#[cfg(test)]
pub(super) fn operator_of(
    gateway: &tidegate_poll::testing::gateway::Gateway,
    config: &Config,
) -> Operator {
    let (store, clock) = (gateway.store.real(), Arc::new(gateway.clock.clone()));
    let polling = (gateway.poller.clone(), gateway.publisher.services());
    Operator::new(
        store,
        clock,
        polling,
        config.clone(),
        "https://feeds.example.org".to_owned(),
        None,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_poll::testing::double::{StoreFault, store_of};

    /// Whatever cannot be stored, the token that is let in stays the one that the log says.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_reload_is_taken_as_a_whole_or_not_at_all() {
        let config = |token: &str, feeds: &str| {
            let text = format!(
                "[server]\nlisten = \"127.0.0.1:0\"\nadmin_token = {token:?}\n[store]\nkind = \"memory\"\n\
                 [websub]\nhub = false\n{feeds}"
            );
            tidegate_config::check("t.toml", &text).unwrap().config
        };
        let (old, new) = ("the-token-that-was-before", "the-token-that-comes-then");
        let first = config(old, "");
        let feed = "[[feed]]\nname = \"a\"\nurl = \"https://a.example/\"\n";
        let second = config(new, feed);
        let store = store_of(&[]);
        let over = store.real();
        let started = Gateway::start_over(&first, Outside::default(), over).await;
        let gateway = started.unwrap();
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
        assert_eq!(gateway.reload(&second).await.unwrap(), Vec::<String>::new());
        assert!(is_let_in(new).await && !is_let_in(old).await);
        assert_eq!(feeds().await, 1);
        gateway.stop().await.unwrap();
    }

    #[tokio::test]
    async fn an_address_in_use_is_said_with_what_to_do() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listen = taken.local_addr().unwrap();
        let error = TcpListener::bind(listen).await.unwrap_err();
        let said = refused((listen, "listen"), error).report();
        assert!(said.contains(&listen.to_string()) && said.contains("--listen"), "{said}");
        assert!(said.contains("another program listens there"), "{said}");
    }
}
