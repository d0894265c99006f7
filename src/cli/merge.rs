//! `tidegate merge LOCAL INCOMING`: two SSE feed files become one (SSE 1.0 section 3.3), in LOCAL's
//! format and dialect, with everything in LOCAL that is not concerned kept byte for byte.

pub use tidegate_format::pull::{Side, merged};

use super::outline;
use crate::app::{self, AppError};
use std::io::Write;
use std::path::Path;
use tidegate_core::terminal::printable;
use tidegate_format::pull::BYTES_LIMIT;

/// Merges the feed file `incoming` into `local` and writes the merged feed; warnings go to `err`.
pub fn merge(
    local: &Path,
    incoming: &Path,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), AppError> {
    let shown = |side| match side {
        Side::Local => local.display(),
        Side::Incoming => incoming.display(),
    };
    let (ours, theirs) = (load(local)?, load(incoming)?);
    let merged = if outline::is_list(&ours) || outline::is_list(&theirs) {
        let merged = outline::merged_bytes(&ours, &theirs);
        merged.map_err(|(side, why)| AppError::Input(format!("{}: {why}", shown(side))))?
    } else {
        let merged = merged(&ours, &theirs)
            .map_err(|(side, why)| AppError::Input(format!("{}: {why}", shown(side))))?;
        for (side, warning) in &merged.warnings {
            let line = format!("{}: {warning}", shown(*side));
            // Nobody is left to be told when standard error itself is gone.
            let _ = writeln!(err, "warning: {}", printable(&line));
        }
        merged.text
    };
    out.write_all(merged.as_bytes()).and_then(|()| out.flush()).map_err(AppError::output)
}

fn load(path: &Path) -> Result<Vec<u8>, AppError> {
    app::read_bounded(path, BYTES_LIMIT).map_err(|error| {
        AppError::Input(format!("{}: the file cannot be read: {error}", path.display()))
    })
}
