//! What is kept is for its owner alone: it holds the passwords of upstreams and the secrets of
//! subscriptions. The folder is what shuts others out; the modes of the files are for the day on which
//! somebody moves them out of it.
//!
//! The engine makes its files itself, with the process's mask. They are set right whenever the store is
//! opened and closed; in between the folder keeps them.

use crate::is_database_file;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

/// The most files and folders whose modes are set at a time.
const ENTRY_LIMIT: usize = 100_000;
/// How deep folders are looked into.
const DEPTH_LIMIT: usize = 8;
/// How the names of our files begin; the engine says which are its own. What else somebody put there is theirs.
#[cfg(unix)]
const OURS: [&str; 6] = ["admin-token", "compact.", "lock", "mark", "reached", "trial"];
/// The mode of the folder and those in it.
#[cfg(unix)]
const FOLDER_MODE: u32 = 0o700;
/// The mode of files.
#[cfg(unix)]
const FILE_MODE: u32 = 0o600;

/// Makes the folder where it is not there; those around it are made as any others.
pub fn make_data_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent)?;
    }
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, FOLDER_MODE);
    match builder.create(path) {
        // Another process was quicker; the lock tells the two apart.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// How files are opened for writing.
pub(super) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, FILE_MODE);
    options
}

/// Takes the rights of everybody but the owner from the folder and all in it. What belongs to somebody
/// else stays as it is: who set it up so has to answer for it.
pub(super) fn restrict(path: &Path) {
    #[cfg(unix)]
    {
        let is_ours =
            |name: &str| OURS.iter().any(|ours| name.starts_with(ours)) || is_database_file(name);
        let mut left = ENTRY_LIMIT;
        if let Err(error) = close_to_others(path, 0, &mut left, &is_ours) {
            tracing::warn!(
                path = %path.display(), %error,
                "others may read the data folder: its modes could not be set to 0700 and 0600"
            );
        }
    }
}

#[cfg(unix)]
fn close_to_others(
    path: &Path,
    depth: usize,
    left: &mut usize,
    is_ours: &dyn Fn(&str) -> bool,
) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    // Of a link, what it leads to is not ours to judge; the folder itself may be one.
    let about = if depth == 0 { fs::metadata(path) } else { fs::symlink_metadata(path) };
    let about = match about {
        // The engine removes files as it goes.
        Err(error) if is_gone(&error) => return Ok(()),
        about => about?,
    };
    let wanted = match about.file_type() {
        kind if kind.is_dir() => FOLDER_MODE,
        kind if kind.is_file() => FILE_MODE,
        _ => return Ok(()),
    };
    if about.permissions().mode() & 0o077 != 0 {
        match fs::set_permissions(path, fs::Permissions::from_mode(wanted)) {
            Err(error) if !is_gone(&error) => return Err(error),
            _ => {}
        }
    }
    if !about.is_dir() || depth >= DEPTH_LIMIT {
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        if *left == 0 {
            return Ok(());
        }
        *left -= 1;
        let entry = entry?;
        if depth > 0 || is_ours(&entry.file_name().to_string_lossy()) {
            close_to_others(&entry.path(), depth + 1, left, is_ours)?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_folder_that_is_there_is_closed_to_others() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("a/data");
        make_data_folder(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
        make_data_folder(&folder).unwrap();
        fs::create_dir(folder.join("blobs")).unwrap();
        let file = folder.join("blobs/1");
        fs::write(&file, "secret").unwrap();
        for (path, open) in [(&folder, 0o755), (&folder.join("blobs"), 0o777), (&file, 0o644)] {
            fs::set_permissions(path, fs::Permissions::from_mode(open)).unwrap();
        }
        restrict(&folder);
        assert_eq!(
            (mode(&folder), mode(&folder.join("blobs")), mode(&file)),
            (0o700, 0o700, 0o600)
        );
        // What stands around it is not ours.
        assert_ne!(mode(&outer.path().join("a")), 0);
        options().create(true).open(folder.join("new")).unwrap();
        assert_eq!(mode(&folder.join("new")), 0o600);
    }
}
