//! `[server]`: where the gateway listens and who administers it.

use super::External;
use super::keys::{
    Preset::{Value as Preset, Words},
    section,
};
use super::kinds::{Flag, Hidden, List, Mapped, Maybe, Number, OneOf, Parsed};
use super::section::Section;
use super::store::StoreKind;
use super::web::{bare_address, public_address};
use ipnet::IpNet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use url::{Host, Url};

/// The most addresses and networks of trusted proxies.
const PROXIES_LIMIT: usize = 1000;
/// Trusted proxies, in words.
const PROXIES: &str = "a list of addresses and networks, like \"127.0.0.1\" or \"10.0.0.0/8\"";

/// The most names of a certificate: as many as Let's Encrypt takes.
const ACME_NAMES_LIMIT: usize = 100;
/// Names of a certificate, in words.
const ACME_NAMES: &str = "a list of the gateway's names, like \"feeds.example.org\"";
/// The longest address of mail, in bytes (RFC 5321 section 4.5.3.1.3).
const CONTACT_LIMIT: usize = 254;

/// The longest administration token, in bytes.
const TOKEN_LIMIT: usize = 512;

/// The shortest, in bytes: a shorter one can be guessed.
const TOKEN_LEAST: usize = 16;
/// How many connections there may be.
const CONNECTIONS: RangeInclusive<u32> = 16..=1_000_000;

section! {
    /// Where the gateway listens and who administers it.
    pub struct ServerSection {
        /// The address to listen on. Port 0 lets the system choose.
        listen: SocketAddr = Parsed("an IP address and a port", listen), Preset("\"127.0.0.1:8080\""),
            blank SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)), at restart;
        /// The address that readers use.
        ///
        /// Write it where it differs from http://LISTEN: behind a reverse proxy, say. It goes into
        /// every feed, and some readers know entries by it: choose it once.
        public_url: Option<String> = Maybe(Parsed("a web address", public_address)),
            Words("`http://LISTEN`", "\"https://feeds.example.org\""), at restart;
        /// An address of its own for administration.
        ///
        /// Where it is set, the API, sessions, forms, /add and /metrics answer there alone, and the
        /// listener for readers answers 404 to them. Pages for reading are at both. Let no proxy lead
        /// there from outside.
        admin_listen: Option<SocketAddr> = Maybe(Parsed("an IP address and a port", listen)),
            Words("none: one listener for both", "\"127.0.0.1:8081\""), at restart;
        /// Who may look at pages: `"public"` (everybody), `"operators"` (who is signed in).
        ///
        /// Meant are the overview, /recent, and the pages about feeds, items and conflicts. Feeds
        /// themselves, lists and streams are for everybody, but for private ones.
        pages: PageAudience = OneOf(&[
            ("public", PageAudience::Public),
            ("operators", PageAudience::Operators),
        ]), Preset("\"public\""), at restart;
        /// A feed that is not there is answered with 401 and asks for a password.
        ///
        /// This is for readers that send the token of a private feed as a password only when they are
        /// asked for it. All names that are unknown or private are answered so where any
        /// reader is configured, and otherwise with 404.
        challenge: bool = Flag, Preset("false"), at restart;
        /// How many connections are served at once.
        ///
        /// One client has an eighth of them, a /48 of IPv6 a quarter. They are half of the files that the process may
        /// have open at most.
        connections: u32 = Number(CONNECTIONS), Preset("1024"), at restart;
        /// Addresses and networks of the proxies in front.
        ///
        /// Each client has a share of connections and of work. From a trusted proxy the client is the
        /// last address of Forwarded (RFC 7239) or X-Forwarded-For that is no trusted proxy. If the two
        /// name two clients neither is believed, so let your proxy set one and remove the other.
        /// Behind a proxy that is not named here all clients are one, and share what is one client's.
        trusted_proxies: Vec<IpNet> =
            List { limit: PROXIES_LIMIT, wanted: PROXIES, read: trusted_proxy }, Preset("[]");
        /// The token for the API, or the file with it; one of the two.
        ///
        /// The environment variable TIDEGATE_ADMIN_TOKEN does as well. Where none is set, the first
        /// start writes a random one to the data folder, admin-token, and says so.
        admin_token: AdminTokenSetting = Hidden(Mapped(
            Parsed("16 to 512 visible ASCII characters", SecretToken::new),
            AdminTokenSetting::Here,
        )), Words("a random one in the data folder", "\"a-long-random-text\"");
    }
    keys {
        admin_token_file => admin_token: Mapped(Parsed("a path", token_file), AdminTokenSetting::File),
            Words("", "\"/run/secrets/tidegate\"");
        /// The certificate for TLS, with those that lead to its root behind it, and its key; both in PEM.
        ///
        /// With them the gateway answers HTTPS alone, TLS 1.2 and 1.3. The files are read again at SIGHUP,
        /// and when they change. Other names of files need a restart.
        tls_cert_file => tls_cert_file: Maybe(Parsed("a path", tls_file)),
            Words("none, plain HTTP", "\"/etc/tidegate/fullchain.pem\""), at restart;
        tls_key_file => tls_key_file: Maybe(Parsed("a path", tls_file)),
            Words("", "\"/etc/tidegate/privkey.pem\""), at restart;
        /// The names of a certificate for TLS that the gateway gets and renews by itself, by ACME.
        ///
        /// With them the gateway answers HTTPS alone. The authority connects to port 443 of each name to prove
        /// it (tls-alpn-01), which must lead to this gateway, past whatever else speaks TLS.
        acme_names => acme_names: List { limit: ACME_NAMES_LIMIT, wanted: ACME_NAMES, read: acme_name },
            Preset("[]"), at restart;
        /// Whether you agree to the terms of service of the authority. There is no certificate without that.
        acme_agreed => acme_agreed: Flag, Preset("false"), at restart;
        /// An address of mail that the authority may write to, given when the account is made.
        acme_contact => acme_contact: Maybe(Parsed("an address of mail", contact)),
            Words("none", "\"admin@example.org\""), at restart;
        /// The authority's directory; Let's Encrypt's for trials is at acme-staging-v02.
        ///
        /// Its host may be private, and is reached without polling.proxy; polling.ca_file is believed as it was at
        /// the start.
        acme_directory => acme_directory: Maybe(Parsed("a web address", acme_directory)),
            Preset("\"https://acme-v02.api.letsencrypt.org/directory\""), at restart;
    }
    fields {
        /// The certificate for TLS.
        tls_cert_file: Option<PathBuf> = None;
        /// Its key.
        tls_key_file: Option<PathBuf> = None;
        /// The names of a certificate that is asked for by ACME.
        acme_names: Vec<String> = Vec::new();
        /// Whether the operator agrees to the authority's terms.
        acme_agreed: bool = false;
        /// Where the authority may write to.
        acme_contact: Option<String> = None;
        /// The authority's directory; `None` only before the default is read.
        acme_directory: Option<Url> = None;
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

/// The administration token, or where it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AdminTokenSetting {
    /// Not configured: the environment has it, or a random one is made at the first start.
    #[default]
    Unset,
    /// Written in the file.
    Here(SecretToken),
    /// In a file of its own, as its only line.
    File(PathBuf),
}

/// A secret that no message repeats.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretToken(String);

impl SecretToken {
    /// Checks a token: 16 to 512 visible ASCII characters, as `Authorization: Bearer` takes them.
    pub fn new(text: &str) -> Result<Self, String> {
        let length = text.len();
        if !(TOKEN_LEAST..=TOKEN_LIMIT).contains(&length) {
            return Err(format!(
                "a token is {TOKEN_LEAST} to {TOKEN_LIMIT} characters long, so that nobody guesses it; this has \
                 {length}; \"openssl rand -hex 32\" makes one"
            ));
        }
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err("a token is made of visible ASCII characters, without spaces".to_owned());
        }
        Ok(Self(text.to_owned()))
    }

    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

fn listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!(
            "{text:?} is not an address to listen on; write an IP address and a port, like \
             \"127.0.0.1:8080\" or \"[::]:8080\""
        )
    })
}

fn token_file(text: &str) -> Result<PathBuf, &'static str> {
    match text {
        "" => Err("is empty; name the file that holds the token"),
        _ => Ok(PathBuf::from(text)),
    }
}

fn tls_file(text: &str) -> Result<PathBuf, &'static str> {
    match text {
        "" => Err("is empty; name the file"),
        _ => Ok(PathBuf::from(text)),
    }
}

/// A name that an authority certifies by a connection to it: no wildcard and no address (RFC 8737 section 3).
fn acme_name(text: &str) -> Result<String, String> {
    match Host::parse(text) {
        Ok(Host::Domain(name)) if name.contains('.') && !name.contains(['*', '_']) => {
            Ok(name.trim_end_matches('.').to_owned())
        }
        _ => Err(format!("{text:?} is no name of a host on the internet; write {ACME_NAMES}")),
    }
}

fn acme_directory(text: &str) -> Result<Url, String> {
    let url = bare_address(text).map_err(|error| error.to_string())?;
    match url.scheme() {
        "https" => Ok(url),
        _ => Err("an authority is asked by https alone".to_owned()),
    }
}

fn contact(text: &str) -> Result<String, String> {
    let is_one = text.len() <= CONTACT_LIMIT
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !b",?<>\"".contains(&byte))
        && text.split_once('@').is_some_and(|(who, host)| !who.is_empty() && host.contains('.'));
    let wrong = || format!("{text:?} is no address of mail; write one like \"admin@example.org\"");
    is_one.then(|| text.to_owned()).ok_or_else(wrong)
}

impl ServerSection {
    /// The files with the certificate for TLS and its key, where there are such.
    pub fn tls(&self) -> Option<(&Path, &Path)> {
        Some((self.tls_cert_file.as_deref()?, self.tls_key_file.as_deref()?))
    }

    /// Whether the listener for readers speaks TLS, with a certificate in files or one by ACME.
    pub fn speaks_tls(&self) -> bool {
        self.tls().is_some() || !self.acme_names.is_empty()
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
        let message = "stands beside admin_token; write one of the two";
        section.fault("admin_token_file", message.to_owned());
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
    check_acme(section, server);
    if let AdminTokenSetting::File(path) = &server.admin_token {
        section.refer("admin_token_file", External::AdminToken(path.clone()));
    }
    // Port 0 is another one each time.
    if server.admin_listen.is_some_and(|own| own == server.listen && own.port() != 0) {
        let message = "is that of listen; administration needs one of its own here, or none";
        section.fault("admin_listen", message.to_owned());
    }
}

/// Checks what is said of a certificate by ACME.
fn check_acme(section: &mut Section<'_, '_, '_>, server: &ServerSection) {
    if server.acme_names.is_empty() {
        for (key, is_said) in
            [("acme_agreed", server.acme_agreed), ("acme_contact", server.acme_contact.is_some())]
        {
            if is_said {
                section.warn(key, "has no effect: acme_names is empty".to_owned());
            }
        }
        return;
    }
    if section.has("tls_cert_file") {
        let message = "stands beside tls_cert_file; write one of the two";
        section.fault("acme_names", message.to_owned());
    }
    if !server.acme_agreed {
        let message = "needs acme_agreed = true: the authority certifies nobody who does not agree to its \
                       terms of service";
        section.fault("acme_names", message.to_owned());
    }
    let Some(public) = server.public_url.as_deref().and_then(|url| Url::parse(url).ok()) else {
        let message = "needs public_url: feeds would name the address to listen on, which no certificate is for";
        return section.fault("acme_names", message.to_owned());
    };
    if !server.acme_names.iter().any(|name| Some(name.as_str()) == public.host_str()) {
        let message =
            "does not have the host of public_url, whose readers would refuse the certificate";
        section.warn("acme_names", message.to_owned());
    }
}

/// Checks that the store keeps what ACME hands out: who forgets it asks anew at each start, and is soon refused.
pub(super) fn check_keeping(
    store: &mut Section<'_, '_, '_>,
    server: &ServerSection,
    kind: StoreKind,
) {
    if !server.acme_names.is_empty() && kind == StoreKind::Memory {
        let message = "is \"memory\", which forgets the certificate of server.acme_names";
        store.fault("kind", message.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use crate::check;

    fn said(text: &str) -> String {
        match check("f", &format!("[server]\n{text}")) {
            Ok(checked) => checked.warnings.iter().map(ToString::to_string).collect(),
            Err(faults) => faults.to_string(),
        }
    }

    #[test]
    fn a_certificate_by_acme_needs_names_an_address_and_an_agreement() {
        let whole = "acme_names = [\"feeds.example.org\"]\nacme_agreed = true\n\
                     public_url = \"https://feeds.example.org\"\n";
        assert_eq!(said(whole), "");
        let without = |key: &str| -> String {
            whole
                .lines()
                .filter(|line| !line.starts_with(key))
                .map(|line| format!("{line}\n"))
                .collect()
        };
        for (written, wanted) in [
            (without("acme_agreed"), "needs acme_agreed = true"),
            (without("public_url"), "needs public_url"),
            (without("acme_names"), "has no effect: acme_names is empty"),
            ("acme_contact = \"a@b.example\"".to_owned(), "has no effect: acme_names is empty"),
            (
                format!("{whole}tls_cert_file = \"a\"\ntls_key_file = \"b\""),
                "stands beside tls_cert_file",
            ),
            (
                whole.replace("https://feeds", "https://other"),
                "does not have the host of public_url",
            ),
            (format!("{whole}[store]\nkind = \"memory\""), "forgets the certificate"),
            ("acme_names = [\"*.example.org\"]".to_owned(), "is no name of a host"),
            ("acme_names = [\"192.0.2.1\"]".to_owned(), "is no name of a host"),
            ("acme_names = [\"localhost\"]".to_owned(), "is no name of a host"),
            ("acme_directory = \"http://ca.example/\"".to_owned(), "by https alone"),
            (
                "acme_directory = \"https://u:p@ca.example/\"".to_owned(),
                "the address has credentials",
            ),
            ("acme_directory = \"https://ca.example/?a\"".to_owned(), "the address has a query"),
            ("acme_directory = \"https://ca.example/#a\"".to_owned(), "the address has a fragment"),
            ("acme_contact = \"nobody\"".to_owned(), "is no address of mail"),
        ] {
            let said = said(&written);
            assert!(said.contains(wanted) && !said.contains("u:p"), "{written}: {said}");
        }
    }

    #[test]
    fn with_a_certificate_by_acme_the_gateway_is_reached_by_https() {
        let text = "[server]\nacme_names = [\"Feeds.Example.org.\"]\nacme_agreed = true\n\
                    public_url = \"https://feeds.example.org\"";
        let server = check("f", text).unwrap().config.server;
        assert_eq!(server.acme_names, ["feeds.example.org"]);
        assert_eq!(server.origin(server.listen), "https://127.0.0.1:8080");
    }
}
