//! What is logged, as tests read it.

use std::io;
use std::sync::{Arc, LazyLock, Mutex};
use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber, set_default};

/// One that wants nothing, there before all others. While there is just one subscriber, what logs a line asks that of the
/// thread that reaches it first whether it is of interest, and of a test beside this one that is none: it would be of
/// no interest for good. Of several, all are asked.
static BESIDE: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

/// The lines that this thread logs at the level of operators, from when it was begun until its guard is dropped.
#[derive(Clone, Default)]
pub(in crate::tests) struct LoggedLines(Arc<Mutex<Vec<u8>>>);

impl LoggedLines {
    pub(in crate::tests) fn begin() -> (Self, DefaultGuard) {
        LazyLock::force(&BESIDE);
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
