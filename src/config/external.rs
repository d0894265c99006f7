//! What a configuration names and does not contain: secrets and certificates elsewhere.

use super::{Checked, Fault, Faults};
use std::path::PathBuf;
use tidegate_core::model::SecretSource;

/// Something that is to be found elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum External {
    /// A secret in a file or in the environment.
    Secret(SecretSource),
    /// The token of a reader, in a file or in the environment.
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

/// Looks everything up that a configuration names; what cannot be had is a fault at its place.
pub fn look_up(
    checked: &Checked,
    find: impl Fn(&External) -> Result<(), String>,
) -> Result<(), Faults> {
    let missing = checked.externals.iter().filter_map(|(place, external)| {
        let message = find(external).err()?;
        Some(Fault { message, ..place.clone() })
    });
    Faults::from_list(missing.collect()).map_or(Ok(()), Err)
}
