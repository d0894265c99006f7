//! Resolves names for the client, and gives it only addresses that the guard admits.

use super::guard::{Openness, Refusal};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::timeout;

/// The most addresses of one name that are tried.
pub const MAX_ADDRESSES: usize = 16;

/// How long the resolver may take, which is less than a connection may: so that a name that leads
/// nowhere is told from a host that does not answer.
const RESOLVE_TIME: Duration = Duration::from_secs(8);

/// A name that leads to no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unresolved {
    /// What was said.
    pub why: String,
}

/// The system's resolver behind the guard. What it returns is what is connected to, so that a name
/// cannot answer differently between the check and the connection.
#[derive(Debug, Clone, Copy)]
pub struct GuardedResolver {
    openness: Openness,
}

impl GuardedResolver {
    /// A resolver that gives out the addresses that `openness` admits.
    pub const fn new(openness: Openness) -> Self {
        Self { openness }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let openness = self.openness;
        Box::pin(async move {
            // Port 0 stands for "the port of the URL".
            let unresolved = |why: String| Unresolved { why };
            let found = timeout(RESOLVE_TIME, tokio::net::lookup_host((name.as_str(), 0))).await;
            let late =
                || format!("the resolver did not answer within {} s", RESOLVE_TIME.as_secs());
            let found = found
                .map_err(|_| unresolved(late()))?
                .map_err(|error| unresolved(error.to_string()))?;
            let kept = admitted(name.as_str(), found, openness)?;
            Ok(Box::new(kept.into_iter()) as Addrs)
        })
    }
}

/// The addresses that may be connected to; the refusal of the first one where there are none.
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
    fn private_answers_are_dropped_among_public_ones() {
        let mixed = found(&["127.0.0.1", "1.1.1.1", "10.0.0.1"]);
        let kept = admitted("mixed.example", mixed.into_iter(), Openness::Public);
        assert_eq!(kept, Ok(found(&["1.1.1.1"])));
    }

    #[test]
    fn a_name_with_private_answers_only_is_refused() {
        let rebound = found(&["127.0.0.1", "::1"]);
        let refused = admitted("rebound.example", rebound.into_iter(), Openness::Public);
        let said = refused.unwrap_err().to_string();
        assert!(said.starts_with("rebound.example has a loopback address (127.0.0.1);"), "{said}");
    }

    #[test]
    fn the_number_of_addresses_is_bounded() {
        let many = (0..100u8).map(|n| SocketAddr::new([1, 1, 1, n].into(), 0));
        let kept = admitted("many.example", many, Openness::Public);
        assert_eq!(kept.map(|kept| kept.len()), Ok(MAX_ADDRESSES));
    }
}
