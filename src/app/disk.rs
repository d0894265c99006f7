//! Which store on disk a configuration asks for.

use crate::config::{Config, StoreKind};
use crate::store::{DiskKind, DiskRequest};

/// The engine of the store on disk; `None` where everything is kept in memory.
pub(super) fn kind(config: &Config) -> Option<DiskKind> {
    match config.store.kind {
        StoreKind::Sled => Some(DiskKind::Sled),
        StoreKind::Fjall => Some(DiskKind::Fjall),
        StoreKind::Memory => None,
    }
}

/// What is asked of the store on disk; `None` where everything is kept in memory.
pub(super) fn request(config: &Config) -> Option<DiskRequest> {
    let endpoint = config.publish.endpoint.clone();
    kind(config).map(|kind| DiskRequest::new(kind, &config.store.path, endpoint))
}
