//! The state of the gateway as a file, while it runs.

use super::{Operator, OperatorError};
use bytes::Bytes;
use std::error::Error;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedSource};
use tidegate_store::portable::{
    ExportHead, ExportRecord, ExportTotals, ExportWriter, PortableError,
};
use tidegate_store::{Store, in_words};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// How many records wait to be written, each as large as an entry or a document may be.
const RECORDS_WAITING: usize = 4;

/// How many bytes go out together, and how many such pieces wait.
const PIECE: usize = 64 * 1024;
const WAITING: usize = 4;
/// How long a piece may wait until it is taken: meanwhile a feed is kept as it was for who reads it.
const TAKEN_WITHIN: Duration = Duration::from_secs(60);

/// Writes to who takes piece by piece. To be used where blocking is allowed.
struct PieceWriter {
    piece: Vec<u8>,
    to: mpsc::Sender<io::Result<Bytes>>,
    within: Duration,
    runtime: Handle,
}

impl PieceWriter {
    fn new(to: mpsc::Sender<io::Result<Bytes>>) -> Self {
        let (piece, runtime) = (Vec::with_capacity(PIECE), Handle::current());
        Self { piece, to, within: TAKEN_WITHIN, runtime }
    }
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = PIECE.saturating_sub(self.piece.len()).min(bytes.len());
        self.piece.extend_from_slice(bytes.get(..fits).unwrap_or_default());
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(fits)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        let sending = tokio::time::timeout(self.within, self.to.send(Ok(piece.into())));
        match self.runtime.block_on(sending) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(io::Error::new(ErrorKind::BrokenPipe, "nobody takes it any more")),
            Err(_) => {
                let detail = format!("nothing was taken for {} seconds", self.within.as_secs());
                Err(io::Error::new(ErrorKind::TimedOut, detail))
            }
        }
    }
}

/// The bytes of a file with the state of the gateway, piece by piece. It is whole where it ends without an error.
pub type ExportStream = mpsc::Receiver<io::Result<Bytes>>;

/// What was written, and where to.
pub struct WrittenState<W> {
    pub totals: ExportTotals,
    pub left_out: LeftOutCredentials,
    pub to: W,
}

/// Writes everything that a store keeps, without the credentials of feeds. The store goes on meanwhile.
pub async fn write_state<W: Write + Send + 'static>(
    store: &Store,
    to: W,
) -> Result<WrittenState<W>, Box<dyn Error + Send + Sync>> {
    let head = ExportHead { endpoint: store.endpoint().clone(), sup_ids: store.sup_ids() };
    let (sender, mut pieces) = mpsc::channel(RECORDS_WAITING);
    let writing = tokio::task::spawn_blocking(move || {
        let mut writer = ExportWriter::new(to, head)?;
        let mut left_out = LeftOutCredentials::default();
        while let Some(mut piece) = pieces.blocking_recv() {
            left_out.note(&mut piece);
            writer.put(piece)?;
        }
        Ok::<_, PortableError>((writer, left_out))
    });
    let carried = store.export(sender).await;
    let written = writing.await;
    carried?;
    let (writer, left_out) = written??;
    // Only what was handed over whole gets its end.
    let (totals, to) = tokio::task::spawn_blocking(move || writer.finish()).await??;
    Ok(WrittenState { totals, left_out, to })
}

/// Feeds that need their credentials again, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeftOutCredentials {
    /// Those that the API made, at most [`LeftOutCredentials::NAMED`].
    pub named: Vec<FeedName>,
    /// How many the API made.
    pub count: usize,
    /// How many are of the configuration file, which has theirs.
    pub filed: usize,
}

impl LeftOutCredentials {
    /// The most that are named.
    pub const NAMED: usize = 50;

    /// Leaves the credentials out of a piece, and notes where there are any.
    pub fn note(&mut self, piece: &mut ExportRecord) {
        let ExportRecord::Feed(record) = piece else { return };
        let Some(access) = &mut record.access else { return };
        access.leave_out_literals();
        if !access.lacks_secrets() {
            return;
        }
        if record.source == FeedSource::File {
            self.filed += 1;
            return;
        }
        self.count += 1;
        if self.named.len() < Self::NAMED {
            self.named.push(record.name.clone());
        }
    }
}

impl Operator {
    /// Begins to hand over the whole state of the gateway, which goes on meanwhile; one at a time.
    pub async fn export(&self) -> Result<ExportStream, OperatorError> {
        let Ok(permit) = Arc::clone(&self.exporting).try_acquire_owned() else {
            let detail = "the state is being exported already; try again when that is done";
            return Err(OperatorError::conflict(detail));
        };
        let (sender, stream) = mpsc::channel(WAITING);
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            let to = PieceWriter::new(sender.clone());
            if let Err(error) = write_state(store.as_ref(), to).await {
                let error = in_words(error.as_ref());
                tracing::warn!(error, "the export was not finished");
                // Who takes nothing learns nothing.
                let _ = sender.try_send(Err(io::Error::other(error)));
            }
            drop(permit);
        });
        Ok(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(to: mpsc::Sender<io::Result<Bytes>>) -> PieceWriter {
        let within = Duration::from_millis(20);
        PieceWriter { piece: Vec::new(), to, within, runtime: Handle::current() }
    }

    #[tokio::test]
    async fn pieces_are_bounded_and_come_in_order() {
        let (sender, mut stream) = mpsc::channel(1);
        let bytes: Vec<u8> = (0..200_000_u32).map(|number| (number % 251) as u8).collect();
        let (mut to, written) = (writer(sender), bytes.clone());
        let writing = tokio::task::spawn_blocking(move || {
            to.write_all(&written).unwrap();
            to.flush().unwrap();
        });
        let mut came = Vec::new();
        while let Some(piece) = stream.recv().await {
            let piece = piece.unwrap();
            assert!(piece.len() <= PIECE);
            came.extend_from_slice(&piece);
        }
        writing.await.unwrap();
        assert_eq!(came, bytes);
        // Who takes nothing is not waited for.
        let (sender, stream) = mpsc::channel(1);
        let write = async |sender| {
            let mut to = writer(sender);
            let write = move || to.write_all(&vec![7; 3 * PIECE]).map_err(|error| error.kind());
            tokio::task::spawn_blocking(write).await.unwrap()
        };
        assert_eq!(write(sender.clone()).await, Err(ErrorKind::TimedOut));
        drop(stream);
        assert_eq!(write(sender).await, Err(ErrorKind::BrokenPipe));
    }
}
