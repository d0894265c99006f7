//! `tidegate serve`: runs until it is told to stop.

use super::{
    AppError, ConfigSource, Gateway, Outside, ServeOptions, demand_public_url, find_externals,
    polled_twice,
};
use crate::config::{Checked, Fault};
use std::io::Write;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How often it is looked at whether serving goes on.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// Runs the gateway until SIGTERM or SIGINT; SIGHUP reads the configuration again.
pub async fn serve(options: ServeOptions) -> Result<(), AppError> {
    let checked = options.settings.load()?;
    warn(&checked.warnings);
    find_externals(&checked)?;
    demand_public_url(&checked.config.server)?;
    for sentence in polled_twice(&checked.config) {
        tracing::warn!("{sentence}");
    }
    let mut signals = Signals::new()?;
    let gateway = Gateway::start(&checked.config, Outside::default()).await?;
    announce(&format!("listening on http://{}", gateway.address()))?;
    if let Some(own) = gateway.admin_address() {
        announce(&format!("administration on http://{own}"))?;
    }
    // From here on the store has the feeds.
    drop(checked);
    run(gateway, &mut signals, &options.settings, std::future::pending()).await
}

/// Waits for signals, or until what is done beside it fails, and ends the gateway in order.
pub(super) async fn run(
    gateway: Gateway,
    signals: &mut Signals,
    settings: &ConfigSource,
    beside: impl Future<Output = Result<(), AppError>>,
) -> Result<(), AppError> {
    let mut beside = std::pin::pin!(beside);
    let ended = loop {
        tokio::select! {
            _ = signals.terminate.recv() => break Ok(()),
            _ = signals.interrupt.recv() => break Ok(()),
            ended = &mut beside => break ended,
            _ = signals.hangup.recv() => reload(&gateway, settings).await,
            () = tokio::time::sleep(WATCH_EVERY) => {
                if gateway.has_failed() {
                    break Ok(());
                }
            }
        }
    };
    tracing::info!("stopping");
    gateway.stop().await.and(ended)
}

/// Reads the configuration again; a wrong one changes nothing.
async fn reload(gateway: &Gateway, settings: &ConfigSource) {
    let taken = match settings.load().and_then(|checked| find_externals(&checked).map(|()| checked))
    {
        Ok(Checked { config, warnings, .. }) => {
            warn(&warnings);
            gateway.reload(&config).await
        }
        Err(error) => Err(error),
    };
    match taken {
        Ok(restart) if restart.is_empty() => tracing::info!("the configuration was read again"),
        Ok(restart) => {
            let sections = restart.join(", ");
            tracing::warn!(
                sections,
                "the configuration was read again; changes in these sections need a restart"
            );
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

fn warn(warnings: &[Fault]) {
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
        let listen = |kind| {
            signal(kind).map_err(|error| AppError::run("signals cannot be listened for", error))
        };
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }
}
