//! What can be typed.

pub mod client;

use crate::app::{
    ConfigSource, GatewayOptions, PullOptions, ReplayOptions, SupOptions, config_file, interval,
};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use client::ClientCommand;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_config::{Overrides, feed_address, listen_address, public_address};
use url::Url;

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
    Demo {
        /// The address to listen on; port 0 lets the system choose
        #[arg(short, long, value_name = "ADDR", default_value = "127.0.0.1:8080", value_parser = listen_address)]
        listen: SocketAddr,
        /// The data folder [default: none, everything is forgotten at the end]
        #[arg(short, long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// How often the publisher's feeds change
        #[arg(long, value_name = "DURATION", default_value = "4s", value_parser = interval)]
        every: Duration,
        #[command(flatten)]
        logs: LogArg,
    },
    /// Check the configuration: exit 0, or exit 2 with every mistake by file, line and key
    Check(ConfigArg),
    /// Ask the gateway on this machine whether it lives: exit 0, or exit 1
    Health {
        #[command(flatten)]
        config: ConfigArg,
        /// The address that it listens on [default: that of the configuration]
        #[arg(short, long, value_name = "ADDR", value_parser = listen_address)]
        listen: Option<SocketAddr>,
    },
    /// Take recorded documents through the gateway, with no network and no server
    Replay(ReplayOptions),
    /// Keep a local replica of a feed: sync markup followed, archives read
    Pull {
        #[command(flatten)]
        options: PullOptions,
        #[command(flatten)]
        logs: LogArg,
    },
    /// Watch a SUP document and print which feeds change
    Sup(SupOptions),
    /// Add the feeds of a subscription list to a gateway, or bring in the state of one that was exported
    Import {
        /// The file with the state, or a subscription list (OPML)
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Of a subscription list: let it say the folder, name and order of its feeds, also of those that
        /// have a place already
        #[arg(long)]
        rearrange: bool,
        /// Of a subscription list: print what became of it as the API says it
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        gateway: GatewayOptions,
    },
    /// Write the whole state of a gateway to one file, whether it runs or not
    Export {
        /// The file; there must be none of that name
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        gateway: GatewayOptions,
    },
    /// Write the store of a gateway that is not running anew, without what was redacted or pruned
    Compact {
        #[command(flatten)]
        config: ConfigArg,
        /// The data folder [default: tidegate-data]
        #[arg(short, long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
    /// Make a restored store of a gateway that is not running a new incarnation, so that its subscribers notice
    Reincarnate {
        #[command(flatten)]
        config: ConfigArg,
        /// The data folder [default: tidegate-data]
        #[arg(short, long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
    /// Merge two SSE feeds and print the result in the format of the first
    Merge {
        /// The feed to merge into; its format and dialect are kept
        #[arg(value_name = "LOCAL")]
        local: PathBuf,
        /// The feed to merge
        #[arg(value_name = "INCOMING")]
        incoming: PathBuf,
    },
    #[command(flatten)]
    Client(ClientCommand),
    /// Print completions for a shell
    Completions {
        /// The shell
        #[arg(value_name = "SHELL")]
        shell: Shell,
    },
    /// Print the manual page, or write those of all commands
    Man {
        /// Write a page for each command to this folder
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
    },
}

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The option for how logs are written.
#[derive(Debug, Args)]
pub struct LogArg {
    /// How logs are written to standard error; TIDEGATE_LOG sets what (info, tidegate=debug, …)
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log: LogFormat,
}

/// The option for the configuration file.
#[derive(Debug, Args)]
pub struct ConfigArg {
    /// The configuration file [default: config/tidegate.toml where that exists]
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl ConfigArg {
    /// The configuration with what the command line says over it.
    pub fn with(self, overrides: Overrides) -> ConfigSource {
        ConfigSource::File { path: config_file(self.config), overrides }
    }
}

/// `tidegate serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub config: ConfigArg,
    /// The address to listen on; port 0 lets the system choose [default: 127.0.0.1:8080]
    #[arg(short, long, value_name = "ADDR", value_parser = listen_address)]
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
    #[command(flatten)]
    pub logs: LogArg,
    /// Feeds to add, named after host and path
    #[arg(value_name = "FEED_URL", value_parser = feed_address)]
    pub feeds: Vec<Url>,
}

impl ServeArgs {
    /// Where its configuration comes from.
    pub fn settings(self) -> ConfigSource {
        let Self { listen, data, public_url, allow_private, feeds, .. } = self;
        self.config.with(Overrides { listen, data, public_url, allow_private, feeds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(typed: &str) -> Result<Command, clap::Error> {
        let typed = std::iter::once("tidegate").chain(typed.split_whitespace());
        Cli::try_parse_from(typed).map(|cli| cli.command)
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
        // Options that several commands share leave each its own words.
        for (name, words) in [
            ("serve", "Run the gateway"),
            ("check", "Check the configuration"),
            ("health", "Ask the gateway on this machine"),
            ("replay", "Take recorded documents"),
            ("pull", "Keep a local replica"),
            ("sup", "Watch a SUP document"),
            ("compact", "Write the store of a gateway"),
            ("reincarnate", "Make a restored store"),
        ] {
            let command = Cli::command();
            let about = command.find_subcommand(name).and_then(|it| it.get_about()).unwrap();
            assert!(about.to_string().starts_with(words), "{name}: {about}");
        }
    }

    #[test]
    fn every_option_of_serve_arrives_and_wrong_ones_are_refused() {
        let typed = "serve -c f.toml -l [::1]:0 -d d --public-url https://a.example/ --allow-private \
                     https://example.org/a http://127.0.0.1:9/b";
        let Ok(Command::Serve(args)) = parse(typed) else { panic!("no other command") };
        let ConfigSource::File { path, overrides } = args.settings() else {
            panic!("serve reads a file");
        };
        assert_eq!(path, Some(PathBuf::from("f.toml")));
        assert_eq!(overrides.listen, Some("[::1]:0".parse().unwrap()));
        assert_eq!(overrides.data, Some(PathBuf::from("d")));
        assert_eq!(overrides.public_url.as_deref(), Some("https://a.example"));
        assert!(overrides.allow_private);
        let feeds: Vec<&str> = overrides.feeds.iter().map(Url::as_str).collect();
        assert_eq!(feeds, ["https://example.org/a", "http://127.0.0.1:9/b"]);
        // The long names of the contract.
        assert!(parse("serve --config f --listen 127.0.0.1:1 --data d").is_ok());
        // Wrong arguments are refused.
        for bad in [
            "serve --listen here",
            "serve --public-url ftp://a",
            "serve example.org/feed",
            "serve file:///etc/passwd",
            "serve --colour",
            "serve --log xml",
            "demo --every 0s",
            "replay",
            "replay --without luck a",
            "merge one",
            "pull http://a",
            "pull ftp://a --into d",
            "pull http://a --into d --max-requests 1",
            "sup",
            "import",
            "export a b",
            "sup file:///a",
            "fly",
            "",
        ] {
            assert!(parse(bad).is_err(), "{bad:?} was taken");
        }
    }
}
