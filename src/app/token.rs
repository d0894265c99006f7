//! The administration token: configured, from the environment, or made at the first start.

use super::AppError;
use crate::config::{AdminTokenSetting, SecretToken};
use crate::serve;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::Path;

/// The environment variable that has the token where the file has none.
const VARIABLE: &str = "TIDEGATE_ADMIN_TOKEN";
/// The file in the data folder that a random token is written to.
const FILE: &str = "admin-token";
/// Random bytes of a token that is made here.
const RANDOM_BYTES: usize = 32;
/// The most bytes that are read of a token file.
const FILE_LIMIT: u64 = 4096;

/// Finds the token, or makes one and says where it is.
pub(super) fn admin_token(
    configured: &AdminTokenSetting,
    data: &Path,
    keeps: bool,
) -> Result<serve::AdminToken, AppError> {
    let text = match configured {
        AdminTokenSetting::Here(token) => token.reveal().to_owned(),
        AdminTokenSetting::File(path) => read(path)?,
        AdminTokenSetting::Unset => match std::env::var(VARIABLE) {
            Ok(token) if !token.is_empty() => token,
            _ => kept_or_made(&data.join(FILE), keeps)?,
        },
    };
    let checked = SecretToken::new(&text)
        .map_err(|why| AppError::Input(format!("the administration token is of no use: {why}")))?;
    serve::AdminToken::new(checked.reveal())
        .map_err(|why| AppError::Input(format!("the administration token is of no use: {why}")))
}

fn read(path: &Path) -> Result<String, AppError> {
    let wrong = |error| {
        AppError::run(
            format!("the administration token cannot be read from {}", path.display()),
            error,
        )
    };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(wrong)?;
    file.take(FILE_LIMIT).read_to_string(&mut text).map_err(wrong)?;
    Ok(text.trim().to_owned())
}

fn kept_or_made(path: &Path, keeps: bool) -> Result<String, AppError> {
    if keeps && path.exists() {
        return read(path);
    }
    let mut random = [0_u8; RANDOM_BYTES];
    getrandom::fill(&mut random)
        .map_err(|error| AppError::run("the system has no random numbers", error))?;
    let token = data_encoding::HEXLOWER.encode(&random);
    if keeps {
        write(path, &token).map_err(|error| {
            AppError::run(
                format!("the administration token cannot be written to {}", path.display()),
                error,
            )
        })?;
        tracing::info!(path = %path.display(), "no administration token is configured; made one");
    } else {
        tracing::info!(
            "no administration token is configured and nothing is kept; administration is closed"
        );
    }
    Ok(token)
}

/// Writes a file that only its owner can read; never over one that is there.
fn write(path: &Path, token: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    writeln!(file, "{token}")?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_token_is_kept_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let token = kept_or_made(&path, true).unwrap();
        assert_eq!(token.len(), 64);
        assert_eq!(kept_or_made(&path, true).unwrap(), token);
        assert_ne!(kept_or_made(&path, false).unwrap(), token);
        #[cfg(unix)]
        {
            let mode =
                std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_token_file_that_is_missing_is_named() {
        let wanted = AdminTokenSetting::File("/nowhere/token".into());
        let error = admin_token(&wanted, Path::new("."), true).map(|_| ()).unwrap_err();
        assert!(error.report().contains("/nowhere/token"), "{}", error.report());
    }
}
