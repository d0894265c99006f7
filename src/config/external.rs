//! What a configuration names and does not contain: secrets and certificates elsewhere.

use super::{Checked, Fault, Faults};
use std::path::PathBuf;
use tidegate_core::model::SecretSource;

/// Something that is to be found elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum External {
    /// A secret in a file or in the environment.
    Secret(SecretSource),
    /// The address of a database, wherever it is.
    Database(SecretSource),
    /// The file with the administration token.
    AdminToken(PathBuf),
    /// The token of a reader, wherever it is.
    ReaderToken(SecretSource),
    /// A file with certificates.
    Certificates(PathBuf),
    /// A certificate and its key, which the gateway shows.
    KeyPair {
        /// The file with the certificate.
        certificate: PathBuf,
        /// The file with the key.
        key: PathBuf,
    },
}

impl External {
    /// The variable of the environment that has it.
    pub(super) fn variable(&self) -> Option<&str> {
        match self {
            Self::Secret(SecretSource::Env(name))
            | Self::Database(SecretSource::Env(name))
            | Self::ReaderToken(SecretSource::Env(name)) => Some(name),
            _ => None,
        }
    }
}

/// Looks everything up that a configuration names, each with its place; what cannot be had is a fault there.
pub fn look_up(
    checked: &Checked,
    mut find: impl FnMut(&Fault, &External) -> Result<(), String>,
) -> Result<(), Faults> {
    let missing = checked.externals.iter().filter_map(|(place, external)| {
        let message = find(place, external).err()?;
        Some(Fault { message, ..place.clone() })
    });
    Faults::from_list(missing.collect()).map_or(Ok(()), Err)
}
