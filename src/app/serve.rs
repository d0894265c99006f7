//! `tidegate serve`: runs until it is told to stop.

use super::{AppError, ConfigSource, ErrorContext, Gateway, Outside, service, startup};
use std::fmt::Display;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::{Config, StoreKind};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How often it is looked at whether serving goes on.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// Runs the gateway until SIGTERM or SIGINT; SIGHUP reads the configuration again.
pub async fn serve(mut settings: ConfigSource) -> Result<(), AppError> {
    let listener = service::listener()?;
    if let Some(listener) = &listener {
        settings.listen_on(listener)?;
    }
    let checked = startup::load(&settings)?;
    warn(startup::warnings(&checked));
    let mut signals = Signals::new()?;
    let outside = Outside { listener: listener.map(Arc::new), ..Outside::default() };
    let gateway = Gateway::start(&checked.config, outside).await?;
    tell_of_start(&gateway, &settings, &checked.config).await;
    announce(&format!("listening on {}", gateway.origin()))?;
    if let Some(own) = gateway.admin_address() {
        announce(&format!("administration on http://{own}"))?;
    }
    // From here on the store has the feeds.
    drop(checked);
    run(gateway, &mut signals, &settings, std::future::pending()).await
}

/// Logs what was started with what, in one line.
async fn tell_of_start(gateway: &Gateway, settings: &ConfigSource, config: &Config) {
    let feeds = gateway.store().feed_list().await.map_or(0, |feeds| feeds.len());
    let (kind, data) = match config.store.kind {
        StoreKind::Memory => ("memory", "none".to_owned()),
        // Its address may have a password.
        StoreKind::Postgres => ("postgres", "a database".to_owned()),
        kind => (kind.name(), config.store.path.display().to_string()),
    };
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        config = settings.file().map_or_else(|| "none".to_owned(), |file| file.display().to_string()),
        feeds,
        store = kind,
        data,
        listen = %gateway.origin(),
        "the gateway has started"
    );
}

/// Waits for signals, or until what is done beside it fails, and ends the gateway in order.
pub(super) async fn run(
    mut gateway: Gateway,
    signals: &mut Signals,
    settings: &ConfigSource,
    beside: impl Future<Output = Result<(), AppError>>,
) -> Result<(), AppError> {
    let mut beside = std::pin::pin!(beside);
    service::tell_ready(&gateway).await;
    let watchdog = tokio::spawn(service::feed_watchdog(Arc::clone(gateway.store())));
    let ended = loop {
        tokio::select! {
            _ = signals.terminate.recv() => break Ok(()),
            _ = signals.interrupt.recv() => break Ok(()),
            ended = &mut beside => break ended,
            _ = signals.hangup.recv() => {
                service::tell_reloading();
                reload(&mut gateway, settings).await;
                service::tell_ready(&gateway).await;
            }
            () = tokio::time::sleep(WATCH_EVERY) => {
                if gateway.has_failed() {
                    break Ok(());
                }
            }
        }
    };
    tracing::info!("stopping");
    service::tell_stopping();
    let stopped = gateway.stop().await;
    watchdog.abort();
    stopped.and(ended)
}

/// Reads the configuration again; a wrong one changes nothing.
async fn reload(gateway: &mut Gateway, settings: &ConfigSource) {
    let taken = match startup::load(settings) {
        Ok(checked) => gateway.reload(&checked.config).await.map(|kept| (checked, kept)),
        Err(error) => Err(error),
    };
    match taken {
        Ok((checked, kept)) => {
            warn(checked.warnings.iter().chain(&checked.restart_warnings(&kept)));
            tracing::info!(restart = kept.len(), "the configuration was read again");
        }
        Err(error) => {
            tracing::error!(
                error = error.report(),
                "the configuration was not taken; all stays as it was"
            );
        }
    }
}

/// Prints a line on standard output.
pub(super) fn announce(text: &str) -> Result<(), AppError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(AppError::output)
}

fn warn(warnings: impl IntoIterator<Item = impl Display>) {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
}

/// The signals that the gateway obeys.
pub(super) struct Signals {
    pub(super) terminate: Signal,
    pub(super) interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Begins to listen; before anything is started, so that none is missed.
    pub(super) fn new() -> Result<Self, AppError> {
        let listen = |kind| signal(kind).context("signals cannot be listened for");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }
}
