//! What the subcommands are asked to do, already checked.

use super::AppError;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_config::{self as config, Checked, Config, Overrides, Variables};
use tidegate_core::model::Without;
use tidegate_format::pull::PullLimits;
use url::Url;

/// Where the configuration comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigSource {
    /// A file, where there is one, over it the environment, and over that the command line. Read again at
    /// SIGHUP.
    File {
        /// The file; `None`: every key has its default.
        path: Option<PathBuf>,
        /// What the command line says over it.
        overrides: Overrides,
    },
    /// A configuration made by the program itself; SIGHUP changes nothing.
    Fixed(Box<Config>),
}

impl ConfigSource {
    /// Reads the configuration as it is now.
    pub fn load(&self) -> Result<Checked, AppError> {
        match self {
            Self::File { path, overrides } => {
                let checked = config::load(path.as_deref(), &variables())?;
                Ok(overrides.apply(checked))
            }
            Self::Fixed(config) => {
                Ok(Checked { config: config.as_ref().clone(), ..Checked::default() })
            }
        }
    }

    /// The file that is read; `None`: there is none.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. } => path.as_deref(),
            Self::Fixed(_) => None,
        }
    }

    /// Goes by the address of a socket that was handed over, whatever else says where to listen.
    pub fn listen_on(&mut self, listener: &std::net::TcpListener) -> Result<(), AppError> {
        let address = listener.local_addr().map_err(|error| {
            AppError::run("the socket that was handed over has no address", error)
        })?;
        if let Self::File { overrides, .. } = self {
            overrides.listen = Some(address);
        }
        Ok(())
    }
}

/// The settings of the environment. What is no text is as it can be shown, so that its fault is named.
pub fn variables() -> Variables {
    let shown = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    Variables::new(std::env::vars_os().map(|(name, value)| (shown(name), shown(value))))
}

/// What `tidegate demo` is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoOptions {
    /// The address that the gateway listens on.
    pub listen: SocketAddr,
    /// The data folder; `None`: everything is kept in memory and forgotten.
    pub data: Option<PathBuf>,
    /// How often the publisher's feeds change.
    pub every: Duration,
    /// Whether what happens is told in colours.
    pub has_colour: bool,
}

/// What `tidegate replay` is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayOptions {
    /// One line of JSON for each document, instead of text for people.
    pub json: bool,
    /// Folders with an `index.jsonl`, or documents in order.
    pub sources: Vec<PathBuf>,
    /// Rules of judgement that are switched off.
    pub without: Without,
}

/// What `tidegate pull` is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullOptions {
    /// The feed.
    pub url: Url,
    /// The folder of the replica.
    pub into: PathBuf,
    /// What it may take.
    pub limits: PullLimits,
}

/// What `tidegate sup` is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupOptions {
    /// The address of the SUP document.
    pub url: Url,
    /// One line of JSON for each change, instead of text for people.
    pub json: bool,
    /// Whether to read it a single time.
    pub once: bool,
    /// How often to look; by default once a period.
    pub every: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_file_the_command_line_stands_over_the_defaults() {
        let overrides = Overrides { data: Some("d".into()), ..Overrides::default() };
        let loaded = ConfigSource::File { path: None, overrides }.load().unwrap();
        assert_eq!(loaded.config.store.path, PathBuf::from("d"));
        assert_eq!(loaded.config.polling, Config::default().polling);
    }

    #[test]
    fn the_file_is_read_anew_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.toml");
        let settings =
            ConfigSource::File { path: Some(path.clone()), overrides: Overrides::default() };
        assert!(settings.load().is_err());
        std::fs::write(&path, "[publish]\narchive_entries = 7").unwrap();
        assert_eq!(settings.load().unwrap().config.publish.archives.entries, 7);
        std::fs::write(&path, "[publish]\narchive_entries = 8").unwrap();
        assert_eq!(settings.load().unwrap().config.publish.archives.entries, 8);
    }
}
