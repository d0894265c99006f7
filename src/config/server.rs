//! `[server]`: where the gateway listens and who administers it.

use super::section::Section;
use super::web::public_address;
use ipnet::IpNet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

pub(super) const KEYS: &[&str] =
    &["listen", "public_url", "trusted_proxies", "admin_token", "admin_token_file"];

/// The most addresses and networks of trusted proxies.
const PROXIES_LIMIT: usize = 1000;

/// The longest administration token, in bytes.
const TOKEN_LIMIT: usize = 512;

/// A token shorter than this many bytes is taken with a warning.
const TOKEN_SHORT: usize = 16;

/// Where the gateway listens and who administers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSection {
    /// The address to listen on; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The address under which the gateway is reached, without a slash at its end; `None` stands
    /// for `http://LISTEN`.
    pub public_url: Option<String>,
    /// Whose word is taken for who the client is: addresses and networks.
    pub trusted_proxies: Vec<IpNet>,
    /// The administration token, or where it is.
    pub admin_token: AdminTokenSetting,
}

impl Default for ServerSection {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            public_url: None,
            trusted_proxies: Vec::new(),
            admin_token: AdminTokenSetting::Unset,
        }
    }
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
    /// Checks a token: 1 to 512 visible ASCII characters, as `Authorization: Bearer` takes them.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.len() > TOKEN_LIMIT {
            return Err(format!(
                "a token is 1 to {TOKEN_LIMIT} bytes long, this has {}",
                text.len()
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

pub(super) fn read(section: &mut Section<'_, '_, '_>) -> ServerSection {
    let default = ServerSection::default();
    let listen = section.text("listen", |text| {
        text.parse().map_err(|_| {
            format!(
                "{text:?} is not an address to listen on; write an IP address and a port, like \
                 \"127.0.0.1:8080\" or \"[::]:8080\""
            )
        })
    });
    let public_url = section.text("public_url", public_address);
    let trusted_proxies = trusted_proxies(section);
    let token = section.text("admin_token", SecretToken::new);
    let file = section.text("admin_token_file", |text| match text {
        "" => Err("is empty; name the file that holds the token"),
        _ => Ok(PathBuf::from(text)),
    });
    if section.has("admin_token") && section.has("admin_token_file") {
        section.fault(
            "admin_token_file",
            "stands beside admin_token; write one of the two".to_owned(),
        );
    }
    if token.as_ref().is_some_and(|token| token.reveal().len() < TOKEN_SHORT) {
        let message = format!("is shorter than {TOKEN_SHORT} characters and may be guessed");
        section.warn("admin_token", message);
    }
    let here = token.map(AdminTokenSetting::Here);
    let admin_token = here.or(file.map(AdminTokenSetting::File)).unwrap_or_default();
    ServerSection {
        listen: listen.unwrap_or(default.listen),
        public_url,
        trusted_proxies,
        admin_token,
    }
}

fn trusted_proxies(section: &mut Section<'_, '_, '_>) -> Vec<IpNet> {
    const KEY: &str = "trusted_proxies";
    const WANTED: &str = "a list of addresses and networks, like \"127.0.0.1\" or \"10.0.0.0/8\"";
    let mut proxies: Vec<IpNet> = Vec::new();
    for (span, text) in section.list(KEY, PROXIES_LIMIT, WANTED).unwrap_or_default() {
        let address = text.parse::<IpAddr>().map(IpNet::from).ok();
        match address.or_else(|| text.parse().ok()) {
            // Everybody could then say to be anybody.
            Some(network) if network.prefix_len() == 0 => {
                section.fault_at(&span, KEY, format!("{text:?} trusts everybody; write {WANTED}"));
            }
            Some(network) if proxies.contains(&network) => {
                section.fault_at(&span, KEY, format!("{text:?} stands here twice"));
            }
            Some(network) => proxies.push(network),
            None => section.fault_at(&span, KEY, format!("{text:?} is unknown; write {WANTED}")),
        }
    }
    proxies
}
