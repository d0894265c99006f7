//! Which store a configuration asks for: one on disk, or one in PostgreSQL.

use super::AppError;
use std::sync::Arc;
use tidegate_config::{Config, StoreKind};
use tidegate_core::clock::Clock;
use tidegate_core::model::{EndpointId, SupIdBasis};
use tidegate_net::fetch;
use tidegate_store::{DiskRequest, EmbeddedStore, PostgresRequest, StoreError, make_data_folder};

/// Whether anything outlives the process.
pub(super) fn keeps(config: &Config) -> bool {
    config.store.kind != StoreKind::Memory
}

/// What is asked of the store on disk; `None` where there is none.
pub(super) fn on_disk(config: &Config) -> Option<DiskRequest> {
    let endpoint = config.publish.endpoint.clone();
    let is_on_disk = config.store.kind == StoreKind::Sled;
    is_on_disk.then(|| DiskRequest::new(&config.store.path, endpoint))
}

/// A store that outlives the process, and that is to be opened.
#[derive(Debug, Clone)]
pub(super) enum LastingStore {
    Disk(DiskRequest),
    Postgres(PostgresRequest),
}

/// The store of a configuration; `None` where everything is kept in memory.
pub(super) fn request(config: &Config) -> Result<Option<LastingStore>, AppError> {
    if let Some(request) = on_disk(config) {
        return Ok(Some(LastingStore::Disk(request)));
    }
    let Some(url) = config.store.url.as_ref().filter(|_| keeps(config)) else { return Ok(None) };
    let url =
        fetch::find_secret(url).map_err(|why| AppError::Input(format!("store.url: {why}")))?;
    // It has only what is this machine's.
    make_data_folder(&config.store.path).map_err(|error| {
        AppError::run(format!("{} cannot be made", config.store.path.display()), error)
    })?;
    let endpoint = config.publish.endpoint.clone();
    Ok(Some(LastingStore::Postgres(PostgresRequest::new(&url, endpoint))))
}

impl LastingStore {
    /// For a new store that takes the place of another.
    pub(super) fn in_place_of(mut self, endpoint: EndpointId, sup_ids: SupIdBasis) -> Self {
        let (own, basis) = match &mut self {
            Self::Disk(request) => (&mut request.endpoint, &mut request.sup_ids),
            Self::Postgres(request) => (&mut request.endpoint, &mut request.sup_ids),
        };
        (*own, *basis) = (Some(endpoint), Some(sup_ids));
        self
    }

    /// Opens it. Blocks.
    pub(super) fn open(self, clock: Arc<dyn Clock>) -> Result<EmbeddedStore, StoreError> {
        match self {
            Self::Disk(request) => EmbeddedStore::open_on_disk(request, clock),
            Self::Postgres(request) => EmbeddedStore::open_on_postgres(request, clock),
        }
    }
}
