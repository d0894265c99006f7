//! What is logged, as tests read it.

use std::io;
use std::sync::{Arc, Mutex};
use tracing::subscriber::{DefaultGuard, set_default};

/// The lines that this thread logs at the level of operators, from when it was begun until its guard is dropped. What
/// logs them must have run in this thread before: where another one reaches it first, it is taken for of no interest.
#[derive(Clone, Default)]
pub(in crate::tests) struct LoggedLines(Arc<Mutex<Vec<u8>>>);

impl LoggedLines {
    pub(in crate::tests) fn begin() -> (Self, DefaultGuard) {
        let lines = Self::default();
        let writer = lines.clone();
        let logs = tracing_subscriber::fmt().with_ansi(false);
        let logs = logs.with_writer(move || writer.clone()).finish();
        (lines, set_default(logs))
    }

    /// Those so far that have this in them.
    pub(in crate::tests) fn with(&self, part: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains(part)).map(str::to_owned).collect()
    }
}

impl io::Write for LoggedLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
