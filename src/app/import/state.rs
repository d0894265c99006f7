//! The whole state of a gateway from a file: proved whole first, written to a store of its own within the data folder,
//! and put in its place only then. A database is filled in its place, and not opened before it has all.

use super::{ImportedState, lasting, unreadable};
use crate::app::disk::{self, LastingStore};
use crate::app::error::{blocking, joined};
use crate::app::export::{ProvedState, prove, sync_folder};
use crate::app::{AppError, ErrorContext};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegate_config::Config;
use tidegate_core::clock::Clock;
use tidegate_serve::LeftOutCredentials;
use tidegate_store::portable::{ExportHead, ExportReader, ImportMessage, PortableError};
use tidegate_store::{DiskRequest, FreshStore, Store, is_vacant};
use tokio::sync::mpsc;

/// How many pieces wait to be stored, each as large as an entry or a document may be.
const WAITING: usize = 1;
/// What failed where a state is proved good and does not come in.
const UNSTORED: &str = "the state could not be stored";

/// Brings the state of a gateway into the folder of the configuration.
pub(super) async fn bring_in(
    file: &Path,
    config: &Config,
    clock: Arc<dyn Clock>,
) -> Result<ImportedState, AppError> {
    let request = lasting(config)?;
    let wrong =
        |error: &dyn std::fmt::Display| AppError::Input(format!("{}: {error}", file.display()));
    if let LastingStore::Disk(DiskRequest { path, .. }) = &request {
        if !is_vacant(path).map_err(|error| unreadable(path, &error))? {
            let said = "has a store or something else in it already; move that away, or name a folder that is empty or not there with --data";
            return Err(AppError::Input(format!("{} {said}", path.display())));
        }
        disk::check_owner(path)?;
    }
    let path = file.to_owned();
    let proved = tokio::task::spawn_blocking(move || prove(&path))
        .await
        .context("the file could not be read")?;
    let ProvedState { head, state } = proved.map_err(|error| wrong(&error))?;
    let endpoint = &head.endpoint;
    if let Some(wanted) = config.publish.endpoint.as_ref().filter(|wanted| *wanted != endpoint) {
        let said = format!(
            "it is the state of the endpoint {endpoint}, and publish.endpoint says {wanted}; an endpoint id cannot change once it was used"
        );
        return Err(wrong(&said));
    }
    let ExportHead { endpoint, sup_ids } = head;
    match request.in_place_of(endpoint, sup_ids) {
        LastingStore::Disk(request) => {
            let (target, min_free) = (request.path.clone(), config.store.space.min_free);
            let (fresh, store) =
                blocking(UNSTORED, move || FreshStore::begin(request, min_free, clock)).await?;
            let filled = fill(file.to_owned(), store).await;
            let is_whole = filled.is_ok();
            blocking(UNSTORED, move || match is_whole {
                true => fresh.put_in_place(),
                false => {
                    fresh.discard();
                    Ok(())
                }
            })
            .await?;
            // The folder's files are durable; that its name is as well cannot be had everywhere.
            let _ = sync_folder(&target);
            filled?;
        }
        request @ LastingStore::Postgres(_) => {
            let store = blocking(UNSTORED, move || request.open(clock)).await?;
            if let Err(error) = disk::check_alone(&store) {
                let _ = store.close().await;
                return Err(error);
            }
            fill(file.to_owned(), store).await?;
        }
    }
    Ok(state)
}

/// Fills an empty store, and closes it.
async fn fill(file: PathBuf, store: Store) -> Result<(), AppError> {
    let (sender, pieces) = mpsc::channel(WAITING);
    let reading = tokio::task::spawn_blocking(move || read(&file, &sender));
    let brought = store.import(pieces, true).await;
    let closed = store.close().await;
    // Where the file could not be read, that is why the rest broke off.
    joined(UNSTORED, reading.await)?;
    brought.context(UNSTORED)?;
    closed.context(UNSTORED)
}

/// Sends the pieces on, and then that these were all. After an error
/// the end is not sent: what was taken in so far is no whole state.
fn read(file: &Path, to: &mpsc::Sender<ImportMessage>) -> Result<(), PortableError> {
    let mut reader = ExportReader::open(File::open(file)?)?;
    let mut left_out = LeftOutCredentials::default();
    while let Some(mut piece) = reader.next_piece()? {
        left_out.note(&mut piece);
        if to.blocking_send(ImportMessage::Record(piece)).is_err() {
            return Ok(());
        }
    }
    // Who does not take it any more says why.
    let _ = to.blocking_send(ImportMessage::End);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::testing::record;
    use tidegate_core::model::{EndpointId, SupIdBasis};
    use tidegate_store::portable::{ExportRecord, ExportWriter};

    /// What is sent of a file, and whether it was read to its end.
    fn messages(bytes: &[u8]) -> (Vec<ImportMessage>, bool) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gateway.tg");
        std::fs::write(&file, bytes).unwrap();
        let (sender, mut receiver) = mpsc::channel(8);
        let is_whole = read(&file, &sender).is_ok();
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
        let head = ExportHead { endpoint, sup_ids: SupIdBasis::Name };
        let mut writer = ExportWriter::new(Vec::new(), head).unwrap();
        for feed in ["a", "b"] {
            writer.put(ExportRecord::Feed(Box::new(record(feed)))).unwrap();
        }
        let (_, whole) = writer.finish().unwrap();
        let (sent, is_whole) = messages(&whole);
        assert!(is_whole && sent.len() == 3, "{sent:?}");
        assert_eq!(sent.last(), Some(&ImportMessage::End));
        let (sent, is_whole) = messages(&whole[..whole.len() - 1]);
        assert!(!is_whole && !sent.contains(&ImportMessage::End), "{sent:?}");
    }
}
