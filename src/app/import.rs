//! `tidegate import FILE`: the feeds of a subscription list, or the whole state of a gateway, into a
//! store that no gateway has open.

mod state;

pub use tidegate_serve::LeftOutCredentials;

use super::disk::{self, LastingStore};
use super::export::is_in_use;
use super::{AppError, ConfigSource, ErrorContext, GatewayOptions, RunningGateway};
use http::Method;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegate_config::Config;
use tidegate_core::clock::{Clock, SystemClock};
use tidegate_core::model::{FeedRecord, Time};
use tidegate_format::parse::opml::BYTES_LIMIT;
use tidegate_serve::{ExistingFeeds, ImportedList, LIST_LIMIT, decide, read_list};
use tidegate_store::Store;
use tidegate_store::portable::MAGIC;

/// What an import did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Imported {
    /// The feeds of a list were added.
    List {
        done: ImportedList,
        /// The data folder that has them, where no gateway runs with it.
        waits_in: Option<PathBuf>,
    },
    /// The state of a gateway was brought in.
    State(ImportedState),
}

/// What a file with the state of a gateway holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportedState {
    /// How many feeds.
    pub feeds: u64,
    /// How many items, tombstones included.
    pub items: u64,
    /// The bytes of the file.
    pub bytes: u64,
    /// The feeds whose credentials the file does not have.
    pub left_out: LeftOutCredentials,
}

/// Brings a file in. A list goes to the gateway that is named, or that runs with the store.
pub async fn import_to(
    file: &Path,
    rearrange: bool,
    gateway: &GatewayOptions,
) -> Result<Imported, AppError> {
    if gateway.gateway.is_some() {
        if is_state(file)? {
            let said = "a state is brought into the store of a gateway that is stopped: leave out --gateway";
            return Err(AppError::Input(said.to_owned()));
        }
        return import_running(file, rearrange, gateway).await;
    }
    match import(file, &gateway.settings(), rearrange, Arc::new(SystemClock)).await {
        Err(error) if is_in_use(&error) && !is_state(file)? => {
            import_running(file, rearrange, gateway)
                .await
                .context("the gateway that runs with this store was to take it")
        }
        done => done,
    }
}

/// Has a gateway that runs take the feeds of a list.
async fn import_running(
    file: &Path,
    rearrange: bool,
    gateway: &GatewayOptions,
) -> Result<Imported, AppError> {
    let list = read_bounded(file, LIST_LIMIT).map_err(|error| unreadable(file, &error))?;
    if list.len() > LIST_LIMIT {
        return Err(AppError::Input(format!(
            "{} has more than {LIST_LIMIT} bytes, which is the most that a gateway takes that runs; stop it first",
            file.display()
        )));
    }
    let pairs: &[(&str, &str)] = if rearrange { &[("rearrange", "true")] } else { &[] };
    let gateway = RunningGateway::find(gateway)?;
    let body = Some(("text/x-opml", list));
    let answer = gateway.open(Method::POST, ("/import", pairs), body).await?;
    let done = gateway.value(answer).await?;
    Ok(Imported::List { done, waits_in: None })
}

/// Whether a file has the state of a gateway.
fn is_state(file: &Path) -> Result<bool, AppError> {
    let mut head = Vec::new();
    let limit = u64::try_from(MAGIC.len()).unwrap_or(u64::MAX);
    let opened = std::fs::File::open(file).and_then(|file| file.take(limit).read_to_end(&mut head));
    opened.map_err(|error| unreadable(file, &error))?;
    Ok(head == MAGIC)
}

/// Brings a file in that has a list or a state, where no gateway has the store open. `rearrange`: the list says where its
/// feeds stand, also where they have a place already.
pub async fn import(
    file: &Path,
    settings: &ConfigSource,
    rearrange: bool,
    clock: Arc<dyn Clock>,
) -> Result<Imported, AppError> {
    let config = settings.load()?.config;
    if is_state(file)? {
        if rearrange {
            let said =
                "{} holds a state, which has folders and order of its own; leave out --rearrange";
            return Err(AppError::Input(said.replace("{}", &file.display().to_string())));
        }
        return state::bring_in(file, &config, clock).await.map(Imported::State);
    }
    list(file, &config, rearrange, clock.now()).await
}

fn unreadable(file: &Path, error: &std::io::Error) -> AppError {
    AppError::Input(format!("{} cannot be read: {error}", file.display()))
}

/// The store of a configuration; one in memory is no place to bring anything to.
pub(super) fn lasting(config: &Config) -> Result<LastingStore, AppError> {
    disk::request(config)?.ok_or_else(|| {
        AppError::Input(
            "store.kind is \"memory\", so nothing would be left of it; name a folder with --data and a configuration without store.kind".to_owned(),
        )
    })
}

/// Opens the store of a configuration.
pub(super) async fn open(config: &Config) -> Result<Arc<Store>, AppError> {
    lasting(config)?;
    disk::open(config, Arc::new(SystemClock), disk::watched(config, None)).await
}

async fn list(
    file: &Path,
    config: &Config,
    rearrange: bool,
    now: Time,
) -> Result<Imported, AppError> {
    let bytes = read_bounded(file, BYTES_LIMIT).map_err(|error| unreadable(file, &error))?;
    let list = read_list(&bytes, BYTES_LIMIT).map_err(|why| {
        let file = file.display();
        AppError::Input(format!("{file}: {why}; and it is no state of a gateway"))
    })?;
    let store = open(config).await?;
    store.condition().check_intake().context("the list was not imported")?;
    let stored = store.feed_list().await.context("the feeds could not be read")?;
    let records: Vec<Arc<FeedRecord>> = stored.values().cloned().collect();
    let endpoint = store.endpoint();
    let before = ExistingFeeds { stored: &records, config, endpoint, now, rearrange, rules: None };
    let plan = decide(&list, &before);
    let written = store.put_feeds(&plan.changed(), &stored).await;
    let closed = store.close().await;
    written.map_err(|error| {
        let failed = "the feeds could not be stored, or not all; the list can be imported again";
        AppError::run(failed, error)
    })?;
    closed.context("the store could not be closed")?;
    let waits_in = disk::on_disk(config).map(|_| config.store.path.clone());
    Ok(Imported::List { done: plan.done, waits_in })
}

/// What a file has, and of one that is longer than `limit` one byte more, so that it is seen to be.
pub fn read_bounded(file: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    std::fs::File::open(file)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
