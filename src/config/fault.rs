//! Faults of a configuration, each with its place, and what it names and does not contain.

use super::Checked;
use std::fmt;
use std::path::PathBuf;
use tidegate_core::model::SecretSource;

/// The most faults that are listed; the rest is counted.
pub const FAULTS_SHOWN: usize = 500;

/// One mistake, or one warning: where it stands, which key, and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fault {
    /// The file, as it was named; or the variable of the environment.
    pub file: String,
    /// The line, from 1; 0 where it is no file.
    pub line: usize,
    /// The key with its table (`polling.min_interval`); empty where the syntax is broken.
    pub key: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: ", self.file)?,
            line => write!(f, "{}:{line}: ", self.file)?,
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// Every mistake of a configuration, by line. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// Sorts the faults by place; `None` where there are none.
    pub fn from_list(mut faults: Vec<Fault>) -> Option<Self> {
        faults.sort_by_key(|fault| fault.line);
        (!faults.is_empty()).then_some(Self(faults))
    }

    /// The faults, by line; at most [`FAULTS_SHOWN`].
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.0.iter().take(FAULTS_SHOWN)
    }

    /// How many there are, the unlisted ones included.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for Faults {
    /// One line a fault.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed: Vec<String> = self.iter().map(Fault::to_string).collect();
        f.write_str(&listed.join("\n"))?;
        match self.count().saturating_sub(FAULTS_SHOWN) {
            0 => Ok(()),
            unlisted => write!(f, "\nand {unlisted} more"),
        }
    }
}

impl std::error::Error for Faults {}

/// Why there is no configuration. All of it is for the operator to mend.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration file {file} cannot be read; {}", way_out(.source))]
    Read {
        file: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is no configuration, whatever is in it.
    #[error("{0}")]
    Unusable(String),
    /// The file has mistakes.
    #[error(transparent)]
    Faults(#[from] Faults),
}

/// What helps where a file cannot be read.
fn way_out(why: &std::io::Error) -> &'static str {
    match why.kind() {
        std::io::ErrorKind::PermissionDenied => "run the command as root, or as the gateway's user",
        _ => "name another with --config",
    }
}

/// Something that is to be found elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum External {
    /// A secret in a file or in the environment.
    Secret(SecretSource),
    /// The address of a database, wherever it is.
    Database(SecretSource),
    /// The file with the administration token.
    AdminToken(SecretSource),
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
) -> Vec<Fault> {
    let missing = checked.externals.iter().filter_map(|(place, external)| {
        let message = find(place, external).err()?;
        Some(Fault { message, ..place.clone() })
    });
    missing.collect()
}
