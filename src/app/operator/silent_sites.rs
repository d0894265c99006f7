//! What the log says of sites that do not answer what is passed on to them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate_net::fetch::FetchError;
use tokio::time::Instant;

/// How long after a warning of a site the next one comes: a single address that fails would have one for each of its
/// failures, where others of the site are answered between them.
const WARNING_PAUSE: Duration = Duration::from_secs(600);
/// A site that has answered nothing for so long is warned of sooner.
const SURELY_SILENT: Duration = Duration::from_secs(120);

/// How sites answered last, by their hosts with ports.
#[derive(Debug, Default)]
pub(super) struct SilentSites(Mutex<HashMap<String, SiteAnswers>>);

impl SilentSites {
    fn sites(&self) -> MutexGuard<'_, HashMap<String, SiteAnswers>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request that a site did not answer, and warns of the first.
    pub(super) fn failed(&self, host: &str, error: &FetchError) {
        let is_warned_of = self.sites().entry(host.to_owned()).or_default().failed(Instant::now());
        if is_warned_of {
            tracing::warn!(host, %error, "a site does not answer what is passed on to it");
        } else {
            tracing::debug!(host, %error, "a request could not be passed on");
        }
    }

    /// Notes an answer of a site, and says so where there was none.
    pub(super) fn answered(&self, host: &str) {
        let silent = self.sites().get_mut(host).and_then(|site| site.answered(Instant::now()));
        if let Some(after) = silent {
            tracing::info!(host, ?after, "a site answers again what is passed on to it");
        }
    }
}

/// How a site answered last.
#[derive(Debug, Default)]
struct SiteAnswers {
    /// Since when it has answered nothing, and whether that was warned of.
    silent: Option<(Instant, bool)>,
    /// When it was warned of last.
    warned: Option<Instant>,
}

impl SiteAnswers {
    /// Notes that it did not answer; whether that is to be warned of.
    fn failed(&mut self, now: Instant) -> bool {
        let (since, is_warned_of) = self.silent.get_or_insert((now, false));
        let silent = now.saturating_duration_since(*since);
        let was_warned_of =
            self.warned.is_some_and(|at| now.saturating_duration_since(at) < WARNING_PAUSE);
        if *is_warned_of || (was_warned_of && silent < SURELY_SILENT) {
            return false;
        }
        *is_warned_of = true;
        self.warned = Some(now);
        true
    }

    /// Notes an answer; for how long there was none, where that was warned of.
    fn answered(&mut self, now: Instant) -> Option<Duration> {
        let (since, is_warned_of) = self.silent.take()?;
        is_warned_of.then(|| now.saturating_duration_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_site_that_is_down_is_warned_of_once_until_it_answers() {
        let (mut site, begun) = (SiteAnswers::default(), Instant::now());
        assert_eq!(site.answered(begun), None);
        assert!(site.failed(begun));
        for second in 1..3600 {
            assert!(!site.failed(begun + SECOND * second), "{second}");
        }
        assert_eq!(site.answered(begun + SECOND * 3600), Some(SECOND * 3600));
        assert_eq!(site.answered(begun + SECOND * 3601), None);
        assert!(site.failed(begun + SECOND * 3602));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_fails_among_others_is_warned_of_seldom() {
        let (mut site, begun) = (SiteAnswers::default(), Instant::now());
        let (mut warnings, mut recoveries) = (0, 0);
        for second in 0..3300 {
            let now = begun + SECOND * second;
            warnings += u32::from(site.failed(now));
            recoveries += u32::from(site.answered(now).is_some());
        }
        assert_eq!((warnings, recoveries), (6, 6));
        // Nothing is answered any more: that is said before the pause is over.
        let down = begun + SECOND * 3300;
        let said = (0..600).find(|second| site.failed(down + SECOND * *second));
        assert_eq!(said, Some(120));
    }
}
