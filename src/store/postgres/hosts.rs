//! Which of a database's hosts is connected to. A host that takes a connection and then says nothing, as a machine that
//! hangs, must not keep the others from being tried.

use super::connect::CONNECT_TIME;
use crate::in_words;
use deadpool_postgres::Connect;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The port of PostgreSQL where an address names none.
const DEFAULT_PORT: u16 = 5432;

/// A connection that is being made.
type Connecting<'a> =
    Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + 'a>>;

/// Connects to the hosts of an address in turn, beginning with the one that was connected to last.
pub(super) struct EachHost {
    tls: MakeRustlsConnect,
    hosts: Vec<Config>,
    /// The host to begin with.
    first: AtomicUsize,
}

impl EachHost {
    /// For the hosts of an address.
    pub(super) fn new(address: &Config, tls: MakeRustlsConnect) -> Self {
        Self { tls, hosts: each_host(address), first: AtomicUsize::default() }
    }
}

impl Connect for EachHost {
    fn connect(&self, _address: &Config) -> Connecting<'_> {
        Box::pin(async move {
            let begin = self.first.load(Ordering::Relaxed);
            let mut refused = None;
            for step in 0..self.hosts.len() {
                let place = (begin + step) % self.hosts.len();
                let Some(host) = self.hosts.get(place) else { continue };
                // Where nobody waits any more for this one, the next attempt begins with another.
                self.first.store(place + 1, Ordering::Relaxed);
                match timeout(CONNECT_TIME, host.connect(self.tls.clone())).await {
                    Ok(Ok((client, connection))) => {
                        self.first.store(place, Ordering::Relaxed);
                        let task = tokio::spawn(async move {
                            if let Err(error) = connection.await {
                                let error = in_words(&error);
                                tracing::debug!(error, "a connection to the database ended");
                            }
                        });
                        return Ok((client, task));
                    }
                    Ok(Err(error)) => {
                        let (host, error_in_words) = (shown_hosts(host), in_words(&error));
                        tracing::debug!(
                            host,
                            error = error_in_words,
                            "a host of the database was not connected to"
                        );
                        refused = Some(error);
                    }
                    Err(_) => {}
                }
            }
            match refused {
                Some(error) => Err(error),
                // The pool says that it took too long.
                None => std::future::pending().await,
            }
        })
    }
}

/// The hosts of an address with their ports, as messages show them.
pub(super) fn shown_hosts(address: &Config) -> String {
    let shown = |(place, host): (usize, &Host)| {
        let port = port_of(address, place).unwrap_or(DEFAULT_PORT);
        match host {
            Host::Tcp(name) if name.contains(':') => format!("[{name}]:{port}"),
            Host::Tcp(name) => format!("{name}:{port}"),
            #[cfg(unix)]
            Host::Unix(path) => format!("{}:{port}", path.display()),
        }
    };
    let shown: Vec<String> = address.get_hosts().iter().enumerate().map(shown).collect();
    shown.join(", ")
}

/// The port of a host by its place in an address, where the address names ports.
fn port_of(address: &Config, place: usize) -> Option<u16> {
    let ports = address.get_ports();
    ports.get(place).or(ports.first()).copied()
}

/// The same address for each of its hosts alone.
fn each_host(address: &Config) -> Vec<Config> {
    let hosts = address.get_hosts();
    if hosts.len() < 2 || !address.get_hostaddrs().is_empty() {
        return vec![address.clone()];
    }
    let alone = |(place, host): (usize, &Host)| {
        let mut one = Config::new();
        match host {
            Host::Tcp(name) => one.host(name),
            #[cfg(unix)]
            Host::Unix(path) => one.host_path(path),
        };
        if let Some(port) = port_of(address, place) {
            one.port(port);
        }
        copy_settings(address, &mut one);
        one
    };
    hosts.iter().enumerate().map(alone).collect()
}

/// Copies all that an address says but for its hosts.
fn copy_settings(from: &Config, to: &mut Config) {
    if let Some(user) = from.get_user() {
        to.user(user);
    }
    if let Some(password) = from.get_password() {
        to.password(password);
    }
    if let Some(name) = from.get_dbname() {
        to.dbname(name);
    }
    if let Some(options) = from.get_options() {
        to.options(options);
    }
    if let Some(name) = from.get_application_name() {
        to.application_name(name);
    }
    if let Some(time) = from.get_connect_timeout() {
        to.connect_timeout(*time);
    }
    if let Some(time) = from.get_tcp_user_timeout() {
        to.tcp_user_timeout(*time);
    }
    to.ssl_mode(from.get_ssl_mode())
        .ssl_negotiation(from.get_ssl_negotiation())
        .keepalives(from.get_keepalives())
        .keepalives_idle(from.get_keepalives_idle())
        .target_session_attrs(from.get_target_session_attrs())
        .channel_binding(from.get_channel_binding());
    if let Some(time) = from.get_keepalives_interval() {
        to.keepalives_interval(time);
    }
    if let Some(count) = from.get_keepalives_retries() {
        to.keepalives_retries(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::str::FromStr;

    #[test]
    fn each_host_has_all_that_the_address_says() {
        let rest = "dbname=feeds user=gate password=secret options='-c a=b' application_name=x connect_timeout=7 \
            tcp_user_timeout=3 sslmode=require target_session_attrs=read-write channel_binding=require \
            keepalives=1 keepalives_idle=9 keepalives_interval=8 keepalives_retries=4";
        let address = format!("host=one,two port=1,2 {rest}");
        let hosts = each_host(&Config::from_str(&address).unwrap());
        let expected = ["host=one port=1", "host=two port=2"]
            .map(|host| Config::from_str(&format!("{host} {rest}")).unwrap());
        assert_eq!(hosts, expected);
        let both = each_host(&Config::from_str("host=one,two port=7 user=a").unwrap());
        assert_eq!(both[1], Config::from_str("host=two port=7 user=a").unwrap());
        let one = Config::from_str("host=one user=a").unwrap();
        assert_eq!(each_host(&one), [one]);
    }

    #[test]
    fn hosts_are_shown_with_their_ports() {
        for (address, shown) in [
            ("host=a,b port=1,2", "a:1, b:2"),
            ("host=a,b port=7", "a:7, b:7"),
            ("host=a,b", "a:5432, b:5432"),
            ("host=127.0.0.1,::1 port=6,6", "127.0.0.1:6, [::1]:6"),
            ("host=/run/postgresql port=5433", "/run/postgresql:5433"),
            ("postgresql://a,b:5433/feeds", "a:5432, b:5433"),
        ] {
            assert_eq!(shown_hosts(&Config::from_str(address).unwrap()), shown, "{address}");
        }
    }
}
