//! Which of two a gateway is over a database that several share: the one that polls and writes, or a standby that
//! answers readers; and how it goes from one to the other on the same sockets.

use super::{Gateway, Outside, open};
use crate::app::AppError;
use crate::app::disk::{self, LastingStore};
use crate::clock::Clock;
use crate::config::{Config, StoreKind};
use crate::store::{EmbeddedStore, FreeSpace, Store, StoreError};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// How often it is tried to follow another gateway, which may only just have begun, and the pause between.
const FOLLOW_TRIES: (u32, Duration) = (6, Duration::from_millis(500));

/// The store of a configuration; where another gateway has it, as a standby.
pub(super) async fn open_or_follow(
    config: &Config,
    clock: &Arc<dyn Clock>,
    space: Option<Arc<FreeSpace>>,
) -> Result<Arc<dyn Store>, AppError> {
    match open(config, Arc::clone(clock), space).await {
        Err(error) if is_leased(&error) => {
            tracing::warn!(why = error.report(), "this gateway starts as a standby");
            follow(config, clock).await
        }
        opened => opened,
    }
}

/// Whether another gateway has the database.
fn is_leased(error: &AppError) -> bool {
    let AppError::Run { source, .. } = error else { return false };
    matches!(source.downcast_ref(), Some(StoreError::Leased { .. }))
}

async fn follow(config: &Config, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Store>, AppError> {
    let what = "the store of another gateway could not be followed";
    let Some(LastingStore::Postgres(request)) = disk::request(config)? else {
        return Err(AppError::run(what, StoreError::Closed));
    };
    let mut tries = 1;
    loop {
        let (request, clock) = (request.clone(), Arc::clone(clock));
        let following = move || EmbeddedStore::follow_on_postgres(request, clock);
        let followed = tokio::task::spawn_blocking(following).await;
        match followed.map_err(|error| AppError::run(what, error))? {
            Ok(store) => return Ok(Arc::new(store)),
            // The other one may be about to make its tables, or to begin to write.
            Err(StoreError::Io { .. } | StoreError::Leased { .. }) if tries < FOLLOW_TRIES.0 => {
                tries += 1;
            }
            Err(error) => return Err(AppError::run(what, error)),
        }
        tokio::time::sleep(FOLLOW_TRIES.1).await;
    }
}

/// For how long connections that were accepted may still ask, before the one role ends.
const LAST_REQUESTS: Duration = Duration::from_millis(200);

/// What another role goes on with, where there may be another: the sockets stay open between the two, so that
/// nobody who connects meanwhile is refused.
pub(super) fn kept(
    config: &Config,
    outside: &Outside,
    (listener, operators): (&TcpListener, Option<&TcpListener>),
) -> Result<Option<Outside>, AppError> {
    if config.store.kind != StoreKind::Postgres {
        return Ok(None);
    }
    let twice = |listener: &TcpListener| {
        let socket = listener.as_fd().try_clone_to_owned().map(std::net::TcpListener::from);
        socket.map(Arc::new).map_err(|error| AppError::run("a socket could not be kept", error))
    };
    Ok(Some(Outside {
        listener: Some(twice(listener)?),
        admin_listener: operators.map(twice).transpose()?,
        ..outside.clone()
    }))
}

impl Gateway {
    /// Whether another gateway has the feeds, and this one answers readers.
    pub const fn is_standby(&self) -> bool {
        self.is_standby
    }

    /// Whether it is to go on as the other: a standby whose gateway is gone, or a gateway that has lost its
    /// database to another one.
    pub async fn may_change_role(&self) -> bool {
        if !self.is_standby && !self.store.answers_from_memory() {
            // A gateway that was paused learns whether it still has the feeds.
            let _ = self.store.catch_up().await;
        }
        let is_gone = || self.store.condition().owner.map(|owner| owner.is_gone);
        match is_gone() {
            Some(_) if self.kept.is_none() => false,
            // As of now, and only where the database answers: taking it would wait for that.
            Some(true) if self.is_standby => {
                self.store.catch_up().await.is_ok() && is_gone() == Some(true)
            }
            Some(_) => !self.is_standby,
            None => false,
        }
    }

    /// Goes on as the other one. A standby takes the database first, while it answers readers; where another
    /// standby was sooner, it stays what it is.
    pub async fn change_role(self, config: &Config) -> Result<Self, AppError> {
        let Some(outside) = self.kept.clone() else { return Ok(self) };
        let mut taken = None;
        if self.is_standby {
            match open(config, Arc::clone(&outside.clock), outside.space.clone()).await {
                Ok(store) => taken = Some(store),
                Err(error) => {
                    tracing::warn!(why = error.report(), "this standby could not take over");
                    return Ok(self);
                }
            }
        }
        // Who has connected is answered, who connects from now on waits for the other role.
        self.accepting.cancel();
        tokio::time::sleep(LAST_REQUESTS).await;
        // It lost its store, or had none.
        if let Err(error) = self.end().await {
            tracing::warn!(why = error.report(), "what went on until now ended badly");
        }
        let store = match taken {
            Some(store) => store,
            // The other one may have ended as well.
            None => match follow(config, &outside.clock).await {
                Ok(store) => store,
                Err(_) => open_or_follow(config, &outside.clock, None).await?,
            },
        };
        let gateway = Self::start_over(config, outside, store).await?;
        let is_standby = gateway.is_standby;
        tracing::warn!(is_standby, "this gateway goes on in another role");
        Ok(gateway)
    }
}
