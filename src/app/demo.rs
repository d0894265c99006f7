//! `tidegate demo`: the gateway in front of a small publisher of its own.

use super::serve::{Signals, announce, run};
use super::{AppError, ConfigSource, DemoOptions, Gateway, Outside};
use crate::demo::{configuration, places, publisher};
use std::net::Ipv4Addr;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Runs the publisher and the gateway until SIGTERM or SIGINT.
pub async fn demo(options: DemoOptions) -> Result<(), AppError> {
    let mut signals = Signals::new()?;
    let unheard = |error| AppError::run("the demo's publisher cannot listen", error);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(unheard)?;
    let address = listener.local_addr().map_err(unheard)?;
    let shutdown = CancellationToken::new();
    let publishing = tokio::spawn(publisher(listener, options.every, shutdown.clone()));
    let config = configuration(address, options.listen, options.data);
    let gateway = Gateway::start(&config, Outside::default()).await?;
    let own = format!("http://{}", gateway.address());
    announce(&format!("listening on {own}\n\n{}", places(address, &own, options.every)))?;
    let settings = ConfigSource::Fixed(Box::new(config));
    let ended = run(gateway, &mut signals, &settings).await;
    shutdown.cancel();
    let published =
        publishing.await.map_err(|error| AppError::run("the demo's publisher failed", error))?;
    published.map_err(|error| AppError::run("the demo's publisher failed", error))?;
    ended
}
