//! The whole state of a gateway from a file: proved whole first, written to a fresh folder, and
//! given its name only then. A database is filled in its place, and not opened before it has all.

use super::{ImportedState, LeftOutCredentials, lasting, unreadable};
use crate::app::AppError;
use crate::app::disk::LastingStore;
use crate::app::export::sync_folder;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Config;
use tidegate_core::clock::Clock;
use tidegate_core::model::Time;
use tidegate_store::portable::{
    Copying, ExportHead, ExportReader, ExportTotals, ImportMessage, PortableError,
};
use tidegate_store::{DiskRequest, FreeSpace, Store, StoreError};
use tokio::sync::mpsc;

/// How many pieces wait to be stored.
const WAITING: usize = 64;
/// What may stand in a folder that is taken for empty: the token of a gateway that never stored.
const TOKEN: &str = "admin-token";
/// How long this process claims the store that it fills.
const CLAIM: Duration = Duration::from_secs(3600);

/// Brings the state of a gateway into the folder of the configuration.
pub(super) async fn bring_in(
    file: &Path,
    config: &Config,
    clock: Arc<dyn Clock>,
) -> Result<ImportedState, AppError> {
    let request = lasting(config)?;
    let wrong =
        |error: &dyn std::fmt::Display| AppError::Input(format!("{}: {error}", file.display()));
    if let LastingStore::Disk(request) = &request {
        free(&request.path)?;
    }
    let (head, known) = proved(file.to_owned()).await?.map_err(|error| wrong(&error))?;
    let endpoint = &head.endpoint;
    if let Some(wanted) = config.publish.endpoint.as_ref().filter(|wanted| *wanted != endpoint) {
        let said = format!(
            "it is the state of the endpoint {endpoint}, and publish.endpoint says {wanted}; an endpoint id cannot change once it was used"
        );
        return Err(wrong(&said));
    }
    let (totals, left_out) = match request {
        LastingStore::Disk(request) => {
            fill_folder(file, config, request, (head, known), clock).await?
        }
        request @ LastingStore::Postgres(_) => {
            fill(file.to_owned(), request, head, (known, None), clock).await?
        }
    };
    let bytes = std::fs::metadata(file).map(|data| data.len()).unwrap_or_default();
    Ok(ImportedState { feeds: totals.feeds, items: totals.items, bytes, left_out })
}

/// Fills a fresh folder, and gives it its name.
async fn fill_folder(
    file: &Path,
    config: &Config,
    request: DiskRequest,
    (head, known): (ExportHead, Time),
    clock: Arc<dyn Clock>,
) -> Result<(ExportTotals, LeftOutCredentials), AppError> {
    let target = request.path.clone();
    let fresh = beside(&target);
    std::fs::create_dir_all(&fresh)
        .map_err(|error| AppError::run(format!("{} cannot be made", fresh.display()), error))?;
    let space = Arc::new(FreeSpace::of_folder(fresh.clone(), config.store.min_free));
    let request = LastingStore::Disk(DiskRequest { path: fresh.clone(), ..request });
    let filled = fill(file.to_owned(), request, head, (known, Some(space)), clock).await;
    let filled = match filled {
        Ok(filled) => put_in_place(&fresh, &target).map(|()| filled),
        Err(error) => Err(error),
    };
    // What was written there is of no use to anybody.
    filled.inspect_err(|_| drop(std::fs::remove_dir_all(&fresh)))
}

/// Refuses a folder that has anything in it but a token.
fn free(target: &Path) -> Result<(), AppError> {
    let entries = match std::fs::read_dir(target) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unreadable(target, &error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(target, &error))?;
        if entry.file_name() != TOKEN {
            let said = format!(
                "{} has a store or something else in it already; name a folder that is empty or not there with --data",
                target.display()
            );
            return Err(AppError::Input(said));
        }
    }
    Ok(())
}

fn beside(target: &Path) -> PathBuf {
    let mut name = target.components().as_path().as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    PathBuf::from(name)
}

/// Reads a file from beginning to end: its head, and the last moment that it knows of.
async fn proved(file: PathBuf) -> Result<Result<(ExportHead, Time), PortableError>, AppError> {
    let reading = tokio::task::spawn_blocking(move || {
        let mut reader = ExportReader::open(File::open(file)?)?;
        let mut known = Time::from_unix(0);
        while let Some(piece) = reader.next_piece()? {
            known = piece.latest().map_or(known, |latest| known.max(latest));
        }
        Ok((reader.head().clone(), known))
    });
    reading.await.map_err(|error| AppError::run("the file could not be read", error))
}

async fn fill(
    file: PathBuf,
    request: LastingStore,
    head: ExportHead,
    (known, space): (Time, Option<Arc<FreeSpace>>),
    clock: Arc<dyn Clock>,
) -> Result<(ExportTotals, LeftOutCredentials), AppError> {
    let failed = "the state could not be stored";
    let now = clock.now();
    let is_move = head.is_move;
    let opened = tokio::task::spawn_blocking(move || {
        let ExportHead { endpoint, sup_ids, .. } = head;
        let store = request.in_place_of(endpoint, sup_ids).open(clock)?;
        Ok::<_, StoreError>(match space {
            Some(space) => store.with_space(space),
            None => store,
        })
    });
    let opened = opened.await.map_err(|error| AppError::run(failed, error))?;
    let store = opened.map_err(|error| AppError::run(failed, error))?;
    let (sender, pieces) = mpsc::channel(WAITING);
    let copying = (!is_move).then(|| Copying::new(known, now));
    let reading = tokio::task::spawn_blocking(move || read(&file, &sender, copying));
    let brought = match store.claims(1, CLAIM).await {
        Ok(claims) => match claims.first() {
            Some(claim) => store.import(claim, pieces).await,
            None => {
                drop(pieces);
                Ok(())
            }
        },
        Err(error) => Err(error.into()),
    };
    let closed = store.close().await;
    let read = reading.await.map_err(|error| AppError::run(failed, error))?;
    // Where the file could not be read, that is why the rest broke off.
    let read = read.map_err(|error| AppError::run(failed, error))?;
    brought.map_err(|error| AppError::run(failed, error))?;
    closed.map_err(|error| AppError::run(failed, error))?;
    Ok(read)
}

/// Sends the pieces on, where they make a copy as that has them, and then that these were all. After an error
/// the end is not sent: what was taken in so far is no whole state.
fn read(
    file: &Path,
    to: &mpsc::Sender<ImportMessage>,
    mut copying: Option<Copying>,
) -> Result<(ExportTotals, LeftOutCredentials), PortableError> {
    let mut reader = ExportReader::open(File::open(file)?)?;
    let mut left_out = LeftOutCredentials::default();
    while let Some(mut piece) = reader.next_piece()? {
        left_out.note(&mut piece);
        let piece = match &mut copying {
            Some(copying) => copying.piece(piece),
            None => piece,
        };
        if to.blocking_send(ImportMessage::Record(piece)).is_err() {
            return Ok((reader.totals(), left_out));
        }
    }
    for piece in copying.into_iter().flat_map(Copying::end) {
        if to.blocking_send(ImportMessage::Record(piece)).is_err() {
            break;
        }
    }
    // Who does not take it any more says why.
    let _ = to.blocking_send(ImportMessage::End);
    Ok((reader.totals(), left_out))
}

/// Gives the folder its name; a token that stands there stays.
fn put_in_place(fresh: &Path, target: &Path) -> Result<(), AppError> {
    let failed = |error: std::io::Error| {
        AppError::run(format!("{} could not be put in its place", fresh.display()), error)
    };
    let token = target.join(TOKEN);
    if token.exists() {
        std::fs::copy(&token, fresh.join(TOKEN)).map_err(failed)?;
        std::fs::remove_file(&token).map_err(failed)?;
    }
    if target.exists() {
        std::fs::remove_dir(target).map_err(failed)?;
    } else if let Some(parent) = target.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    std::fs::rename(fresh, target).map_err(failed)?;
    // The folder's files are durable; that its name is as well cannot be had everywhere.
    let _ = sync_folder(target);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::{EndpointId, FeedName, FeedRecord, FeedSource, SupIdBasis};
    use tidegate_store::portable::{ExportRecord, ExportWriter};

    /// What is sent of a file, and whether it was read to its end.
    fn messages(bytes: &[u8]) -> (Vec<ImportMessage>, bool) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gateway.tg");
        std::fs::write(&file, bytes).unwrap();
        let (sender, mut receiver) = mpsc::channel(WAITING);
        let is_whole = read(&file, &sender, None).is_ok();
        drop(sender);
        let mut sent = Vec::new();
        while let Some(message) = receiver.blocking_recv() {
            sent.push(message);
        }
        (sent, is_whole)
    }

    /// It was proved whole before; its disk may fail since.
    #[test]
    fn a_file_that_cannot_be_read_to_its_end_has_none() {
        let endpoint = EndpointId::own("gate.example").unwrap();
        let head = ExportHead { endpoint, sup_ids: SupIdBasis::Name, is_move: true };
        let mut writer = ExportWriter::new(Vec::new(), head).unwrap();
        for name in ["a", "b"] {
            let name = FeedName::new(name).unwrap();
            let record = FeedRecord::new(name, "https://example.org/feed", FeedSource::Api);
            writer.put(ExportRecord::Feed(Box::new(record))).unwrap();
        }
        let (_, whole) = writer.finish().unwrap();
        let (sent, is_whole) = messages(&whole);
        assert!(is_whole && sent.len() == 3, "{sent:?}");
        assert_eq!(sent.last(), Some(&ImportMessage::End));
        let (sent, is_whole) = messages(&whole[..whole.len() - 1]);
        assert!(!is_whole && !sent.contains(&ImportMessage::End), "{sent:?}");
    }
}
