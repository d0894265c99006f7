//! What serves with one configuration: made whole before any of it is in force, then put in the place of what served before.

use super::{Ground, Outside, refused, settings};
use crate::app::tls::CertificateFiles;
use crate::app::{AppError, ErrorContext, disk, origins, outgoing, token};
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate_config::{Config, PageAudience};
use tidegate_net::fetch::Services;
use tidegate_poll::hub::{Calling, Hub, HubConfig, Topics};
use tidegate_serve::{
    self as serve, AdminToken, InForce, ListeningSockets, Operator, ReaderAccess, ServeError,
    SiteHandle, SiteServer,
};
use tidegate_store::SharedSettings;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A socket that is listened on: the next configuration listens there as well, where it names the same address.
struct Socket {
    wanted: SocketAddr,
    address: SocketAddr,
    socket: std::net::TcpListener,
    /// Ends the connections that came there.
    serving: CancellationToken,
}

impl Socket {
    /// Listens at the address of a key of `[server]`: on the socket of `before` where it has that address, or on one that
    /// was handed over.
    async fn listen(
        (wanted, key): (SocketAddr, &str),
        before: Option<&Self>,
        given: Option<&std::net::TcpListener>,
    ) -> Result<(Self, TcpListener), AppError> {
        let before = before.filter(|before| before.wanted == wanted);
        let serving = before.map(|before| before.serving.clone()).unwrap_or_default();
        let socket = match before.map(|before| &before.socket).or(given) {
            Some(there) => there.try_clone(),
            None => {
                let bound = TcpListener::bind(wanted).await;
                bound.map_err(|error| refused((wanted, key), error))?.into_std()
            }
        };
        let listen = |socket: &std::net::TcpListener| -> std::io::Result<_> {
            socket.set_nonblocking(true)?;
            Ok((socket.local_addr()?, TcpListener::from_std(socket.try_clone()?)?))
        };
        let listening = socket.and_then(|socket| listen(&socket).map(|opened| (socket, opened)));
        let (socket, (address, listener)) =
            listening.context(format!("the socket of server.{key} is of no use"))?;
        Ok((Self { wanted, address, socket, serving }, listener))
    }
}

/// A configuration with all that it needs and that may fail, none of it in force yet.
pub(super) struct PreparedSite {
    sockets: (Socket, Option<Socket>),
    listeners: (TcpListener, Option<TcpListener>),
    origin: String,
    pub(super) public_url: String,
    tls: Option<CertificateFiles>,
    admin_token: AdminToken,
    readers: Vec<ReaderAccess>,
    pub(super) services: Services,
    calling: Calling,
    hub: Option<Hub>,
    shared: Option<SharedSettings>,
}

/// What serves.
pub(super) struct RunningSite {
    /// Where it is reached at the address that it listens on.
    pub(super) origin: String,
    sockets: (Socket, Option<Socket>),
    admin_token: AdminToken,
    handle: SiteHandle,
    /// Ends what belongs to this configuration alone: listening, and the look at its certificate.
    closing: CancellationToken,
    serve_task: JoinHandle<Result<(), ServeError>>,
    hub: Option<RunningHub>,
}

/// The hub, which may run with one configuration after the other.
struct RunningHub {
    hub: Hub,
    ends: CancellationToken,
    task: JoinHandle<()>,
}

impl PreparedSite {
    /// Prepares a configuration; `before`: what is in force, with its configuration.
    pub(super) async fn new(
        ground: &Ground,
        config: &Config,
        before: Option<(&RunningSite, &Config)>,
    ) -> Result<Self, AppError> {
        let site = before.map(|(site, _)| site);
        let sockets = site.map(|site| &site.sockets);
        let Outside { clock, listener: given, admin_listener: operators, .. } = &ground.outside;
        let (given, operators) = (given.as_deref(), operators.as_deref());
        let wanted = (config.server.listen, "listen");
        let (socket, listener) = Socket::listen(wanted, sockets.map(|(own, _)| own), given).await?;
        let of_operators = match config.server.admin_listen {
            Some(wanted) => {
                let own = sockets.and_then(|(_, own)| own.as_ref());
                Some(Socket::listen((wanted, "admin_listen"), own, operators).await?)
            }
            None => None,
        };
        let (admin_socket, admin_listener) = of_operators.unzip();
        let origin = config.server.origin(socket.address);
        let public_url = config.server.public_url.clone().unwrap_or_else(|| origin.clone());
        let fetch = outgoing::fetch_settings(config, &public_url);
        let services = outgoing::services(fetch.clone())?;
        let calling = outgoing::calling(config, fetch, &services)?;
        let hub = match site.and_then(|site| site.hub.as_ref()) {
            _ if !config.websub.hub => None,
            Some(running) => Some(running.hub.clone()),
            None => {
                let parts = HubConfig {
                    store: Arc::clone(&ground.store),
                    clock: Arc::clone(&ground.unhurried),
                    settings: outgoing::hub(config),
                    calling: calling.clone(),
                };
                Some(Hub::open(parts).await.context("the subscriptions could not be read")?)
            }
        };
        let shared = ground.store.gateways().map(|_| settings::shared(config, &public_url));
        let in_force = before.map(|(site, config)| (config, &site.admin_token));
        Ok(Self {
            sockets: (socket, admin_socket),
            listeners: (listener, admin_listener),
            origin,
            tls: CertificateFiles::find(config, clock.now())?,
            admin_token: token::admin_token(config, in_force)?,
            readers: token::readers(config)?,
            shared: shared.transpose()?,
            public_url,
            services,
            calling,
            hub,
        })
    }

    /// What administration goes by.
    pub(super) fn in_force(&self, config: &Config) -> InForce {
        InForce::new(config, &self.public_url, self.services.clone(), self.hub.clone())
    }

    /// Serves with it, in the place of what serves.
    pub(super) async fn put_in_force(
        self,
        ground: &Ground,
        config: &Config,
        operator: &Arc<Operator>,
        before: Option<&mut RunningSite>,
    ) -> RunningSite {
        let store = &ground.store;
        if let Some((gateways, settings)) = store.gateways().zip(self.shared) {
            gateways.publish_settings(settings);
        }
        operator.open_all().await;
        if let Some(hub) = &self.hub {
            hub.reconfigure(self.calling, outgoing::hub(config));
            outgoing::keep_webhooks(hub, config, store.as_ref()).await;
        }
        let settings = serve::ServeSettings {
            public_url: self.public_url.clone(),
            connections: serve::connections_within_files(config.server.connections),
            memory: config.server.memory,
            trusted_proxies: config.server.trusted_proxies.clone(),
            admin_token: self.admin_token.clone(),
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
            readers: self.readers,
            challenge: config.server.challenge,
            pages_are_closed: config.server.pages == PageAudience::Operators,
            operators_apart: config.server.admin_listen.is_some(),
            is_indexed: config.server.indexed,
        };
        let parts = serve::ServerConfig {
            operator: Arc::clone(operator),
            settings,
            folder: disk::keeps(config).then(|| config.store.path.clone()),
            origins: origins::settings(config, &self.public_url, operator),
            before: before.as_ref().map(|before| before.handle.clone()),
        };
        let closing = CancellationToken::new();
        let handle = SiteServer::new(parts, closing.clone()).put_in_force();
        let running = before.and_then(|before| before.hub.take_if(|_| self.hub.is_some()));
        let keys = self.tls.as_ref().map(CertificateFiles::keys);
        let (own, operators) = &self.sockets;
        let operators = operators.as_ref().map(|socket| socket.serving.clone());
        let listeners = ListeningSockets {
            own: (self.listeners.0, own.serving.clone()),
            operators: self.listeners.1.zip(operators),
        };
        let serve_task = tokio::spawn(handle.clone().serve(listeners, keys, closing.clone()));
        if let Some(tls) = self.tls {
            tokio::spawn(tls.watch(Arc::clone(&ground.outside.clock), closing.clone()));
        }
        let hub = match running {
            Some(running) => {
                // Readers whose token is revoked have topics no more.
                running.hub.check_topics();
                Some(running)
            }
            None => self.hub.map(|hub| RunningHub::start(hub, handle.topics())),
        };
        let (origin, sockets, admin_token) = (self.origin, self.sockets, self.admin_token);
        RunningSite { origin, sockets, admin_token, handle, closing, serve_task, hub }
    }
}

impl RunningHub {
    fn start(hub: Hub, topics: Topics) -> Self {
        let ends = CancellationToken::new();
        let task = tokio::spawn(hub.clone().run(topics, ends.clone()));
        Self { hub, ends, task }
    }
}

impl RunningSite {
    /// The address that it listens on.
    pub(super) const fn address(&self) -> SocketAddr {
        self.sockets.0.address
    }

    /// The address that administration has of its own, where it has one.
    pub(super) fn admin_address(&self) -> Option<SocketAddr> {
        self.sockets.1.as_ref().map(|socket| socket.address)
    }

    /// Whether serving or the hub has ended by itself.
    pub(super) fn has_failed(&self) -> bool {
        let hub_ended = self.hub.as_ref().is_some_and(|hub| hub.task.is_finished());
        self.serve_task.is_finished() || hub_ended
    }

    /// Ends what does not go on with `next`, and waits for its connections.
    pub(super) fn end_before(
        self,
        next: &Self,
    ) -> impl Future<Output = Result<(), AppError>> + use<> {
        let (own, operators) = &self.sockets;
        let (next_own, next_operators) = &next.sockets;
        let wanted = |socket: &Option<Socket>| socket.as_ref().map(|socket| socket.wanted);
        let are_kept = (own.wanted == next_own.wanted, wanted(operators) == wanted(next_operators));
        self.end(are_kept)
    }

    /// Ends it; connections go on that came to a socket that is kept.
    async fn end(self, are_kept: (bool, bool)) -> Result<(), AppError> {
        self.closing.cancel();
        // Nobody is to wait at a socket where nobody listens any more.
        let (own, operators) = self.sockets;
        for (socket, is_kept) in [(Some(own), are_kept.0), (operators, are_kept.1)] {
            if let Some(socket) = socket.filter(|_| !is_kept) {
                socket.serving.cancel();
            }
        }
        let hub = self.hub.map(|hub| {
            hub.ends.cancel();
            hub.task
        });
        let served = self.serve_task.await;
        if let Some(task) = hub {
            task.await.context("the hub ended badly")?;
        }
        served.context("serving ended badly")?.context("serving failed")
    }

    /// Ends, once the answers in flight are finished.
    pub(super) async fn stop(self) -> Result<(), AppError> {
        self.end((false, false)).await
    }
}
