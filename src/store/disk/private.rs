//! Access rights: the data folder is for its owner alone, since it has passwords of publishers and secrets of
//! subscriptions. The mode of the folder keeps others out; the modes of the files matter if they are moved out of it.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

/// The mode of the folder.
const FOLDER_MODE: u32 = 0o700;

/// Makes the folder if it is missing; its parents are made with the usual mode.
pub fn make_data_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent)?;
    }
    match fs::DirBuilder::new().mode(FOLDER_MODE).create(path) {
        // Another process has made it; the lock decides between the two.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Removes the rights of others from the folder, and sets the mask for all files that this process makes, since the
/// engine makes its own. A folder of another owner stays as it is.
pub(super) fn shut_out_others(path: &Path) {
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let closed = fs::metadata(path).and_then(|about| match about.permissions().mode() & 0o077 {
        0 => Ok(()),
        _ => fs::set_permissions(path, fs::Permissions::from_mode(FOLDER_MODE)),
    });
    if let Err(error) = closed {
        tracing::warn!(
            path = %path.display(), %error,
            "others may read the data folder: its mode could not be set to 0700"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        shut_out_others(&folder);
        assert_eq!(mode(&folder), 0o700);
        fs::create_dir(folder.join("blobs")).unwrap();
        fs::write(folder.join("db"), "secret").unwrap();
        assert_eq!((mode(&folder.join("blobs")), mode(&folder.join("db"))), (0o700, 0o600));
    }
}
