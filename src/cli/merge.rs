//! `tidegate merge LOCAL INCOMING`: two SSE feed files become one (SSE 1.0 section 3.3), in LOCAL's
//! format and dialect, with everything in LOCAL that is not concerned kept byte for byte.

#[cfg(test)]
mod tests;

pub use tidegate_format::pull::{FeedFault, Side, merged};

use super::outline;
use crate::app;
use std::io::Write;
use std::path::{Path, PathBuf};
use tidegate_core::terminal::printable;
use tidegate_format::pull::BYTES_LIMIT;

/// Why two feeds were not merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeCommandError {
    /// A file cannot be read.
    #[error("{}: the file cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is no SSE feed that can be merged.
    #[error("{}: {source}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// What is wrong, and in which line.
        source: FeedFault,
    },
    /// A file is no OPML list that can be merged.
    #[error("{}: {what}", path.display())]
    List {
        /// The file.
        path: PathBuf,
        /// What is wrong, and in which line.
        what: String,
    },
    /// The result cannot be written.
    #[error("the merged feed cannot be written: {0}")]
    Write(#[source] std::io::Error),
}

impl MergeCommandError {
    /// The exit code of the command: 2 for wrong input, 1 for what failed at run time.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Read { .. } | Self::Input { .. } | Self::List { .. } => 2,
            Self::Write(_) => 1,
        }
    }
}

/// Merges the feed file `incoming` into `local` and writes the merged feed; warnings go to `err`.
pub fn merge(
    local: &Path,
    incoming: &Path,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), MergeCommandError> {
    let path = |side| match side {
        Side::Local => local.to_owned(),
        Side::Incoming => incoming.to_owned(),
    };
    let (ours, theirs) = (load(local)?, load(incoming)?);
    let merged = if outline::is_list(&ours) || outline::is_list(&theirs) {
        outline::merged_bytes(&ours, &theirs)
            .map_err(|(side, what)| MergeCommandError::List { path: path(side), what })?
    } else {
        let merged = merged(&ours, &theirs)
            .map_err(|(side, source)| MergeCommandError::Input { path: path(side), source })?;
        for (side, warning) in &merged.warnings {
            let line = format!("{}: {warning}", path(*side).display());
            // Nobody is left to be told when standard error itself is gone.
            let _ = writeln!(err, "warning: {}", printable(&line));
        }
        merged.text
    };
    out.write_all(merged.as_bytes()).and_then(|()| out.flush()).map_err(MergeCommandError::Write)
}

fn load(path: &Path) -> Result<Vec<u8>, MergeCommandError> {
    app::read_bounded(path, BYTES_LIMIT)
        .map_err(|source| MergeCommandError::Read { path: path.to_owned(), source })
}
