//! What came of requests for origins, and how many there were of each kind.

use super::super::files::{self, OF_SITES};
use super::super::metrics::Metrics;
use super::super::problem::Problem;
use super::slots::SiteSlots;
use http::StatusCode;
use std::sync::Arc;
use tidegate_net::origin::OriginSite;

/// What became of a request for an origin, for its metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PassOutcome {
    Feed,
    Passed,
    /// Passed on, though it seems to be a feed: its client has had its share of new ones.
    Unmade,
    Redirected,
    Refused,
    /// Too much of its client waits, or what is asked for is not there yet: no fault of the site's.
    Busy,
    Failed,
}

impl PassOutcome {
    /// That of an error of the gateway's own: the site failed where it says so.
    pub(super) fn of_error(problem: &Problem) -> Self {
        match problem.status() {
            status if problem.is_of_site() || is_unanswered(status) => Self::Failed,
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => Self::Busy,
            _ => Self::Refused,
        }
    }

    /// The word for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Feed => "feed",
            Self::Passed => "passed",
            Self::Unmade => "unmade",
            Self::Redirected => "redirected",
            Self::Refused => "refused",
            Self::Busy => "busy",
            Self::Failed => "failed",
        }
    }
}

/// A site, and what counts its requests.
pub(super) struct ServedOrigin {
    pub(super) site: Arc<OriginSite>,
    pub(super) slots: Arc<SiteSlots>,
}

impl ServedOrigin {
    /// One of so many sites, which share the files that the process may open.
    pub(super) fn new(site: Arc<OriginSite>, sites: usize) -> Self {
        let files = files::limit().unwrap_or(u64::MAX);
        let configured = site.config().requests;
        let requests = at_once(configured, files, sites);
        if requests < usize::try_from(configured).unwrap_or(usize::MAX) {
            tracing::warn!(
                origin = %site.config().name,
                requests,
                configured,
                files,
                "the site gets fewer requests at once than configured: all sites together have a quarter of the files \
                 that the process may open"
            );
        }
        Self { site, slots: Arc::new(SiteSlots::new(requests)) }
    }

    pub(super) fn count(&self, metrics: &Metrics, outcome: PassOutcome) {
        metrics.passed(&self.site.config().name, outcome).inc();
    }
}

/// How many requests each of so many sites gets at once: all of them together have a quarter of the files.
fn at_once(configured: u32, files: u64, sites: usize) -> usize {
    let all = usize::try_from(files / OF_SITES).unwrap_or(usize::MAX);
    let most = (all / sites.max(1)).max(1);
    usize::try_from(configured).map_or(most, |configured| configured.min(most))
}

/// Whether a status says that the site did not answer.
pub(super) fn is_unanswered(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_leave_files_for_others() {
        let of = [(524_288, 1), (524_288, 1_000), (1_024, 1), (1_024, 4), (1_024, 1_000)];
        let each = of.map(|(files, sites)| at_once(256, files, sites));
        assert_eq!(each, [256, 131, 256, 64, 1]);
    }

    #[test]
    fn only_what_the_site_did_not_answer_failed() {
        let of = |status| {
            let problem = Problem::new(StatusCode::from_u16(status).unwrap(), "");
            PassOutcome::of_error(&problem).name()
        };
        assert_eq!([502, 504].map(of), ["failed"; 2]);
        assert_eq!([503, 429].map(of), ["busy"; 2], "a client's own share may be used up");
        assert_eq!([400, 405, 501, 508].map(of), ["refused"; 4]);
    }
}
