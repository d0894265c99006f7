//! What the subcommands are asked to do, already checked.

use super::{AppError, ErrorContext, rule_names};
use clap::Args;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_config::{self as config, Checked, Config, Overrides, Variables, feed_address};
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
                Ok(config::load(path.as_deref(), variables(), overrides)?)
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
        let address =
            listener.local_addr().context("the socket that was handed over has no address")?;
        if let Self::File { overrides, .. } = self {
            overrides.listen = Some(address);
        }
        Ok(())
    }
}

/// The configuration file that is read where none is named and this one exists.
const DEFAULT_FILE: &str = "config/tidegate.toml";
/// The environment variable that names the configuration file where the command line names none.
const FILE_VARIABLE: &str = "TIDEGATE_CONFIG";

/// The file that was named, whether it exists or not; else that of the environment, likewise; else the
/// default one where it exists.
pub fn config_file(named: Option<PathBuf>) -> Option<PathBuf> {
    let variable = || std::env::var_os(FILE_VARIABLE).filter(|file| !file.is_empty());
    let default = || Some(PathBuf::from(DEFAULT_FILE)).filter(|path| path.exists());
    named.or_else(|| variable().map(PathBuf::from)).or_else(default)
}

/// The settings of the environment. What is no text is as it can be shown, so that its fault is named.
pub fn variables() -> Variables {
    let shown = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    Variables::new(std::env::vars_os().map(|(name, value)| (shown(name), shown(value))))
}

/// A duration that is not zero: who changes or asks without pause does nothing else.
pub fn interval(text: &str) -> Result<Duration, String> {
    let value = config::duration(text)?;
    if value.is_zero() { Err("the shortest is 1s".to_owned()) } else { Ok(value) }
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
#[derive(Debug, Args)]
pub struct ReplayOptions {
    /// Print one line of JSON for each document, and one for the summary
    #[arg(long)]
    pub json: bool,
    /// Switch a rule of judgement off, to see what it is worth; may be given more than once
    #[arg(long, value_name = "RULE", value_parser = rule)]
    pub without: Vec<String>,
    /// Folders with an index.jsonl, or XML files in order
    #[arg(value_name = "SOURCE", required = true)]
    pub sources: Vec<PathBuf>,
}

/// A rule that can be switched off.
fn rule(text: &str) -> Result<String, String> {
    let names: Vec<&str> = rule_names().collect();
    match names.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("there is no such rule; the rules are {}", names.join(", "))),
    }
}

/// What `tidegate pull` is asked to do.
#[derive(Debug, Args)]
pub struct PullOptions {
    /// The feed: one with sync markup, or a plain one
    #[arg(value_name = "URL", value_parser = feed_address)]
    pub url: Url,
    /// The folder that the replica is kept in; replica.xml there is the feed
    #[arg(long, value_name = "DIR")]
    pub into: PathBuf,
    /// The most requests; what is not read then is read by the next pull
    #[arg(long, value_name = "N", default_value_t = PullLimits::STANDARD.requests, value_parser = at_least_two)]
    pub max_requests: usize,
    /// The most bytes of documents, decompressed
    #[arg(long, value_name = "N", default_value_t = PullLimits::STANDARD.bytes)]
    pub max_bytes: usize,
}

/// The feed and its complete feed are two requests.
fn at_least_two(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().map_err(|error| error.to_string())?;
    if number < 2 { Err("the least is 2".to_owned()) } else { Ok(number) }
}

/// What `tidegate sup` is asked to do.
#[derive(Debug, Args)]
pub struct SupOptions {
    /// The address of the SUP document
    #[arg(value_name = "URL", value_parser = feed_address)]
    pub url: Url,
    /// Print one line of JSON for each change
    #[arg(long)]
    pub json: bool,
    /// Read it a single time
    #[arg(long)]
    pub once: bool,
    /// How often to look [default: once a period]
    #[arg(long, value_name = "DURATION", value_parser = interval)]
    pub every: Option<Duration>,
}
