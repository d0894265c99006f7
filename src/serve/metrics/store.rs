//! Whether the store works, and what other gateways over it there are.

use super::{Metrics, signed};
use std::time::Duration;
use tidegate_store::{StoreCondition, StoreError};

impl Metrics {
    /// Says whether the store works and how much space it has.
    pub(crate) fn store(&self, condition: &StoreCondition) {
        let meters = &self.meters;
        meters.store_up.set(i64::from(condition.stop.is_none()));
        // That another gateway takes documents in is no shortage.
        let takes_in = condition.check_intake();
        let takes_in = matches!(takes_in, Ok(()) | Err(StoreError::Standby { .. }))
            && condition.unanswered.is_none();
        meters.store_intake.set(i64::from(takes_in));
        meters.standby.set(i64::from(condition.owner.is_some()));
        let differences = condition.differences().count();
        meters.differences.set(signed(differences));
        let difference = Duration::from_millis(condition.clock_ahead.unsigned_abs()).as_secs_f64();
        let is_behind = condition.clock_ahead < 0;
        meters.clock_difference.set(if is_behind { -difference } else { difference });
        if let Some(space) = condition.space {
            meters.store_free.set(signed(space.free));
            meters.store_min_free.set(signed(space.limit));
        }
        let limit = condition.taken.map_or(0, |taken| taken.limit);
        meters.store_max_size.set(signed(limit));
        if let Some(used) = condition.used {
            meters.store_size.set(signed(used));
        }
    }
}
