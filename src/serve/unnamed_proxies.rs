//! Peers that seem to be proxies and are not named in `server.trusted_proxies`: whatever is shared out
//! by client, all who come through such a proxy have one share of.

use super::client::Client;
use crate::locked;
use std::collections::HashSet;
use std::sync::Mutex;

/// How many peers the log tells of. Anybody can send the headers of a proxy.
const PEERS_TOLD: usize = 64;

/// Why a peer seems to be a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// Its requests say for whom they are (`Forwarded`, `X-Forwarded-For`).
    Header,
    /// It has as many connections as one client may have.
    Connections,
}

impl Sign {
    const fn describe(self) -> &'static str {
        match self {
            Self::Header => {
                "sends requests that say for whom they are (Forwarded, X-Forwarded-For)"
            }
            Self::Connections => "has as many connections as one client may have",
        }
    }
}

/// The peers that the log has told of, each once.
#[derive(Debug, Default)]
pub(super) struct UnnamedProxies(Mutex<HashSet<Client>>);

impl UnnamedProxies {
    /// Tells the operator of a peer; whether it did: not where it has before, or of too many others.
    pub(super) fn tell(&self, peer: Client, sign: Sign) -> bool {
        let Client::At(address) = peer else { return false };
        let mut told = locked(&self.0);
        let tells = told.len() < PEERS_TOLD && told.insert(peer);
        if tells {
            tracing::warn!(
                peer = %address,
                "a peer {} and is not named in server.trusted_proxies: everybody who comes through it \
                 counts as one client and has one share; name it there if it is a proxy of yours",
                sign.describe()
            );
        }
        tells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_told_of_once_and_not_too_many_of_them() {
        let (unnamed, peer) =
            (UnnamedProxies::default(), |n: u8| Client::at([192, 0, 2, n].into()));
        assert!(unnamed.tell(peer(0), Sign::Header));
        assert!(!unnamed.tell(peer(0), Sign::Header) && !unnamed.tell(peer(0), Sign::Connections));
        assert!(!unnamed.tell(Client::Own, Sign::Header));
        let told = (0..=255).filter(|n| unnamed.tell(peer(*n), Sign::Connections)).count();
        assert_eq!(told + 1, PEERS_TOLD);
    }
}
