//! `tidegate reincarnate`: a store that was restored from a copy becomes a new incarnation, in its place.

use super::disk::{self, LastingStore};
use super::import::{lasting, open};
use super::{AppError, ConfigSource, ErrorContext};
use std::time::Duration;
use tidegate_config::Config;
use tidegate_store::{Store, has_store, since_boot};
use tokio::time::sleep;

/// Makes the store of this configuration a new incarnation; how many feeds begin a new window.
pub async fn reincarnate(settings: ConfigSource) -> Result<usize, AppError> {
    let config = settings.load()?.config;
    check_store(&config).await?;
    let store = open(&config).await?;
    let done = restart(&store).await;
    let closed = store.close().await;
    let feeds = done?;
    closed.context("the store could not be closed")?;
    Ok(feeds)
}

/// An error where there is no store yet. None is made.
async fn check_store(config: &Config) -> Result<(), AppError> {
    let (has, place) = match lasting(config)? {
        LastingStore::Disk(request) => {
            disk::check_folder(&request.path)?;
            (has_store(&request.path), request.path.display().to_string())
        }
        LastingStore::Postgres(request) => {
            let has = request.has_store().await.map_err(disk::unopened)?;
            (has, "the database that store.url names".to_owned())
        }
    };
    let none = || AppError::Input(format!("there is no store in {place}; restore the copy first"));
    has.then_some(()).ok_or_else(none)
}

/// Restarts the feeds of a store that nobody else uses, from the first to the last.
async fn restart(store: &Store) -> Result<usize, AppError> {
    disk::check_alone(store)?;
    let feeds = store.reincarnate().await.context(
        "the store may be a new incarnation only in part; run the command again before a gateway starts with it",
    )?;
    if let Some(gateways) = store.gateways() {
        // Who lives is known as of a moment ago.
        let restarted = Some(since_boot());
        let asked = async {
            while gateways.confirmed() < restarted {
                sleep(ASKED_EVERY).await;
            }
        };
        let asked = tokio::time::timeout(gateways.lease(), asked).await;
        let alone = asked.context("the database does not say which gateways live");
        alone.and_then(|()| disk::check_alone(store)).context(
            "a gateway may have begun before the store was a new incarnation; stop all, and run the command again",
        )?;
    }
    Ok(feeds)
}

/// How often it is looked whether the database was asked who lives.
const ASKED_EVERY: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_config::StoreKind;
    use tidegate_core::model::{SecretSource, SecretText};
    use tidegate_store::testing::TestSchema;
    use tokio::time::timeout;

    fn config(folder: &tempfile::TempDir, kind: StoreKind) -> Config {
        let mut config = Config::default();
        config.store.kind = kind;
        config.store.path = folder.path().to_owned();
        config
    }

    async fn asked(config: &Config) -> Result<usize, AppError> {
        reincarnate(ConfigSource::Fixed(Box::new(config.clone()))).await
    }

    /// Why it is refused as what was given is wrong.
    async fn refused(config: &Config) -> String {
        match asked(config).await {
            Err(AppError::Input(said)) => said,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn where_no_store_is_none_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(&folder, StoreKind::Sled);
        for name in ["admin-token", "tidegate.toml"] {
            let said = refused(&config).await;
            assert!(said.starts_with("there is no store in /"), "{said}");
            std::fs::write(folder.path().join(name), "text").unwrap();
        }
        refused(&config).await;
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        open(&config).await.unwrap().close().await.unwrap();
        assert_eq!(asked(&config).await.unwrap(), 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_gateway_that_lives_is_in_the_way_on_postgres() {
        let Some(schema) = TestSchema::new() else { return };
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(&folder, StoreKind::Postgres);
        config.store.url = Some(SecretSource::Literal(SecretText::new(&schema.url).unwrap()));
        for _ in 0..2 {
            let said = refused(&config).await;
            assert!(said.starts_with("there is no store in the database"), "{said}");
        }
        let other = open(&config).await.unwrap();
        let said = refused(&config).await;
        assert!(said.contains("runs with this database"), "{said}");
        other.close().await.unwrap();
        drop(other);
        let alone = async {
            while asked(&config).await.is_err() {
                sleep(ASKED_EVERY).await;
            }
        };
        timeout(Duration::from_secs(30), alone).await.expect("it is never done");
    }
}
