//! Whether the store works, and what other gateways over it there are.

use super::Metrics;
use super::figures::{Figure, gauge};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use std::time::Duration;
use tidegate_store::StoreCondition;

impl Metrics {
    /// Says whether the store works and how much space it has.
    pub(crate) fn store(&self, condition: &StoreCondition) {
        // That another gateway takes documents in is no shortage.
        let takes_in = condition.check_intake().is_ok() && condition.unanswered.is_none();
        let difference = Duration::from_millis(condition.clock_ahead.unsigned_abs()).as_secs_f64();
        let difference = if condition.clock_ahead < 0 { -difference } else { difference };
        let (free, min_free) = condition.space.map_or((0, 0), |space| (space.free, space.limit));
        let max_size = condition.taken.map_or(0, |taken| taken.limit);
        let figures = vec![
            gauge(
                "store_up",
                "1 while the store is open, 0 while it is opened again after a failure",
                condition.stop.is_none(),
            ),
            gauge(
                "store_takes_in",
                "1 while new documents are taken in, 0 while the store is closed, space is low or the database silent",
                takes_in,
            ),
            gauge(
                "settings_differ",
                "Other gateways over the same store whose settings are others than this one's",
                condition.differences().count(),
            ),
            Figure::new(
                "clock_difference",
                "How far this machine's clock is ahead of the database's, at least; below 0: behind it",
                ConstGauge::new(difference),
            )
            .of(Unit::Seconds),
            gauge("store_free", "Bytes that are free on the file system of the data folder", free)
                .of(Unit::Bytes),
            gauge(
                "store_min_free",
                "Bytes of it that must stay free for anything new to be taken in",
                min_free,
            )
            .of(Unit::Bytes),
            gauge(
                "store_size",
                "Bytes that the files of the data folder take on disk; counted once a minute",
                condition.used.unwrap_or_default(),
            )
            .of(Unit::Bytes),
            gauge(
                "store_max_size",
                "Bytes that they may take for anything new to be taken in; 0 where there is no limit",
                max_size,
            )
            .of(Unit::Bytes),
        ];
        self.figures.set("store", figures);
    }
}
