//! What a feed's publisher is asked with beside the feed's address: headers, credentials, and the way
//! there. A secret is a literal, or the name of a file or of a variable that has it; no message and
//! no JSON shows one.

use super::{MASK, ValueError, counted};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// How a feed is asked for, where that is not as every other.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct FeedAccess {
    /// Further headers by name, at most [`FeedAccess::HEADERS_LIMIT`].
    pub headers: Vec<(String, SecretSource)>,
    /// The value of `Cookie`.
    pub cookie: Option<SecretSource>,
    /// What stands in `User-Agent` instead of the gateway's own.
    pub user_agent: Option<String>,
    /// What stands in `Authorization`.
    pub login: Option<Login>,
    /// The way there, where it is not the gateway's.
    pub route: Option<ProxyRoute>,
}

/// Credentials of HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Login {
    /// RFC 7617.
    Basic(UserPassword),
    /// RFC 6750.
    Bearer(SecretSource),
}

/// A user and a password. Some services take a key as the user, so that both are secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UserPassword {
    pub user: SecretSource,
    pub password: SecretSource,
}

/// The way to a publisher.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ProxyRoute {
    /// Without a proxy, whatever holds for others.
    Direct,
    /// By this one.
    Proxy(ProxyAddress),
}

/// An outbound proxy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProxyAddress {
    /// `http`, `https`, `socks5` or `socks5h`, with host and port, without credentials.
    pub url: String,
    /// What it wants to know.
    pub login: Option<Box<UserPassword>>,
}

/// Where a secret is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SecretSource {
    /// Here.
    Literal(SecretText),
    /// In this file, which is read whenever the feed is polled.
    File(String),
    /// In this variable of the environment.
    Env(String),
    /// There is one, which is not told here: in an export, and in what the API shows.
    LeftOut,
}

/// A secret that neither `Debug` nor JSON repeats. The store's own encoding has it as it is.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SecretText(String);

impl SecretText {
    /// The longest secret, in bytes.
    pub const LIMIT: usize = 8 * 1024;

    /// Checks a secret: no control characters, at most [`Self::LIMIT`] bytes. Why it is none does not
    /// repeat it.
    pub fn new(text: &str) -> Result<Self, ValueError> {
        let (length, limit) = (text.len(), Self::LIMIT);
        if length > limit {
            return Err(ValueError(format!("is {length} bytes long, the limit is {limit}")));
        }
        if text.chars().any(char::is_control) {
            let why = "has a line break or a control character, which no header can have";
            return Err(ValueError(why.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }

    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for SecretText {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() { MASK.serialize(to) } else { self.0.serialize(to) }
    }
}

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

impl SecretSource {
    /// The word for where it is.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Literal(_) => "literal",
            Self::File(_) => "file",
            Self::Env(_) => "env",
            Self::LeftOut => "left out",
        }
    }
}

impl FeedAccess {
    /// The most headers.
    pub const HEADERS_LIMIT: usize = 32;
    /// The most bytes that names and literals take in all: a record of the store is small.
    pub const BYTES_LIMIT: usize = 24 * 1024;

    /// This, or nothing where it says nothing.
    pub fn or_none(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }

    /// Every secret, by its name: the key of the configuration, and what of it.
    pub fn secrets(&self) -> Vec<(String, &SecretSource)> {
        let mut all: Vec<_> =
            self.headers.iter().map(|(name, value)| (format!("headers.{name}"), value)).collect();
        all.extend(self.cookie.iter().map(|cookie| ("cookie".to_owned(), cookie)));
        match &self.login {
            Some(Login::Basic(login)) => all.extend(login.secrets("basic")),
            Some(Login::Bearer(token)) => all.push(("bearer".to_owned(), token)),
            None => {}
        }
        if let Some(ProxyRoute::Proxy(proxy)) = &self.route {
            all.extend(proxy.secrets());
        }
        all
    }

    fn secrets_mut(&mut self) -> Vec<&mut SecretSource> {
        let mut all: Vec<_> = self.headers.iter_mut().map(|(_, value)| value).collect();
        all.extend(self.cookie.iter_mut());
        match &mut self.login {
            Some(Login::Basic(login)) => all.extend([&mut login.user, &mut login.password]),
            Some(Login::Bearer(token)) => all.push(token),
            None => {}
        }
        if let Some(ProxyRoute::Proxy(ProxyAddress { login: Some(login), .. })) = &mut self.route {
            all.extend([&mut login.user, &mut login.password]);
        }
        all
    }

    /// Whether a publisher may tell by it who asks.
    pub fn has_credentials(&self) -> bool {
        !self.headers.is_empty() || self.cookie.is_some() || self.login.is_some()
    }

    /// What it has, in words that show nothing of it.
    pub fn describe(&self) -> String {
        let headers = self.headers.len();
        let headers = (headers > 0).then(|| format!("{} of its own", counted(headers, "header")));
        let login = self.login.as_ref().map(|login| match login {
            Login::Basic(_) => "a user and a password".to_owned(),
            Login::Bearer(_) => "a bearer token".to_owned(),
        });
        let route = self.route.as_ref().map(|route| match route {
            ProxyRoute::Direct => "without a proxy".to_owned(),
            ProxyRoute::Proxy(_) => "by a proxy of its own".to_owned(),
        });
        let cookie = self.cookie.as_ref().map(|_| "a cookie".to_owned());
        let name = self.user_agent.as_ref().map(|_| "a User-Agent of its own".to_owned());
        [headers, cookie, login, name, route].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Bytes of names and literals in all.
    pub fn bytes(&self) -> usize {
        let bytes = |(name, source): (String, &SecretSource)| {
            let value = match source {
                SecretSource::Literal(text) => text.reveal().len(),
                SecretSource::File(text) | SecretSource::Env(text) => text.len(),
                SecretSource::LeftOut => 0,
            };
            name.len().saturating_add(value)
        };
        self.secrets().into_iter().map(bytes).sum()
    }

    /// Leaves out every literal; whether there was one.
    pub fn leave_out_literals(&mut self) -> bool {
        let mut found = false;
        for secret in self.secrets_mut() {
            if matches!(secret, SecretSource::Literal(_)) {
                *secret = SecretSource::LeftOut;
                found = true;
            }
        }
        found
    }

    /// Whether a secret is not told here.
    pub fn lacks_secrets(&self) -> bool {
        self.secrets().iter().any(|(_, source)| **source == SecretSource::LeftOut)
    }

    /// Takes what is left out from `before`, each by its name; the name of one that it does not have.
    pub fn fill_in(&mut self, before: Option<&Self>) -> Result<(), String> {
        let names: Vec<String> = self.secrets().into_iter().map(|(name, _)| name).collect();
        let known = before.map(Self::secrets).unwrap_or_default();
        for (name, secret) in names.into_iter().zip(self.secrets_mut()) {
            if *secret != SecretSource::LeftOut {
                continue;
            }
            match known.iter().find(|(known, _)| *known == name) {
                Some((_, found)) => *secret = SecretSource::clone(found),
                None => return Err(name),
            }
        }
        Ok(())
    }
}

impl UserPassword {
    /// Whether neither is told here.
    pub fn is_left_out(&self) -> bool {
        [&self.user, &self.password].into_iter().all(|secret| *secret == SecretSource::LeftOut)
    }

    fn secrets(&self, key: &str) -> [(String, &SecretSource); 2] {
        [(format!("{key}.user"), &self.user), (format!("{key}.password"), &self.password)]
    }
}

impl ProxyAddress {
    /// Its secrets, by their names.
    pub fn secrets(&self) -> Vec<(String, &SecretSource)> {
        self.login.iter().flat_map(|login| login.secrets("proxy")).collect()
    }
}

#[cfg(test)]
mod tests;
