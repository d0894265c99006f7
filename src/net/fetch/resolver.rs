//! Resolves names and returns only addresses that the guard admits.

use super::guard::{Openness, Refusal};
use moka::sync::Cache;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::vec::IntoIter;
use tokio::time::timeout;

/// The most addresses of a name that are tried.
pub const MAX_ADDRESSES: usize = 16;

/// The time limit of the resolver. It is shorter than that of a connection, to distinguish an unresolvable name from a
/// host that does not answer.
const RESOLVE_TIME: Duration = Duration::from_secs(8);

/// How long an answer is cached. The system's resolver does not reveal the TTL, and caches for longer itself.
const ANSWER_LIFETIME: Duration = Duration::from_secs(60);
/// The most names in the cache.
const MAX_NAMES: u64 = 4096;

/// The system's resolver behind the guard. Its result is what is connected to, so that a name cannot change between
/// check and connection.
#[derive(Debug, Clone)]
pub struct GuardedResolver {
    openness: Openness,
    /// The host of the configured proxy, which may have any address.
    named: Option<String>,
    answers: Cache<String, Arc<[SocketAddr]>>,
}

/// Why a name cannot be connected to.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LookupError {
    /// All its addresses are refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It has no address; the resolver's message.
    #[error("{0}")]
    Unresolved(String),
}

impl GuardedResolver {
    /// Creates a resolver that returns addresses admitted by `openness`.
    pub fn new(openness: Openness) -> Self {
        let answers = Cache::builder().max_capacity(MAX_NAMES).time_to_live(ANSWER_LIFETIME);
        Self { openness, named: None, answers: answers.build() }
    }

    /// Like [`Self::new`], but the proxy `host` may have any address. Its answers are its own.
    pub fn of_proxy(openness: Openness, host: String) -> Self {
        Self { named: Some(host), ..Self::new(openness) }
    }

    /// Returns the admitted addresses of a name.
    pub async fn look_up(&self, name: &str) -> Result<Arc<[SocketAddr]>, LookupError> {
        if let Some(kept) = self.answers.get(name) {
            return Ok(kept);
        }
        let is_named = self.named.as_deref().is_some_and(|host| host.eq_ignore_ascii_case(name));
        let openness = if is_named { Openness::Named } else { self.openness };
        let kept: Arc<[SocketAddr]> = ask(name, openness).await?.into();
        self.answers.insert(name.to_owned(), Arc::clone(&kept));
        Ok(kept)
    }

    /// Like [`Self::look_up`], as an owned future.
    pub(super) async fn find(self, name: String) -> Result<IntoIter<SocketAddr>, LookupError> {
        Ok(self.look_up(&name).await?.to_vec().into_iter())
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let found = self.clone().find(name.as_str().to_owned());
        Box::pin(async move { Ok(Box::new(found.await?) as Addrs) })
    }
}

/// Asks the system's resolver.
async fn ask(name: &str, openness: Openness) -> Result<Vec<SocketAddr>, LookupError> {
    // Port 0 stands for "the port of the URL".
    let found = timeout(RESOLVE_TIME, tokio::net::lookup_host((name, 0))).await;
    let late = |_| format!("the resolver did not answer within {} s", RESOLVE_TIME.as_secs());
    let found = found.map_err(late).and_then(|found| found.map_err(|error| error.to_string()));
    Ok(admitted(name, found.map_err(LookupError::Unresolved)?, openness)?)
}

/// Filters the admitted addresses; if there are none, refuses because of the first one.
fn admitted(
    host: &str,
    found: impl Iterator<Item = SocketAddr>,
    openness: Openness,
) -> Result<Vec<SocketAddr>, Refusal> {
    let (mut kept, mut refused) = (Vec::new(), None);
    for address in found {
        if !openness.admits(address.ip()) {
            refused.get_or_insert(address.ip());
        } else if kept.len() < MAX_ADDRESSES {
            kept.push(address);
        }
    }
    match refused {
        Some(address) if kept.is_empty() => Err(Refusal::address(host, address)),
        _ => Ok(kept),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 0)).collect()
    }

    #[test]
    fn private_answers_are_dropped_and_many_bounded_and_private_ones_alone_refused() {
        let kept =
            |texts: &[&str]| admitted("a.example", found(texts).into_iter(), Openness::Public);
        assert_eq!(kept(&["127.0.0.1", "1.1.1.1", "10.0.0.1"]), Ok(found(&["1.1.1.1"])));
        assert_eq!(kept(&["1.1.1.1"; 100]).map(|kept| kept.len()), Ok(MAX_ADDRESSES));
        let said = kept(&["127.0.0.1", "::1"]).unwrap_err().to_string();
        assert!(said.starts_with("a.example has a loopback address (127.0.0.1);"), "{said}");
        // Answers are kept for their time, and in a bounded number.
        let policy = GuardedResolver::new(Openness::Public).answers.policy();
        assert_eq!(policy.time_to_live(), Some(Duration::from_secs(60)));
        assert_eq!(policy.max_capacity(), Some(MAX_NAMES));
    }
}
