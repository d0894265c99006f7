//! Pauses that grow with each failure in a row. Pure.

use std::time::Duration;

/// A pause after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrowingPause {
    /// After the first one.
    pub first: Duration,
    /// How many times longer each further one is.
    pub factor: u32,
    /// The longest.
    pub most: Duration,
}

impl GrowingPause {
    /// One that is twice as long each time.
    pub const fn doubling(first: Duration, most: Duration) -> Self {
        Self { first, factor: 2, most }
    }

    /// The pause after so many failures in a row.
    pub const fn after(&self, failures: u32) -> Duration {
        let pause =
            self.first.saturating_mul(self.factor.saturating_pow(failures.saturating_sub(1)));
        if pause.as_nanos() < self.most.as_nanos() { pause } else { self.most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest() {
        let seconds = Duration::from_secs;
        let pause =
            GrowingPause { factor: 4, ..GrowingPause::doubling(seconds(30), seconds(1000)) };
        let pauses = [0, 1, 2, 3, 4, u32::MAX].map(|failures| pause.after(failures).as_secs());
        assert_eq!(pauses, [30, 30, 120, 480, 1000, 1000]);
    }
}
