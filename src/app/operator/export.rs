//! The state of the gateway as a file, while it runs.

use bytes::Bytes;
use std::io::{self, ErrorKind, Write};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// How many bytes go out together, and how many such pieces wait.
const PIECE: usize = 64 * 1024;
pub(super) const WAITING: usize = 4;
/// How long a piece may wait until it is taken: meanwhile a feed is kept as it was for who reads it.
const TAKEN_WITHIN: Duration = Duration::from_secs(60);

/// Writes to who takes piece by piece. To be used where blocking is allowed.
pub(super) struct PieceWriter {
    piece: Vec<u8>,
    to: mpsc::Sender<io::Result<Bytes>>,
    within: Duration,
    runtime: Handle,
}

impl PieceWriter {
    pub(super) fn new(to: mpsc::Sender<io::Result<Bytes>>) -> Self {
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
                let said = format!("nothing was taken for {} seconds", self.within.as_secs());
                Err(io::Error::new(ErrorKind::TimedOut, said))
            }
        }
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
    }

    #[tokio::test]
    async fn who_takes_nothing_is_not_waited_for() {
        let (sender, stream) = mpsc::channel(1);
        let mut to = writer(sender.clone());
        let write = move || to.write_all(&vec![7; 3 * PIECE]).map_err(|error| error.kind());
        let refused = tokio::task::spawn_blocking(write).await.unwrap();
        assert_eq!(refused, Err(ErrorKind::TimedOut));
        drop(stream);
        let mut to = writer(sender);
        let write = move || to.write_all(&vec![7; 3 * PIECE]).map_err(|error| error.kind());
        assert_eq!(tokio::task::spawn_blocking(write).await.unwrap(), Err(ErrorKind::BrokenPipe));
    }
}
