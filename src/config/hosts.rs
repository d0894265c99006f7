//! `[[host]]`: how politely single hosts are asked.

use super::keys::{Preset, section};
use super::kinds::{lasting, number, parsed};
use super::polling::SPACINGS;
use super::section::Section;
use std::collections::BTreeMap;
use std::time::Duration;

/// The most hosts that may have a pace of their own.
pub const HOST_LIMIT: usize = 10_000;

/// How politely a host, and the names below it, are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HostPace {
    /// Two requests are at least this far apart; `None`: `polling.host_spacing`.
    pub spacing: Option<Duration>,
    /// So many requests at the same time.
    pub parallel: usize,
}

section! {
    /// A table of the file.
    pub struct HostTable with KEYS {
        /// The host; the names below it are meant too.
        name: Option<String> = parsed("a host without a port", host).optional(),
            Preset::Words("required", "\"feeds.example.org\"");
        /// Two requests are at least this far apart.
        spacing: Option<Duration> = lasting(SPACINGS).optional(),
            Preset::Words("`polling.host_spacing`", "\"1s\"");
        /// How many requests there may be at the same time.
        parallel: usize = number(1..=64), Preset::Value("1");
    }
}

pub(super) fn read(top: &mut Section<'_, '_, '_>) -> BTreeMap<String, HostPace> {
    let mut hosts = BTreeMap::new();
    top.tables("host", &KEYS, HOST_LIMIT, |section, HostTable { name, spacing, parallel }| {
        section.demand("name", "each [[host]] has its own name");
        let Some(name) = name else { return };
        let message = format!("{name:?} has a table already");
        if hosts.insert(name, HostPace { spacing, parallel }).is_some() {
            section.fault("name", message);
        }
    });
    hosts
}

/// A host as addresses have it: in lower case, international names in their form for DNS.
fn host(text: &str) -> Result<String, String> {
    let read = url::Host::parse(text.strip_suffix('.').unwrap_or(text));
    read.map(|host| host.to_string())
        .map_err(|_| format!("{text:?} is no host; write one like \"example.org\", without a port"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;

    fn hosts(text: &str) -> Result<BTreeMap<String, HostPace>, String> {
        let checked = check("f", text);
        checked.map(|checked| checked.config.hosts).map_err(|faults| faults.to_string())
    }

    #[test]
    fn hosts_have_a_pace_of_their_own() {
        let read = hosts(
            "[[host]]\nname = \"Example.ORG.\"\nspacing = \"5s\"\n\
             [[host]]\nname = \"feeds.example.org\"\nparallel = 4\n",
        );
        let read = read.unwrap();
        let five = HostPace { spacing: Some(Duration::from_secs(5)), parallel: 1 };
        assert_eq!(read["example.org"], five);
        assert_eq!(read["feeds.example.org"], HostPace { spacing: None, parallel: 4 });
    }

    #[test]
    fn mistakes_are_named() {
        for (bad, said) in [
            ("[[host]]\nspacing = \"1s\"", "name"),
            ("[[host]]\nname = \"a b\"", "is no host"),
            ("[[host]]\nname = \"a\"\nparallel = 0", "out of bounds"),
            ("[[host]]\nname = \"a\"\nspacing = \"2h\"", "out of bounds"),
            ("[[host]]\nname = \"a\"\n[[host]]\nname = \"A\"", "has a table already"),
            ("[[host]]\nname = \"a\"\nspace = \"2s\"", "spac"),
        ] {
            let error = hosts(bad).unwrap_err();
            assert!(error.contains(said), "{bad}: {error}");
        }
    }
}
