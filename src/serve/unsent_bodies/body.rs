//! A body that is handed over in pieces, out of memory or out of a file, and counted until they have gone.

use super::Sending;
use crate::spool::SpooledFile;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::task::JoinHandle;

/// A body is handed over in pieces of so many bytes, each of which is heard of when it has gone.
pub(super) const PIECE: usize = 16 * 1024;
/// A file is read in pieces of so many bytes.
const FILE_PIECE: usize = 64 * 1024;

/// The body of an answer. The bytes go before what counts them does: another document may be in their
/// place afterwards.
pub(crate) struct Unsent {
    pub(super) rest: Rest,
    pub(super) sending: Arc<Sending>,
}

/// What of a body is not handed over yet.
pub(super) enum Rest {
    Memory(Bytes),
    File {
        file: Arc<SpooledFile>,
        offset: u64,
        /// The next piece.
        reading: Option<JoinHandle<io::Result<Bytes>>>,
    },
}

impl Rest {
    fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            Self::File { file, offset, .. } => file.len().saturating_sub(*offset),
        }
    }

    /// The next piece; there is one.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        match self {
            Self::Memory(bytes) => {
                let length = bytes.len().min(PIECE);
                Poll::Ready(Ok(bytes.split_to(length)))
            }
            Self::File { file, offset, reading } => {
                let (from, at) = (&*file, *offset);
                let task = reading.get_or_insert_with(|| {
                    let file = Arc::clone(from);
                    tokio::task::spawn_blocking(move || file.read(at, FILE_PIECE))
                });
                let read = ready!(Pin::new(task).poll(context));
                *reading = None;
                let bytes = read.map_err(io::Error::other).flatten()?;
                *offset += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                Poll::Ready(Ok(bytes))
            }
        }
    }
}

impl http_body::Body for Unsent {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.is_end_stream() {
            return Poll::Ready(None);
        }
        let read = ready!(self.rest.poll_piece(context));
        // The client sees by its length that the body is broken off.
        let bytes = read.inspect_err(|error| {
            tracing::error!(%error, "a document could not be read from its file as it was sent");
        })?;
        self.sending.goes_on();
        let piece = UnsentPiece { bytes, sending: Arc::clone(&self.sending) };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.len() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len())
    }
}

/// A piece of a body that was handed over, until it has gone.
struct UnsentPiece {
    bytes: Bytes,
    sending: Arc<Sending>,
}

impl AsRef<[u8]> for UnsentPiece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for UnsentPiece {
    fn drop(&mut self) {
        self.sending.goes_on();
    }
}
