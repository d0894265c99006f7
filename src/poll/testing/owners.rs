//! Several gateways over one store.

use std::sync::Arc;
use std::time::Duration;
use tidegate_store::{GatewayId, Gateways, KnownGateway};

/// What one of them knows of all, which does not end within a test once it was told who lives.
pub fn gateway(id: i64) -> Arc<Gateways> {
    Arc::new(Gateways::new(GatewayId(id), Duration::from_secs(10)))
}

/// Tells gateways that they live, and no others do.
pub fn live(all: &[&Arc<Gateways>]) {
    for this in all {
        confirm(this, all, Duration::MAX);
    }
}

/// Tells one gateway who lives, as the database said at a time since the machine was started.
pub fn confirm(this: &Gateways, all: &[&Arc<Gateways>], asked: Duration) {
    let known = all.iter().map(|it| KnownGateway {
        id: it.id(),
        name: format!("gateway {}", it.id().0),
        is_this: it.id() == this.id(),
        polls: true,
        ..KnownGateway::default()
    });
    this.confirm(asked, known.collect());
}
