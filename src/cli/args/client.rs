//! What can be typed to a gateway that runs.

use super::file;
use crate::app::{ConfigSource, GatewayOptions};
use crate::config::Overrides;
use crate::model::FeedName;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Which gateway is asked.
#[derive(Debug, Args)]
#[command(next_help_heading = "The gateway")]
pub struct GatewayArgs {
    /// Its address [default: TIDEGATE_URL, else where the configuration says that it listens]
    #[arg(long, value_name = "URL")]
    pub gateway: Option<String>,
    /// A file with its admin token [default: as the gateway finds it]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Its configuration file [default: config/tidegate.toml where that exists]
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Its data folder, which may have its token [default: tidegate-data]
    #[arg(short, long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

impl GatewayArgs {
    /// Which gateway is asked.
    pub fn options(&self) -> GatewayOptions {
        let path = file(self.config.as_deref());
        let overrides = Overrides { data: self.data.clone(), ..Overrides::default() };
        GatewayOptions {
            gateway: self.gateway.clone(),
            token_file: self.token_file.clone(),
            settings: ConfigSource::File { path, overrides },
        }
    }
}

/// `tidegate feeds`.
#[derive(Debug, Args)]
pub struct FeedsArgs {
    /// Only feeds that the overview shows under this word
    #[arg(long, value_name = "WORD")]
    pub show: Option<ShownFeeds>,
    /// Only feeds with this text in title, name, address or folder
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: Option<u32>,
    /// Print the answer of the API
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// Which feeds are listed; the words of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ShownFeeds {
    All,
    Problems,
    Failing,
    Held,
    Conflicts,
    Gaps,
    Paused,
    Gone,
}

/// A command about one feed.
#[derive(Debug, Args)]
pub struct FeedArgs {
    /// The name of the feed
    #[arg(value_name = "NAME", value_parser = name)]
    pub name: FeedName,
    /// Print the answer of the API
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// A command about feeds.
#[derive(Debug, Args)]
pub struct NamesArgs {
    /// The names of the feeds
    #[arg(value_name = "NAME", value_parser = name, required = true)]
    pub names: Vec<FeedName>,
    /// Print the answers of the API, one a line
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// `tidegate add`.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// The address of a site or of its feed
    #[arg(value_name = "URL")]
    pub url: String,
    /// Its name here, for good [default: made of its address]
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub name: Option<FeedName>,
    /// Only say what is there
    #[arg(long)]
    pub look: bool,
    /// Print the answer of the API
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// `tidegate remove`.
#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// The name of the feed
    #[arg(value_name = "NAME", value_parser = name)]
    pub name: FeedName,
    /// Remove its items and their history too
    #[arg(long)]
    pub purge: bool,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// `tidegate hold`.
#[derive(Debug, Args)]
pub struct HoldArgs {
    /// The name of the feed
    #[arg(value_name = "NAME", value_parser = name)]
    pub name: FeedName,
    /// Publish what the held document says, or go on without it
    #[arg(value_name = "ACTION")]
    pub action: HoldAction,
    /// Print the answer of the API
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// What is decided about a held document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HoldAction {
    Release,
    Drop,
}

/// `tidegate items`.
#[derive(Debug, Args)]
pub struct ItemsArgs {
    /// The name of the feed
    #[arg(value_name = "NAME", value_parser = name)]
    pub name: FeedName,
    /// Only these
    #[arg(long, value_name = "WORD")]
    pub show: Option<ShownItems>,
    /// Only items with this text in their titles or ids
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// Which page of 50
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub page: u32,
    /// Print the answer of the API
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// Which items are listed; the words of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ShownItems {
    All,
    Current,
    Missing,
    Retired,
    Deleted,
    Edited,
    Renamed,
    Conflicts,
}

/// The word of a choice.
pub(in crate::cli) fn word(choice: &impl ValueEnum) -> String {
    choice.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn name(text: &str) -> Result<FeedName, String> {
    FeedName::new(text).map_err(|error| error.to_string())
}
