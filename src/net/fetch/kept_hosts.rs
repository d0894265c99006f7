//! Decides to which hosts an idle connection stays open.
//!
//! An idle connection takes some KB here (tens with TLS) and a slot at its server. So their number is limited, with
//! preference for hosts that will be asked again before it would be closed.

use moka::sync::Cache;
use std::time::Duration;

/// The most hosts with an open connection; at most half of them may be hosts not known to be asked again soon.
pub const MAX_KEPT_HOSTS: u64 = 2048;
/// How long an idle connection stays open: longer than the minute at which many feeds are polled.
pub const KEPT_IDLE: Duration = Duration::from_secs(90);

/// Fingerprints of the hosts to which a connection may be open, until it would be closed.
#[derive(Debug)]
pub(super) struct KeptHosts(Cache<u64, ()>);

impl Default for KeptHosts {
    fn default() -> Self {
        Self(Cache::builder().time_to_idle(KEPT_IDLE).build())
    }
}

impl KeptHosts {
    /// Whether the connection to a host asked now should stay open. `soon`: it will be asked again within
    /// [`KEPT_IDLE`].
    pub(super) fn admit(&self, host: u64, soon: bool) -> bool {
        if self.0.get(&host).is_some() {
            return true;
        }
        // Evict expired hosts first.
        self.0.run_pending_tasks();
        let limit = if soon { MAX_KEPT_HOSTS } else { MAX_KEPT_HOSTS / 2 };
        let has_room = self.0.entry_count() < limit;
        if has_room {
            self.0.insert(host, ());
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_hosts_have_a_place_and_keep_it_for_a_while() {
        let kept = KeptHosts::default();
        let admitted = |hosts: std::ops::Range<u64>, soon| {
            hosts.filter(|host| kept.admit(*host, soon)).count() as u64
        };
        assert_eq!(admitted(0..MAX_KEPT_HOSTS, false), MAX_KEPT_HOSTS / 2);
        assert_eq!(admitted(10_000..20_000, true), MAX_KEPT_HOSTS / 2);
        assert!(kept.admit(0, false) && !kept.admit(u64::MAX, true));
        assert_eq!(kept.0.policy().time_to_idle(), Some(KEPT_IDLE));
    }
}
