//! The health of a store: it stops at the first failure, and heals when it was opened again.

use crate::{StoreError, StoreStop, in_words};
use std::sync::{PoisonError, RwLock};
use tidegate_core::model::Time;

/// The failure that stopped the store.
#[derive(Clone)]
struct StoreFailure {
    stop: StoreStop,
    /// The folder and its damage, where the store is not opened again.
    damage: Option<(String, String)>,
}

/// The failure of a store; none while it works.
#[derive(Default)]
pub(super) struct StoreHealth(RwLock<Option<StoreFailure>>);

impl StoreHealth {
    /// An error where the store has stopped.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        match &*self.0.read().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(()),
            Some(StoreFailure { damage: Some((path, what)), .. }) => {
                Err(StoreError::Damaged { path: path.clone(), what: what.clone() })
            }
            Some(StoreFailure { stop, .. }) => Err(StoreError::Stopped(Box::new(stop.clone()))),
        }
    }

    /// Why and since when it has stopped.
    pub(super) fn stop(&self) -> Option<StoreStop> {
        let failure = self.0.read().unwrap_or_else(PoisonError::into_inner);
        failure.as_ref().map(|failure| failure.stop.clone())
    }

    /// Stops the store: the last write may not be durable, so it is not shown, and no change builds on it. Later
    /// errors of the same failure are ignored. `ends`: the name of a database that is not opened again.
    pub(super) fn stop_for(&self, error: &StoreError, now: Time, ends: Option<&str>) {
        let mut failure = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if failure.is_some() || matches!(error, StoreError::Stopped(_)) {
            return;
        }
        let cause = in_words(error);
        if ends.is_some() {
            tracing::error!(error = %cause, "the database is not used any more; mend that and restart the gateway");
        } else {
            tracing::error!(error = %cause, "the store stopped; it will be opened again");
        }
        let damage = match (ends, error) {
            (Some(path), StoreError::Damaged { what, .. }) => Some((path.to_owned(), what.clone())),
            _ => None,
        };
        let next_try = ends.is_none().then_some(now);
        let stop = StoreStop { cause, since: now, next_try, failed_tries: 0 };
        *failure = Some(StoreFailure { stop, damage });
    }

    /// Sets the failure, for tests.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn set(&self, stop: Option<StoreStop>) {
        let failure = stop.map(|stop| StoreFailure { stop, damage: None });
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Notes the time of the next try, and the error of the last one. `is_damaged`: enough tries in a row found
    /// damage to report it.
    pub(super) fn plan_try(&self, next: Time, failed: Option<&StoreError>, is_damaged: bool) {
        let mut failure = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Some(StoreFailure { stop, .. }) = &mut *failure else { return };
        stop.next_try = Some(next);
        if let Some(error) = failed {
            stop.failed_tries = stop.failed_tries.saturating_add(1);
            if is_damaged {
                let what = match error {
                    StoreError::Damaged { what, .. } => what.clone(),
                    other => in_words(other),
                };
                stop.cause = format!("the store looks damaged: {what}");
            }
            let error = in_words(error);
            tracing::warn!(%error, next = %next, "the store could not be opened again");
        }
    }

    /// Gives up: acknowledged state is missing.
    pub(super) fn give_up(&self, path: &str, what: String) {
        let damage = StoreError::Damaged { path: path.to_owned(), what: what.clone() };
        tracing::error!(error = %damage, "the store is not opened again");
        let mut failure = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = &mut *failure {
            failure.stop.next_try = None;
            failure.stop.cause = damage.to_string();
            failure.damage = Some((path.to_owned(), what));
        }
    }

    /// Clears the failure: the store is open again.
    pub(super) fn heal(&self, now: Time) {
        let healed = self.0.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(StoreFailure { stop, .. }) = healed {
            let (after, tries) = (now.since(stop.since), stop.failed_tries);
            tracing::warn!(?after, failed_tries = tries, "the store is open again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_went_back_is_said_once() {
        let health = StoreHealth::default();
        let error = StoreError::WentBack { database: "tidegate at db.example".to_owned() };
        health.stop_for(&error, Time::from_unix(1), Some("/data"));
        let first = health.stop().unwrap();
        // Each later refresh meets the first error.
        health.stop_for(&health.check().unwrap_err(), Time::from_unix(2), Some("/data"));
        assert_eq!(health.stop().unwrap(), first);
        assert_eq!((first.since, first.next_try), (Time::from_unix(1), None));
    }
}
