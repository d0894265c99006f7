//! What serves with one configuration: made whole before any of it is in force, then put in the place of what served before.

use super::{Ground, Outside, refused, settings};
use crate::app::tls::CertificateFiles;
use crate::app::{AppError, ErrorContext, disk, origins, outgoing, token};
use socket2::{Domain, Protocol, SockRef, Type};
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate_config::Config;
use tidegate_net::fetch::Services;
use tidegate_poll::hub::{Calling, Hub, HubConfig};
use tidegate_serve::{
    self as serve, ActiveConfig, AdminToken, Operator, ReaderAccess, ServeError, SiteHandle,
};
use tidegate_store::SharedSettings;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How many connections the system takes before they are accepted.
const BACKLOG: i32 = 1024;

/// A socket that is served, whatever site is in force: it goes on with the next configuration where that names the same
/// address by the same key.
struct Socket {
    key: SocketKey,
    wanted: SocketAddr,
    address: SocketAddr,
    /// The same socket, of which the system is told whether others may have its address.
    socket: std::net::TcpListener,
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), ServeError>>,
}

/// For whom a socket is, by its key of `[server]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SocketKey {
    Listen,
    AdminListen,
}

impl SocketKey {
    /// What says another address.
    pub(super) const fn choose(self) -> &'static str {
        match self {
            Self::Listen => "--listen or server.listen",
            Self::AdminListen => "server.admin_listen",
        }
    }
}

/// A socket that a configuration names.
struct PreparedSocket {
    key: SocketKey,
    wanted: SocketAddr,
    address: SocketAddr,
    /// `None`: it is served already.
    opened: Option<(std::net::TcpListener, TcpListener)>,
}

impl PreparedSocket {
    /// Listens at the address of a key, where none of the sockets that go on does so; or on the socket that was handed over
    /// for it.
    fn new(
        (key, wanted): (SocketKey, SocketAddr),
        (kept, ending): &(Vec<&Socket>, Vec<&Socket>),
        given: Option<&std::net::TcpListener>,
    ) -> Result<Self, AppError> {
        if let Some(socket) = kept.iter().find(|socket| socket.key == key) {
            return Ok(Self { key, wanted, address: socket.address, opened: None });
        }
        let socket = match given {
            Some(given) => {
                given.try_clone().context("the socket that was handed over is of no use")?
            }
            None => bind(wanted, ending).map_err(|error| refused(wanted, key.choose(), error))?,
        };
        let open = || {
            socket.set_nonblocking(true)?;
            Ok::<_, std::io::Error>((
                socket.local_addr()?,
                TcpListener::from_std(socket.try_clone()?)?,
            ))
        };
        let (address, listener) = open().context(format!("the socket at {wanted} is of no use"))?;
        Ok(Self { key, wanted, address, opened: Some((socket, listener)) })
    }

    /// Serves it with the site in force; `before`: the sockets that are served, which lose this one where it goes on.
    fn serve(self, before: &mut Vec<Socket>, site: &SiteHandle) -> Option<Socket> {
        let Self { key, wanted, address, opened } = self;
        let Some((socket, listener)) = opened else {
            let at = before.iter().position(|socket| socket.key == key)?;
            return Some(before.swap_remove(at));
        };
        let (shutdown, site) = (CancellationToken::new(), site.clone());
        let ends = shutdown.clone();
        let task = match key {
            SocketKey::Listen => tokio::spawn(site.serve(listener, ends)),
            SocketKey::AdminListen => tokio::spawn(site.serve_operators(listener, ends)),
        };
        Some(Socket { key, wanted, address, socket, shutdown, task })
    }
}

/// Listens at an address, which may be one that sockets of ours cover that end once this one is served.
fn bind(wanted: SocketAddr, ending: &[&Socket]) -> std::io::Result<std::net::TcpListener> {
    let listen = || {
        let domain = Domain::for_address(wanted);
        let socket = socket2::Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(!ending.is_empty())?;
        socket.bind(&wanted.into())?;
        socket.listen(BACKLOG)?;
        socket.set_reuse_port(false)?;
        Ok(socket.into())
    };
    // Programs of others never share it: the system lets them where all who listen there say so.
    let share = |is_shared| {
        let mut all = ending.iter().map(|of| SockRef::from(&of.socket).set_reuse_port(is_shared));
        all.try_for_each(|set| set)
    };
    let listening = share(true).and_then(|()| listen());
    share(false)?;
    listening
}

/// A configuration with all that it needs and that may fail, none of it in force yet.
pub(super) struct PreparedSite {
    sockets: Vec<PreparedSocket>,
    address: SocketAddr,
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
    pub(super) address: SocketAddr,
    sockets: Vec<Socket>,
    admin_token: AdminToken,
    handle: SiteHandle,
    /// Ends what belongs to this configuration alone.
    closing: CancellationToken,
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
        let Outside { clock, listener: given, admin_listener: operators, .. } = &ground.outside;
        let own = (SocketKey::Listen, config.server.listen);
        let of_operators = config.server.admin_listen.map(|own| (SocketKey::AdminListen, own));
        let goes_on = |socket: &&Socket| {
            let named = (socket.key, socket.wanted);
            named == own || Some(named) == of_operators
        };
        let served = site.map_or(&[][..], |site| &site.sockets).iter().partition(goes_on);
        let own = PreparedSocket::new(own, &served, given.as_deref())?;
        let address = own.address;
        let origin = config.server.origin(address);
        let mut sockets = vec![own];
        if let Some(named) = of_operators {
            sockets.push(PreparedSocket::new(named, &served, operators.as_deref())?);
        }
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
                    hosts: Arc::clone(&ground.hosts),
                    settings: outgoing::hub(config),
                    calling: calling.clone(),
                };
                Some(Hub::open(parts).await.context("the subscriptions could not be read")?)
            }
        };
        let shared = ground.store.gateways().map(|_| settings::shared(config, &public_url));
        let in_force = before.map(|(site, config)| (config, &site.admin_token));
        Ok(Self {
            sockets,
            address,
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
    pub(super) fn active_config(&self, config: &Config) -> ActiveConfig {
        ActiveConfig::new(config, &self.public_url, self.services.clone(), self.hub.clone())
    }

    /// Serves with it, in the place of what serves.
    pub(super) async fn put_in_force(
        self,
        ground: &Ground,
        config: &Config,
        operator: &Arc<Operator>,
        mut before: Option<&mut RunningSite>,
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
        let settings = serve::ServeSettings::new(
            config,
            self.public_url.clone(),
            serve::connections_within_files(config.server.connections),
            (self.admin_token.clone(), self.readers),
        );
        let parts = serve::ServerConfig {
            operator: Arc::clone(operator),
            settings,
            folder: disk::keeps(config).then(|| config.store.path.clone()),
            origins: origins::settings(config, &self.public_url),
            tls: self.tls.as_ref().map(CertificateFiles::keys),
            before: before.as_ref().map(|before| before.handle.clone()),
        };
        let closing = CancellationToken::new();
        let handle = SiteHandle::put_in_force(parts, closing.clone());
        let mut none = Vec::new();
        let served = before.as_mut().map_or(&mut none, |before| &mut before.sockets);
        let sockets = self.sockets.into_iter();
        let sockets = sockets.filter_map(|socket| socket.serve(served, &handle)).collect();
        if let Some(tls) = self.tls {
            tokio::spawn(tls.watch(Arc::clone(&ground.outside.clock), closing.clone()));
        }
        let running = before.and_then(|before| before.hub.take_if(|_| self.hub.is_some()));
        let hub = match running {
            Some(running) => {
                // Readers whose token is revoked have topics no more.
                running.hub.check_topics();
                Some(running)
            }
            None => self.hub.map(|hub| {
                let ends = CancellationToken::new();
                let task = tokio::spawn(hub.clone().run(handle.topics(), ends.clone()));
                RunningHub { hub, ends, task }
            }),
        };
        let Self { origin, address, admin_token, .. } = self;
        RunningSite { origin, address, sockets, admin_token, handle, closing, hub }
    }
}

impl RunningSite {
    /// The address that administration has of its own, where it has one.
    pub(super) fn admin_address(&self) -> Option<SocketAddr> {
        let own = self.sockets.iter().find(|socket| socket.key == SocketKey::AdminListen);
        own.map(|socket| socket.address)
    }

    /// Whether serving or the hub has ended by itself.
    pub(super) fn has_failed(&self) -> bool {
        let hub_ended = self.hub.as_ref().is_some_and(|hub| hub.task.is_finished());
        self.sockets.iter().any(|socket| socket.task.is_finished()) || hub_ended
    }

    /// Ends the hub, where it did not go on to another site; what it does just now is finished first.
    pub(super) fn end_hub(&mut self) -> Option<JoinHandle<()>> {
        let RunningHub { ends, task, .. } = self.hub.take()?;
        ends.cancel();
        Some(task)
    }

    /// Ends, once the answers in flight are finished. What went on to another site is none of it any more.
    pub(super) async fn stop(mut self) -> Result<(), AppError> {
        self.closing.cancel();
        // The system refuses newcomers once nothing has the socket any more.
        let end = |Socket { shutdown, task, .. }: Socket| {
            shutdown.cancel();
            task
        };
        let serving: Vec<_> = self.sockets.drain(..).map(end).collect();
        let hub = self.end_hub();
        let mut served = Ok(());
        for task in serving {
            let ended = task.await.context("serving ended badly");
            served = served.and(ended.and_then(|ended| ended.context("serving failed")));
        }
        match hub {
            Some(task) => task.await.context("the hub ended badly").and(served),
            None => served,
        }
    }
}
