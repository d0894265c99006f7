//! `[server]`: where the gateway listens and who administers it.

use super::declare::*;
use super::units::size;
use super::web::public_address;
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use tidegate_core::model::{SecretSource, SecretText};

/// The most addresses and networks of trusted proxies.
const PROXIES_LIMIT: usize = 1000;
/// Trusted proxies, in words.
const PROXIES: &str = "a list of addresses and networks, like \"127.0.0.1\" or \"10.0.0.0/8\"";

/// The longest administration token, in bytes.
const TOKEN_LIMIT: usize = 512;

/// The shortest, in bytes: a shorter one can be guessed.
const TOKEN_LEAST: usize = 16;
/// How many connections there may be.
const CONNECTIONS: RangeInclusive<u32> = 16..=1_000_000;

/// The least memory for answers.
const MEMORY: u64 = 32 << 20;

section! {
    /// Where the gateway listens and who administers it.
    pub struct ServerSection with KEYS {
        /// The address to listen on. Port 0 lets the system choose.
        listen = parsed("an IP address and a port", listen_address), Preset("\"127.0.0.1:8080\"");
        /// The address that readers use.
        ///
        /// Write it where it differs from http://LISTEN: behind a reverse proxy, say. It goes into
        /// every feed, and some readers know entries by it: choose it once.
        public_url: Option<String> = parsed("a web address", public_address).optional(),
            Words("`http://LISTEN`", "\"https://feeds.example.org\"");
        /// An address of its own for administration.
        ///
        /// Where it is set, the API, sessions, forms, /add and /metrics answer there alone, and the
        /// listener for readers answers 404 to them. Pages for reading are at both. Let no proxy lead
        /// there from outside.
        admin_listen: Option<SocketAddr> = parsed("an IP address and a port", listen_address).optional(),
            Words("none: one listener for both", "\"127.0.0.1:8081\"");
        /// Who may look at pages: `"public"` (everybody), `"operators"` (who is signed in).
        ///
        /// Meant are the overview, /recent, and the pages about feeds, items and conflicts. Feeds
        /// themselves, lists and streams are for everybody, but for private ones.
        pages: PageAudience = one_of(&[
            ("public", PageAudience::Public),
            ("operators", PageAudience::Operators),
        ]), Preset("\"public\"");
        /// Search engines may list the gateway's own pages, which copy publishers' texts with all their versions.
        ///
        /// Where they may not, pages say so in X-Robots-Tag, and /robots.txt keeps them out. Feeds can be read either way,
        /// and what is below an origin keeps the rules of its site.
        indexed: bool = flag(), Preset("false");
        /// A feed that is not there is answered with 401 and asks for a password.
        ///
        /// This is for readers that send the token of a private feed as a password only when they are
        /// asked for it. All names that are unknown or private are answered so where any
        /// reader is configured, and otherwise with 404.
        challenge: bool = flag(), Preset("false");
        /// How many connections are served at once.
        ///
        /// One client has an eighth of them, a /48 of IPv6 a quarter. They are half of the files that the process may
        /// have open at most.
        connections: u32 = number(CONNECTIONS), Preset("1024");
        /// How much memory answers take: those that are kept, are made, and are on their way, each so much.
        ///
        /// One client, and one feed, has half of what large answers are made with, and one client a quarter of
        /// what is on its way. What is small is made with half as much beside what is large.
        memory: u64 = parsed("a size of 32MiB or more", memory), Preset("\"128MiB\"");
        /// Addresses and networks of the proxies in front.
        ///
        /// Each client has a share of connections and of work. From a trusted proxy the client is the
        /// last address of Forwarded (RFC 7239) or X-Forwarded-For that is no trusted proxy. If the two
        /// name two clients neither is believed, so let your proxy set one and remove the other.
        /// Behind a proxy that is not named here all clients are one, and share what is one client's.
        trusted_proxies: Vec<IpNet> =
            list(PROXIES_LIMIT, PROXIES, trusted_proxy), Preset("[]");
        /// The token for the API, or the file with it; one of the two.
        ///
        /// The variable of the token is TIDEGATE_ADMIN_TOKEN. Where none is set, the first start writes a
        /// random one to the data folder, admin-token, and says so.
        admin_token: Option<SecretSource> = parsed("16 to 512 visible ASCII characters", written_token).optional(),
            Words("a random one in the data folder", "\"a-long-random-text\"");
        admin_token_file => admin_token = path("the file that holds the token").map(SecretSource::File).optional(),
            Words("", "\"/run/secrets/tidegate\"");
        /// The certificate for TLS, with those that lead to its root behind it, and its key; both in PEM.
        ///
        /// With them the gateway answers HTTPS alone, TLS 1.2 and 1.3. The files are read again at SIGHUP,
        /// and when they change.
        tls_cert_file: Option<PathBuf> = path("the file").optional(),
            Words("none, plain HTTP", "\"/etc/tidegate/fullchain.pem\"");
        tls_key_file: Option<PathBuf> = path("the file").optional(),
            Words("", "\"/etc/tidegate/privkey.pem\"");
    }
    fields {
        /// The address to listen on.
        listen: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080));
    }
}

/// Who may look at pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageAudience {
    #[default]
    Public,
    /// Who is signed in.
    Operators,
}

/// Checks the administration token: 16 to 512 visible ASCII characters, as `Authorization: Bearer` takes them. What is
/// said of a wrong one does not repeat it.
pub fn check_admin_token(text: &str) -> Result<(), String> {
    let length = text.len();
    if !(TOKEN_LEAST..=TOKEN_LIMIT).contains(&length) {
        return Err(format!(
            "a token is {TOKEN_LEAST} to {TOKEN_LIMIT} characters long, so that nobody guesses it; this has \
             {length}; \"tidegate reader token\" makes one"
        ));
    }
    if !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err("a token is made of visible ASCII characters, without spaces".to_owned());
    }
    Ok(())
}

fn written_token(text: &str) -> Result<SecretSource, String> {
    check_admin_token(text)?;
    let text = SecretText::new(text).map_err(|error| error.to_string())?;
    Ok(SecretSource::Literal(text))
}

/// How much memory answers take.
fn memory(text: &str) -> Result<u64, String> {
    let memory = size(text)?;
    let least = || format!("{text:?} is too little; write \"32MiB\" or more");
    Some(memory).filter(|memory| *memory >= MEMORY).ok_or_else(least)
}

/// An address to listen on.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!(
            "{text:?} is not an address to listen on; write an IP address and a port, like \
             \"127.0.0.1:8080\" or \"[::]:8080\""
        )
    })
}

impl ServerSection {
    /// The files with the certificate for TLS and its key, where there are such.
    pub fn tls(&self) -> Option<(&Path, &Path)> {
        Some((self.tls_cert_file.as_deref()?, self.tls_key_file.as_deref()?))
    }

    /// Whether the listener for readers speaks TLS, with a certificate in files.
    pub fn speaks_tls(&self) -> bool {
        self.tls().is_some()
    }

    /// Where the gateway is reached at an address of its own: `http://127.0.0.1:8080`.
    pub fn origin(&self, address: SocketAddr) -> String {
        let scheme = if self.speaks_tls() { "https" } else { "http" };
        format!("{scheme}://{address}")
    }
}

fn trusted_proxy(text: &str) -> Result<IpNet, String> {
    let address = text.parse::<IpAddr>().map(IpNet::from).ok();
    match address.or_else(|| text.parse().ok()) {
        // Everybody could then say to be anybody.
        Some(network) if network.prefix_len() == 0 => {
            Err(format!("{text:?} trusts everybody; write {PROXIES}"))
        }
        Some(network) => Ok(network),
        None => Err(format!("{text:?} is unknown; write {PROXIES}")),
    }
}

/// Checks what is written against each other.
pub(super) fn check(section: &mut Section<'_, '_, '_>, server: &mut ServerSection) {
    if section.has_both("admin_token", "admin_token_file") {
        section.fault("admin_token_file", "stands beside admin_token; write one of the two");
    }
    for (key, other) in [("tls_cert_file", "tls_key_file"), ("tls_key_file", "tls_cert_file")] {
        if section.has(key) && !section.has(other) {
            section.fault(key, format!("stands alone; write {other} too"));
        }
    }
    if let Some((certificate, key)) = server.tls() {
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        section.refer("tls_cert_file", External::KeyPair { certificate, key });
    }
    if let Some(source @ SecretSource::File(_)) = &server.admin_token {
        section.refer("admin_token_file", External::AdminToken(source.clone()));
    }
    // Port 0 is another one each time.
    if server.admin_listen.is_some_and(|own| own == server.listen && own.port() != 0) {
        let message = "is that of listen; administration needs one of its own here, or none";
        section.fault("admin_listen", message);
    }
}
