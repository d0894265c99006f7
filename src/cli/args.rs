//! What can be typed.

pub mod client;

use crate::app::{
    ConfigSource, DemoOptions, ExportOptions, ImportOptions, PullOptions, ReplayOptions,
    SupOptions, rule_names,
};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use client::{ClientCommand, GatewayArgs};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_config::{Overrides, duration, feed_address, public_address};
use tidegate_core::model::Without;
use tidegate_format::pull::PullLimits;
use url::Url;

/// The configuration file that is read where none is named and this one exists.
pub const DEFAULT_FILE: &str = "config/tidegate.toml";

/// The environment variable that names the configuration file where the command line names none.
const FILE_VARIABLE: &str = "TIDEGATE_CONFIG";

/// A gateway that gives plain Atom and RSS feeds memory: version histories, tombstones and change
/// windows.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, about, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the gateway
    Serve(ServeArgs),
    /// Run the gateway in front of a small publisher of its own; needs no network
    Demo(DemoArgs),
    /// Check the configuration: exit 0, or exit 2 with every mistake by file, line and key
    Check(CheckArgs),
    /// Ask the gateway on this machine whether it lives: exit 0, or exit 1
    Health(HealthArgs),
    /// Take recorded documents through the gateway, with no network and no server
    Replay(ReplayArgs),
    /// Keep a local replica of a feed: sync markup followed, archives read
    Pull(PullArgs),
    /// Watch a SUP document and print which feeds change
    Sup(SupArgs),
    /// Add the feeds of a subscription list to a gateway, or bring in the state of one that was exported
    Import(ImportArgs),
    /// Write the whole state of a gateway to one file, whether it runs or not
    Export(ExportArgs),
    /// Write the store of a gateway that is not running anew, without what was redacted or pruned
    Compact(FolderArgs),
    /// Merge two SSE feeds and print the result in the format of the first
    Merge(MergeArgs),
    #[command(flatten)]
    Client(ClientCommand),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write those of all commands
    Man(ManArgs),
}

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// `tidegate serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The configuration file [default: config/tidegate.toml where that exists]
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The address to listen on; port 0 lets the system choose [default: 127.0.0.1:8080]
    #[arg(short, long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// The data folder [default: tidegate-data]
    #[arg(short, long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The address under which the gateway is reached [default: http://LISTEN]
    #[arg(long, value_name = "URL", value_parser = public_address)]
    pub public_url: Option<String>,
    /// Let upstreams and callbacks be at loopback and private addresses
    #[arg(long)]
    pub allow_private: bool,
    /// How logs are written to standard error; TIDEGATE_LOG sets what (info, tidegate=debug, …)
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log: LogFormat,
    /// Feeds to add, named after host and path
    #[arg(value_name = "FEED_URL", value_parser = feed_address)]
    pub feeds: Vec<Url>,
}

impl ServeArgs {
    /// Where its configuration comes from.
    pub fn settings(self) -> ConfigSource {
        let path = file(self.config.as_deref());
        let overrides = Overrides {
            listen: self.listen,
            data: self.data,
            public_url: self.public_url,
            allow_private: self.allow_private,
            feeds: self.feeds,
        };
        ConfigSource::File { path, overrides }
    }
}

/// The file that was named, whether it exists or not; else that of the environment, likewise; else the
/// default one where it exists.
fn file(named: Option<&Path>) -> Option<PathBuf> {
    let variable = std::env::var_os(FILE_VARIABLE).filter(|file| !file.is_empty());
    let default = || Some(PathBuf::from(DEFAULT_FILE)).filter(|path| path.exists());
    named.map(Path::to_path_buf).or_else(|| variable.map(PathBuf::from)).or_else(default)
}

/// `tidegate demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// The address to listen on; port 0 lets the system choose
    #[arg(short, long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// The data folder [default: none, everything is forgotten at the end]
    #[arg(short, long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// How often the publisher's feeds change
    #[arg(long, value_name = "DURATION", default_value = "4s", value_parser = interval)]
    pub every: Duration,
    /// How logs are written to standard error; TIDEGATE_LOG sets what (info, tidegate=debug, …)
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log: LogFormat,
}

/// A duration that is not zero: a publisher that changes without pause is no demonstration.
fn interval(text: &str) -> Result<Duration, String> {
    let value = duration(text)?;
    if value.is_zero() { Err("the shortest is 1s".to_owned()) } else { Ok(value) }
}

impl DemoArgs {
    /// What the demonstration is asked to do.
    pub fn options(self, has_colour: bool) -> DemoOptions {
        let Self { listen, data, every, .. } = self;
        DemoOptions { listen, data, every, has_colour }
    }
}

/// `tidegate check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The configuration file [default: config/tidegate.toml where that exists]
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl CheckArgs {
    /// The file to check; `None` where none was named and the default one is not there.
    pub fn file(&self) -> Option<PathBuf> {
        file(self.config.as_deref())
    }
}

/// `tidegate health`.
#[derive(Debug, Args)]
pub struct HealthArgs {
    /// The configuration file of the gateway [default: config/tidegate.toml where that exists]
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The address that it listens on [default: that of the configuration]
    #[arg(short, long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
}

impl HealthArgs {
    /// The configuration of the gateway that is asked.
    pub fn settings(self) -> ConfigSource {
        let path = file(self.config.as_deref());
        let overrides = Overrides { listen: self.listen, ..Overrides::default() };
        ConfigSource::File { path, overrides }
    }
}

/// `tidegate replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
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

impl ReplayArgs {
    /// What the replay is asked to do.
    pub fn options(self) -> ReplayOptions {
        ReplayOptions { json: self.json, sources: self.sources, without: Without(self.without) }
    }
}

/// A rule that can be switched off.
fn rule(text: &str) -> Result<String, String> {
    let names: Vec<&str> = rule_names().collect();
    match names.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("there is no such rule; the rules are {}", names.join(", "))),
    }
}

/// `tidegate pull`.
#[derive(Debug, Args)]
pub struct PullArgs {
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
    /// How logs are written to standard error; TIDEGATE_LOG sets what (info, tidegate=debug, …)
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log: LogFormat,
}

/// The feed and its complete feed are two requests.
fn at_least_two(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().map_err(|error| error.to_string())?;
    if number < 2 { Err("the least is 2".to_owned()) } else { Ok(number) }
}

impl PullArgs {
    /// What the pull is asked to do.
    pub fn options(self) -> PullOptions {
        let (requests, bytes) = (self.max_requests, self.max_bytes);
        let limits = PullLimits { requests, bytes, ..PullLimits::STANDARD };
        PullOptions { url: self.url, into: self.into, limits }
    }
}

/// `tidegate sup`.
#[derive(Debug, Args)]
pub struct SupArgs {
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

impl SupArgs {
    /// What is asked.
    pub fn options(self) -> SupOptions {
        SupOptions { url: self.url, json: self.json, once: self.once, every: self.every }
    }
}

/// `tidegate import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The file with the state, or a subscription list (OPML)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Of a subscription list: let it say the folder, name and order of its feeds, also of those that
    /// have a place already
    #[arg(long)]
    pub rearrange: bool,
    /// Of a subscription list: print what became of it as the API says it
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

impl ImportArgs {
    /// What an import is asked to do.
    pub fn import(&self) -> ImportOptions {
        let settings = self.gateway.options().settings;
        ImportOptions { file: self.file.clone(), settings, rearrange: self.rearrange }
    }
}

/// `tidegate export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The file; there must be none of that name
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

impl ExportArgs {
    /// What an export is asked to do.
    pub fn export(&self) -> ExportOptions {
        let settings = self.gateway.options().settings;
        ExportOptions { file: self.file.clone(), settings }
    }
}

/// Which data folder a command works on.
#[derive(Debug, Args)]
pub struct FolderArgs {
    /// The configuration file [default: config/tidegate.toml where that exists]
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The data folder [default: tidegate-data]
    #[arg(short, long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

impl FolderArgs {
    /// The configuration that says where the folder is.
    pub fn settings(self) -> ConfigSource {
        let path = file(self.config.as_deref());
        let overrides = Overrides { data: self.data, ..Overrides::default() };
        ConfigSource::File { path, overrides }
    }
}

/// `tidegate completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// `tidegate man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write a page for each command to this folder
    #[arg(long, value_name = "DIR")]
    pub into: Option<PathBuf>,
}

/// `tidegate merge`.
#[derive(Debug, Args)]
pub struct MergeArgs {
    /// The feed to merge into; its format and dialect are kept
    #[arg(value_name = "LOCAL")]
    pub local: PathBuf,
    /// The feed to merge
    #[arg(value_name = "INCOMING")]
    pub incoming: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn serve(args: &[&str]) -> Result<ConfigSource, clap::error::ErrorKind> {
        let typed = ["tidegate", "serve"].iter().chain(args);
        match Cli::try_parse_from(typed).map_err(|error| error.kind())?.command {
            Command::Serve(args) => Ok(args.settings()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_option_of_serve_arrives() {
        let settings = serve(&[
            "-c",
            "f.toml",
            "-l",
            "[::1]:0",
            "-d",
            "d",
            "--public-url",
            "https://a.example/",
            "--allow-private",
            "https://example.org/a",
            "http://127.0.0.1:9/b",
        ]);
        let ConfigSource::File { path, overrides } = settings.unwrap() else {
            panic!("serve reads a file");
        };
        assert_eq!(path, Some(PathBuf::from("f.toml")));
        assert_eq!(overrides.listen, Some("[::1]:0".parse().unwrap()));
        assert_eq!(overrides.data, Some(PathBuf::from("d")));
        assert_eq!(overrides.public_url.as_deref(), Some("https://a.example"));
        assert!(overrides.allow_private);
        let feeds: Vec<&str> = overrides.feeds.iter().map(Url::as_str).collect();
        assert_eq!(feeds, ["https://example.org/a", "http://127.0.0.1:9/b"]);
    }

    #[test]
    fn long_names_are_those_of_the_contract() {
        let typed = ["--config", "f", "--listen", "127.0.0.1:1", "--data", "d"];
        assert!(serve(&typed).is_ok());
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for bad in [
            &["--listen", "here"][..],
            &["--public-url", "ftp://a"],
            &["example.org/feed"],
            &["file:///etc/passwd"],
            &["--colour"],
            &["--log", "xml"],
        ] {
            assert!(serve(bad).is_err(), "{bad:?} was taken");
        }
        for bad in [
            &["demo", "--every", "0s"][..],
            &["replay"],
            &["replay", "--without", "luck", "a"],
            &["merge", "one"],
            &["pull", "http://a"],
            &["pull", "ftp://a", "--into", "d"],
            &["pull", "http://a", "--into", "d", "--max-requests", "1"],
            &["sup"],
            &["import"],
            &["export", "a", "b"],
            &["sup", "file:///a"],
            &["fly"],
            &[],
        ] {
            let typed = std::iter::once(&"tidegate").chain(bad);
            assert!(Cli::try_parse_from(typed).is_err(), "{bad:?} was taken");
        }
    }
}
