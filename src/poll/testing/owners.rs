//! Several gateways on one store.

use std::sync::Arc;
use std::time::Duration;
use tidegate_store::{GatewayId, Gateways, KnownGateway};

/// Creates one gateway's view of all; once confirmed, its liveness lasts as long as any test.
pub fn gateway(id: i64) -> Arc<Gateways> {
    Arc::new(Gateways::new(GatewayId(id), Duration::from_secs(10)))
}

/// Confirms to these gateways that they, and no others, are live.
pub fn live(all: &[&Arc<Gateways>]) {
    for this in all {
        let known = all.iter().map(|it| KnownGateway {
            id: it.id(),
            name: format!("gateway {}", it.id().0),
            is_this: it.id() == this.id(),
            polls: true,
            ..KnownGateway::default()
        });
        this.confirm(Duration::MAX, known.collect());
    }
}
