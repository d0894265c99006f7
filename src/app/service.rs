//! The service manager (systemd): sockets that it opened, and what it is told of the gateway.

use super::{AppError, Gateway};
use listenfd::ListenFd;
use sd_notify::NotifyState;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tidegate_store::Store;
use tokio::time::{sleep, timeout};

/// The store is asked so many times in the time that the watchdog allows, and has as long to answer: the
/// watchdog is told after half of that time at the latest.
const BEATS: u32 = 4;

/// The socket that the service manager opened for this process (`LISTEN_FDS`), where it did.
pub(super) fn listener() -> Result<Option<TcpListener>, AppError> {
    let mut given = ListenFd::from_env();
    match given.len() {
        0 => Ok(None),
        1 => given.take_tcp_listener(0).map_err(|error| {
            AppError::Input(format!(
                "the socket that was handed over (LISTEN_FDS) is none of TCP: {error}; write \
                 ListenStream= with an address and a port in the socket unit"
            ))
        }),
        many => Err(AppError::Input(format!(
            "{many} sockets were handed over (LISTEN_FDS), and the gateway listens on one; write one \
             ListenStream= in the socket unit"
        ))),
    }
}

/// Tells the service manager, where there is one (`NOTIFY_SOCKET`), that the gateway answers, where, and with how many
/// feeds.
pub(super) async fn tell_ready(gateway: &Gateway) {
    let feeds = gateway.store().feed_list().await.map_or(0, |feeds| feeds.len());
    let status = format!("listening on {}, {feeds} feeds", gateway.origin());
    tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
}

/// Tells it that the configuration is read again.
pub(super) fn tell_reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "the monotonic clock could not be read"),
    }
}

/// Tells it that the gateway ends.
pub(super) fn tell_stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
}

/// Tells its watchdog, where it has one, for as long as tasks run in time and the store answers. A store that says why it
/// cannot do something has answered: it opens again by itself, and a restart would help nobody.
pub(super) async fn feed_watchdog(store: Arc<Store>) {
    let Some(allowed) = sd_notify::watchdog_enabled() else { return };
    let pause = allowed / BEATS;
    loop {
        match answers(store.running_time(), pause).await {
            true => tell(&[NotifyState::Watchdog]),
            false => tracing::error!(
                waited = ?pause,
                "the store does not answer; the service manager is told nothing until it does"
            ),
        }
        sleep(pause).await;
    }
}

/// Whether an answer of any kind comes in time.
async fn answers(asking: impl Future, within: Duration) -> bool {
    timeout(within, asking).await.is_ok()
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager could not be told");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_store::StoreError;

    const WITHIN: Duration = Duration::from_secs(15);

    #[tokio::test(start_paused = true)]
    async fn a_store_that_says_why_not_has_answered_and_one_that_hangs_has_not() {
        assert!(answers(async { Err::<(), _>(StoreError::Closed) }, WITHIN).await);
        assert!(answers(sleep(WITHIN / 2), WITHIN).await);
        assert!(!answers(std::future::pending::<()>(), WITHIN).await);
        assert!(!answers(sleep(WITHIN * 2), WITHIN).await);
    }
}
