//! The condition of a store, and whether it takes in new content: answered from memory, also while it is closed.

use super::{KnownGateway, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{Time, counted, shown_size};

/// The clock difference to the database, in milliseconds, above which a warning is shown.
pub(super) const CLOCK_LIMIT: u64 = 2_000;

/// The condition of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreCondition {
    /// It stopped after a failure.
    pub stop: Option<StoreStop>,
    pub space: SpaceStatus,
    /// How long the database has not answered, once that is so long that the copy in memory may be old.
    pub unanswered: Option<Duration>,
    /// The gateways over the same database, with this one; none where there can be only one.
    pub gateways: Arc<[KnownGateway]>,
    /// By how many milliseconds this machine's clock is ahead of the database's, at least; below 0: it is behind.
    pub clock_ahead: i64,
}

/// A store that stopped because a write, or making one durable, failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreStop {
    /// What failed, and what the system said.
    pub cause: String,
    /// When it stopped.
    pub since: Time,
    /// When it is opened again; `None` where it is not, because acknowledged state is missing or cannot be read.
    pub next_try: Option<Time>,
    /// How often opening it again has failed.
    pub failed_tries: u32,
}

/// The space of a store on disk as it was measured last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpaceStatus {
    /// The bytes that this process may still write to the file system, against those that must stay free
    /// (`store.min_free`).
    pub free: Option<SpaceReading>,
    /// The bytes that the files of the data folder take.
    pub used: Option<u64>,
    /// The bytes that the data folder takes against their limit (`store.max_size`), where there is one.
    pub taken: Option<SpaceReading>,
}

/// Bytes that are free, or taken, against their limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpaceReading {
    pub bytes: u64,
    pub limit: u64,
    /// Whether new content is refused.
    pub is_short: bool,
}

impl SpaceStatus {
    /// An error while new content is refused.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let short = |reading: Option<SpaceReading>| reading.filter(|reading| reading.is_short);
        let said = short(self.free).map(SpaceReading::too_little_free);
        let said = said.or_else(|| short(self.taken).map(SpaceReading::too_much_taken));
        said.map_or(Ok(()), |said| Err(StoreError::LowSpace(said)))
    }
}

impl SpaceReading {
    /// The message of a low file system.
    pub(super) fn too_little_free(self) -> String {
        format!(
            "nothing new is taken in: the file system of the data folder has {} free, and {} must \
             stay free (store.min_free); reading goes on",
            shown_size(self.bytes),
            shown_size(self.limit)
        )
    }

    /// The message of a folder at its limit.
    pub(super) fn too_much_taken(self) -> String {
        format!(
            "nothing new is taken in: the data folder takes {}, and may take {} (store.max_size); \
             reading goes on; raise the limit, keep less of the past, or run tidegate compact",
            shown_size(self.bytes),
            shown_size(self.limit)
        )
    }
}

impl StoreCondition {
    /// The message of gateways over one database with different settings.
    pub fn differences(&self) -> impl Iterator<Item = String> {
        self.gateways.iter().filter_map(KnownGateway::difference)
    }

    /// The message of a clock that differs from the database.
    pub fn clock_difference(&self) -> Option<String> {
        let milliseconds = self.clock_ahead.unsigned_abs();
        let side = if self.clock_ahead < 0 { "behind" } else { "ahead of" };
        let said = || {
            let seconds = counted(milliseconds / 1000, "second");
            format!("The clock of this gateway is {seconds} {side} that of its database")
        };
        (milliseconds > CLOCK_LIMIT).then(said)
    }

    /// An error while new content cannot be taken in.
    pub fn check_intake(&self) -> Result<(), StoreError> {
        if let Some(stop) = &self.stop {
            return Err(StoreError::Stopped(Box::new(stop.clone())));
        }
        self.space.check()
    }
}

impl std::fmt::Display for StoreStop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { cause, since, next_try, failed_tries } = self;
        write!(f, "the store stopped at {since}: {cause}; ")?;
        match next_try {
            Some(next) if *failed_tries == 0 => write!(f, "it is opened again at {next}"),
            Some(next) => {
                let tries = counted(*failed_tries, "try");
                write!(f, "it is opened again at {next}, after {tries} that failed")
            }
            None => f.write_str("it is not opened again until the gateway is restarted"),
        }
    }
}
