//! To which hosts a connection stays open after an answer. Pure; the time is told.
//!
//! A connection that waits takes some KB here, tens with TLS, and a place at its server. So a bounded
//! number of hosts has one, those first that are asked again before it would be closed.

use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// The most hosts to which a connection stays open.
pub const MAX_KEPT_HOSTS: usize = 2048;
/// How long a connection stays open that nobody uses: longer than the minute at which many feeds are
/// polled.
pub const KEPT_IDLE: Duration = Duration::from_secs(90);
/// How many of them may be hosts that are not known to be asked again so soon.
const MAX_UNSURE: usize = MAX_KEPT_HOSTS / 2;

/// The hosts to which a connection may be open, by fingerprint, each until it is closed.
#[derive(Debug, Default)]
pub(super) struct KeptHosts {
    until: HashMap<u64, Instant>,
    swept: Option<Instant>,
}

impl KeptHosts {
    /// Whether the connection to a host that is asked now is to stay open. `soon`: it is asked again
    /// within [`KEPT_IDLE`].
    pub(super) fn admit(&mut self, host: u64, soon: bool, now: Instant) -> bool {
        let end = now + KEPT_IDLE;
        if let Some(until) = self.until.get_mut(&host).filter(|until| **until > now) {
            *until = end;
            return true;
        }
        let limit = if soon { MAX_KEPT_HOSTS } else { MAX_UNSURE };
        if self.until.len() >= limit {
            self.sweep(now);
        }
        let has_room = self.until.len() < limit;
        if has_room {
            self.until.insert(host, end);
        }
        has_room
    }

    fn sweep(&mut self, now: Instant) {
        if self.swept.is_some_and(|swept| now.duration_since(swept) < Duration::from_secs(1)) {
            return;
        }
        self.swept = Some(now);
        self.until.retain(|_, until| *until > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_is_asked_in_time_stays_and_others_leave_room() {
        let (mut kept, start) = (KeptHosts::default(), Instant::now());
        let most = MAX_KEPT_HOSTS as u64;
        let unsure = (0..most).filter(|host| kept.admit(*host, false, start)).count();
        assert_eq!(unsure, MAX_UNSURE);
        let soon = (most..2 * most).filter(|host| kept.admit(*host, true, start)).count();
        assert_eq!(soon, MAX_KEPT_HOSTS - MAX_UNSURE);
        assert!(!kept.admit(u64::MAX, true, start));
        // Who has a place keeps it, and the others' end with their connections.
        let minute = start + Duration::from_secs(60);
        assert!(kept.admit(most, true, minute) && kept.admit(0, false, minute));
        let later = start + KEPT_IDLE;
        assert!(kept.admit(u64::MAX, true, later));
        assert_eq!(kept.until.len(), 3);
    }
}
