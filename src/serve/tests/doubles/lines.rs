//! What is logged, as tests read it.

use std::sync::{LazyLock, Mutex};
use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber, set_default};
use tracing_subscriber::fmt::MakeWriter as _;

/// One that wants nothing, there before all others. While there is just one subscriber, what logs a line asks that of the
/// thread that reaches it first whether it is of interest, and of a test beside this one that is none: it would be of
/// no interest for good. Of several, all are asked.
static BESIDE: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

/// The lines that this thread logs at the level of operators, from when it was begun until its guard is dropped.
pub(in crate::tests) struct LoggedLines(&'static Mutex<Vec<u8>>);

impl LoggedLines {
    pub(in crate::tests) fn begin() -> (Self, DefaultGuard) {
        LazyLock::force(&BESIDE);
        let lines: &'static Mutex<Vec<u8>> = Box::leak(Box::default());
        let logs = tracing_subscriber::fmt().with_ansi(false);
        let logs = logs.with_writer(move || lines.make_writer()).finish();
        (Self(lines), set_default(logs))
    }

    /// Those so far that have this in them.
    pub(in crate::tests) fn with(&self, part: &str) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains(part)).map(str::to_owned).collect()
    }
}
