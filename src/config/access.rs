//! How a publisher is asked: headers, credentials and proxies. No message repeats a secret.

use super::External;
use super::kinds::{Kind, Mistakes};
use super::section::Section;
use super::value::{ConfigNode, TableEntry, Value};
use std::collections::HashSet;
use tidegate_core::model::{
    FeedAccess, Login, ProxyAddress, SecretSource, SecretText, UserPassword,
};
use url::Url;

/// A secret, in words.
const SECRET: &str = "a text, { file = \"…\" } or { env = \"…\" }";
/// The longest name of a header, of a file and of a variable, in bytes.
const NAME_LIMIT: usize = 128;
const PATH_LIMIT: usize = 4096;
/// Headers that are the client's own affair.
const CLIENTS_OWN: [&str; 22] = [
    "a-im",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "trailers",
    "transfer-encoding",
    "upgrade",
];
/// Headers that have a key of their own.
const WITH_KEY: [(&str, &str); 3] = [
    ("cookie", "cookie"),
    ("proxy-authorization", "user and password in proxy"),
    ("user-agent", "user_agent"),
];
/// The schemes of proxies.
const PROXY_SCHEMES: [&str; 4] = ["http", "https", "socks5", "socks5h"];

/// A text, or the name of what has it.
pub(super) fn secret_value() -> Kind<SecretSource> {
    Kind::new("a secret", |node| secret(node, false))
}

/// Headers by their names.
pub(super) fn headers() -> Kind<Vec<(String, SecretSource)>> {
    let limit = FeedAccess::HEADERS_LIMIT;
    let read = move |node: &ConfigNode<'_>, mistakes: &mut Mistakes| {
        let Value::Table(entries) = &node.value else {
            let wanted = format!("a table of names, each with {SECRET}");
            mistakes.push((node.at, node.refusal(&wanted)));
            return None;
        };
        if entries.len() > limit {
            let message = format!("has {} headers, the limit is {limit}", entries.len());
            mistakes.push((node.at, message));
        }
        let mut seen = HashSet::new();
        let mut all = Vec::new();
        for TableEntry { at, key, node } in entries.iter().take(limit) {
            let named = match header_name(key) {
                Ok(()) if !seen.insert(key.to_ascii_lowercase()) => {
                    Err(format!("{key:?} stands here twice"))
                }
                named => named,
            };
            let of_header = |message| format!("the value of {key} {message}");
            match named.and_then(|()| secret(node, false).map_err(of_header)) {
                Ok(value) => all.push(((*key).to_owned(), value)),
                Err(message) => mistakes.push((*at, message)),
            }
        }
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        Some(all)
    };
    Kind::of_many(format!("at most {limit} secrets by name"), read)
}

/// `{ user = …, password = … }`.
pub(super) fn basic_login() -> Kind<UserPassword> {
    let read = |node: &ConfigNode<'_>| {
        let wanted = format!("{{ user = …, password = … }}, each {SECRET}");
        let [user, password] = node.keys(["user", "password"], &wanted)?;
        user_password(user, password)?
            .ok_or_else(|| "has neither user nor password; write both".to_owned())
    };
    Kind::new("`{ user, password }`, two secrets", read)
}

/// The address of a proxy, alone or with what it wants to know; `None` for `"none"`.
pub(super) fn proxy_address() -> Kind<Option<ProxyAddress>> {
    let allowed = "an address with `http`, `https`, `socks5` or `socks5h`, `{ url, user, password }`, `\"none\"`";
    let read = |node: &ConfigNode<'_>| match node.value {
        Value::Text("" | "none") => Ok(None),
        Value::Text(text) => proxy(text).map(Some),
        _ => proxy_table(node).map(Some),
    };
    Kind::new(allowed, read)
}

/// Reads a secret; `may_be_empty`: a user without a password is one.
pub(super) fn secret(node: &ConfigNode<'_>, may_be_empty: bool) -> Result<SecretSource, String> {
    let entries = match &node.value {
        Value::Text("") if !may_be_empty => return Err("is empty".to_owned()),
        Value::Text(text) => {
            let text = SecretText::new(text).map_err(|error| error.to_string())?;
            return Ok(SecretSource::Literal(text));
        }
        Value::Table(entries) => entries,
        _ => return Err(node.refusal(SECRET)),
    };
    // What the API shows has further words, which say nothing to it.
    let mut told = entries.iter().filter(|entry| entry.key != "from");
    let (Some(entry), None) = (told.next(), told.next()) else {
        return Err(format!("does not name one thing; write {SECRET}"));
    };
    match (entry.key, &entry.node.value) {
        ("file", Value::Text(path)) if (1..=PATH_LIMIT).contains(&path.len()) => {
            Ok(SecretSource::File((*path).to_owned()))
        }
        ("env", Value::Text(name)) if is_variable(name) => {
            Ok(SecretSource::Env((*name).to_owned()))
        }
        ("stored", Value::Boolean(true)) => Ok(SecretSource::LeftOut),
        ("file", _) => Err(format!("does not name a file, in 1 to {PATH_LIMIT} bytes")),
        ("env", _) => Err(format!(
            "does not name a variable of the environment, in 1 to {NAME_LIMIT} letters, digits and _"
        )),
        (key, _) => {
            let key: String = key.chars().take(NAME_LIMIT).collect();
            Err(format!("has the unknown key {key:?}; write {SECRET}"))
        }
    }
}

fn is_variable(name: &str) -> bool {
    (1..=NAME_LIMIT).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn header_name(name: &str) -> Result<(), String> {
    let shown: String = name.chars().take(NAME_LIMIT).collect();
    let lower = name.to_ascii_lowercase();
    // As RFC 9110 section 5.6.2 has it.
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || name.len() > NAME_LIMIT || !name.bytes().all(is_token) {
        return Err(format!(
            "{shown:?} is no name of a header; write 1 to {NAME_LIMIT} letters, digits and -"
        ));
    }
    if let Some((_, key)) = WITH_KEY.iter().find(|(header, _)| *header == lower) {
        return Err(format!("{shown:?} has a key of its own; write {key}"));
    }
    if CLIENTS_OWN.contains(&lower.as_str()) {
        return Err(format!("{shown:?} cannot be set: the gateway sets it itself, or never"));
    }
    Ok(())
}

/// A user and a password that are written in a table; `None` where neither is.
fn user_password(
    user: Option<&ConfigNode<'_>>,
    password: Option<&ConfigNode<'_>>,
) -> Result<Option<UserPassword>, String> {
    let read = |key: &str, node| secret(node, true).map_err(|said| format!("{key} {said}"));
    let (user, password) = match (user, password) {
        (None, None) => return Ok(None),
        (Some(user), Some(password)) => (read("user", user)?, read("password", password)?),
        (None, _) => return Err("has no user; write user and password".to_owned()),
        (_, None) => {
            return Err("has no password; write user and password, which may be \"\"".to_owned());
        }
    };
    if matches!(&user, SecretSource::Literal(user) if user.reveal().contains(':')) {
        return Err("user has a colon, which no user of basic authentication can have".to_owned());
    }
    Ok(Some(UserPassword { user, password }))
}

fn proxy_table(node: &ConfigNode<'_>) -> Result<ProxyAddress, String> {
    let wanted = "an address, or { url = …, user = …, password = … }";
    let [url, user, password] = node.keys(["url", "user", "password"], wanted)?;
    let login = user_password(user, password)?;
    let url = url.and_then(|url| url.text().ok());
    let missing = || "has no url; write { url = \"http://proxy.example:3128\", … }".to_owned();
    let read = proxy(url.ok_or_else(missing)?)?;
    if login.is_some() && read.login.is_some() {
        return Err("has credentials in its url as well; write one of the two".to_owned());
    }
    Ok(ProxyAddress { login: login.map(Box::new).or(read.login), ..read })
}

/// The address of a proxy. Credentials in it become secrets.
fn proxy(text: &str) -> Result<ProxyAddress, String> {
    let wrong = || {
        format!(
            "is no address of a proxy; write scheme, host and port, like \
             \"http://proxy.example:3128\", with the scheme {}",
            PROXY_SCHEMES.join(", ")
        )
    };
    let mut url = Url::parse(text).map_err(|_| wrong())?;
    let has_more = !matches!(url.path(), "" | "/") || url.query().is_some();
    let is_known = PROXY_SCHEMES.contains(&url.scheme());
    if has_more || url.fragment().is_some() || !is_known || url.host_str().is_none_or(str::is_empty)
    {
        return Err(wrong());
    }
    let login = take_login(&mut url)?.map(Box::new);
    let written = url.as_str().trim_end_matches('/').to_owned();
    Ok(ProxyAddress { url: written, login })
}

/// Takes the credentials out of an address: they become secrets.
pub(super) fn take_login(url: &mut Url) -> Result<Option<UserPassword>, String> {
    let text = |encoded: &str| {
        let decoded = percent_encoding::percent_decode_str(encoded).decode_utf8();
        let decoded = decoded.map_err(|_| "has credentials that are not UTF-8".to_owned())?;
        let text = SecretText::new(&decoded);
        text.map(SecretSource::Literal)
            .map_err(|error| format!("has credentials of which one {error}"))
    };
    let login = match (url.username(), url.password()) {
        ("", None) => return Ok(None),
        (user, password) => [text(user), text(password.unwrap_or_default())],
    };
    // Both fail only for URLs without a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let [user, password] = login;
    Ok(Some(UserPassword { user: user?, password: password? }))
}

/// The address of a feed without the credentials in it, which [`feed_address`](super::feed_address) has
/// checked, and these as what its publisher is asked with.
pub fn without_login(mut url: Url) -> (Url, Option<Box<FeedAccess>>) {
    let login = take_login(&mut url).ok().flatten().map(Login::Basic);
    (url, FeedAccess { login, ..FeedAccess::default() }.or_none())
}

/// The credentials of a feed as one, those in its address among them, which loses them; what goes against
/// each other, with its key.
pub(super) fn joined(
    mut access: FeedAccess,
    (basic, bearer): (Option<UserPassword>, Option<SecretSource>),
    url: Option<&mut Url>,
) -> Result<FeedAccess, (&'static str, String)> {
    let wrong = |key, said: &str| Err((key, said.to_owned()));
    if basic.is_some() && bearer.is_some() {
        return wrong("bearer", "stands beside basic; write one of the two");
    }
    let key = if basic.is_some() { "basic" } else { "bearer" };
    access.login = basic.map(Login::Basic).or(bearer.map(Login::Bearer));
    let is_authorization = |name: &str| name.eq_ignore_ascii_case("authorization");
    let has_header = access.headers.iter().any(|(name, _)| is_authorization(name));
    if has_header && access.login.is_some() {
        return wrong(key, "stands beside the header Authorization; write one of the two");
    }
    let in_url = url.map(take_login).transpose().map_err(|said| ("url", said))?.flatten();
    if let Some(login) = in_url {
        // Those that are stored give way to those of a new address.
        let is_new = |login: &Login| !matches!(login, Login::Basic(known) if known.is_left_out());
        if has_header || access.login.as_ref().is_some_and(is_new) {
            let key = if has_header { "headers" } else { key };
            return wrong(key, "stands beside credentials in url; write one of the two");
        }
        access.login = Some(Login::Basic(login));
    }
    let (bytes, limit) = (access.bytes(), FeedAccess::BYTES_LIMIT);
    if bytes > limit {
        let said = format!("makes {bytes} bytes of names and secrets in all, the limit is {limit}");
        return Err(("headers", said));
    }
    Ok(access)
}

/// Notes where the secrets of a table are to be found, each by its name, and what they are.
pub(super) fn note_sources(
    section: &mut Section<'_, '_, '_>,
    secrets: Vec<(String, &SecretSource)>,
    kind: fn(SecretSource) -> External,
) {
    for (name, source) in secrets {
        let key = name.split('.').next().unwrap_or_default();
        match source {
            SecretSource::Literal(_) => {}
            SecretSource::LeftOut => {
                let said = format!("{name} is not in the file: \"stored\" is for the API alone");
                section.fault(key, said);
            }
            SecretSource::File(_) | SecretSource::Env(_) => {
                section.refer(key, kind(source.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests;
