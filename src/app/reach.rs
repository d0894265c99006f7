//! Whether hubs can reach this gateway, by its public address.

use tidegate_config::Config;
use tidegate_net::fetch::{self, AllowPrivate, read_url};
use tidegate_poll::Reach;
use url::{Host, Url};

/// Where hubs of upstreams call, without the token.
const CALLBACKS: &str = "/websub/callback";

/// Last labels of names that mean something only within a network.
const INNER: &[&str] =
    &["localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "onion"];

/// Where hubs reach this gateway: anywhere from outside where its address is public or the operator
/// says so. A gateway with a private address is reached by hubs at the operator's own hosts alone,
/// those that polling may ask though they are private: to ask others would be in vain.
pub(super) fn reach(config: &Config, public_url: &str) -> Option<Reach> {
    let base = read_url(public_url).ok()?;
    let own_hosts = match config.websub.subscribe {
        Some(false) => return None,
        Some(true) => false,
        None => !is_public(&base),
    };
    let callbacks = format!("{}{CALLBACKS}", public_url.trim_end_matches('/'));
    Some(Reach { callbacks, own_hosts, http_secrets: config.websub.http_secrets })
}

/// Whether an address looks as if it could be reached from anywhere.
fn is_public(url: &Url) -> bool {
    let Some(Host::Domain(name)) = url.host() else {
        return fetch::check(url, &AllowPrivate::No).is_ok();
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    let last = name.rsplit_once('.').map(|(_, last)| last);
    last.is_some_and(|last| !INNER.contains(&last)) && !name.ends_with(".home.arpa")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(public_url: &str, subscribe: Option<bool>) -> Option<bool> {
        let mut config = Config::default();
        config.websub.subscribe = subscribe;
        reach(&config, public_url).map(|reach| reach.own_hosts)
    }

    #[test]
    fn public_addresses_are_reached_and_others_by_own_hosts_alone() {
        for public in ["https://feeds.example.org", "http://1.1.1.1:8080", "https://[2a00::1]/x"] {
            assert_eq!(of(public, None), Some(false), "{public}");
        }
        for private in [
            "http://127.0.0.1:8080",
            "http://0.0.0.0:8080",
            "http://[::1]:8080",
            "http://10.1.2.3",
            "http://localhost:8080",
            "http://gateway",
            "http://gateway.local.",
            "http://feeds.corp",
            "http://nas.home.arpa",
        ] {
            assert_eq!(of(private, None), Some(true), "{private}");
            assert_eq!(of(private, Some(true)), Some(false), "{private}: the operator knows");
        }
        assert_eq!(of("https://feeds.example.org", Some(false)), None);
    }

    #[test]
    fn callbacks_stand_below_the_public_address() {
        let reached = reach(&Config::default(), "https://example.org/feeds/").unwrap();
        assert_eq!(reached.callbacks, "https://example.org/feeds/websub/callback");
    }
}
