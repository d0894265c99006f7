//! What can be typed to a gateway that runs.

use super::file;
use super::items::{ItemArgs, RedactArgs, ResolveArgs};
use crate::app::{ConfigSource, GatewayOptions};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::Value;
use std::path::PathBuf;
use tidegate_config::Overrides;
use tidegate_core::model::FeedName;

/// What a gateway that runs is asked or told.
#[derive(Debug, Subcommand)]
pub enum ClientCommand {
    /// List the feeds of the gateway that runs, and how they stand
    Feeds(FeedsArgs),
    /// Say all that is known of a feed
    Show(FeedArgs),
    /// Add a feed by the address of its site or its own
    Add(AddArgs),
    /// Remove a feed: its address answers 410 from then on
    Remove(RemoveArgs),
    /// Poll feeds now
    Poll(NamesArgs),
    /// Stop polling feeds, which are served as they are
    Pause(NamesArgs),
    /// Go on polling feeds that were paused
    Resume(NamesArgs),
    /// Decide about a held document
    Hold(HoldArgs),
    /// List the items of a feed, the newest first
    Items(ItemsArgs),
    /// List the items of a feed that have unresolved conflicts
    Conflicts(FeedArgs),
    /// Say all that is known of an item, its versions among it
    Item(ItemArgs),
    /// Resolve conflicts of items: keep the winner, or another version
    Resolve(ResolveArgs),
    /// Delete an item: one of a local feed, or one that its publisher does not list any more
    Delete(ItemArgs),
    /// Restore a deleted item of a local feed
    Restore(ItemArgs),
    /// Take the text of an item out of everything that is kept, for good
    Redact(RedactArgs),
    /// Change what a feed is polled for and how, key by key
    Edit(EditArgs),
    /// Read the publisher's older documents once, or stop that
    Backfill(BackfillArgs),
    /// Say how deliveries to a feed's webhook go, set it, or end it
    Webhook(WebhookArgs),
    /// List who subscribed to the hub, and what went wrong
    Subscriptions(SubscriptionsArgs),
    /// List the readers of private feeds, and what each may read
    Readers(ReadersArgs),
    /// Add the feeds of a subscription list (OPML) to the gateway that runs
    AddList(AddListArgs),
}

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

/// `tidegate edit`.
#[derive(Debug, Args)]
pub struct EditArgs {
    /// The name of the feed
    #[arg(value_name = "NAME", value_parser = name)]
    pub name: FeedName,
    /// A key of the feed and its value, as text or JSON; without a value it goes back to its default
    #[arg(value_name = "KEY=VALUE", value_parser = setting, required = true)]
    pub settings: Vec<(String, Value)>,
    /// Print the answer of the API
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// A key and its value: JSON where it is that, else a text; null where it is empty.
fn setting(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE")?;
    let value = match value {
        "" => Value::Null,
        value => serde_json::from_str(value).unwrap_or_else(|_| value.into()),
    };
    Ok((key.trim().to_owned(), value))
}

/// `tidegate backfill`.
#[derive(Debug, Args)]
pub struct BackfillArgs {
    /// The name of the feed
    #[arg(value_name = "NAME", value_parser = name)]
    pub name: FeedName,
    /// Stop it
    #[arg(long)]
    pub stop: bool,
    /// Print the answer of the API
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// `tidegate webhook`.
#[derive(Debug, Args)]
pub struct WebhookArgs {
    /// The name of the feed
    #[arg(value_name = "NAME", value_parser = name)]
    pub name: FeedName,
    /// Deliver the feed's changes to this address
    #[arg(long, value_name = "URL", conflicts_with = "remove")]
    pub url: Option<String>,
    /// A file with the secret that signs deliveries [default: one is made, and printed once]
    #[arg(long, value_name = "FILE", requires = "url")]
    pub secret_file: Option<PathBuf>,
    /// End the deliveries
    #[arg(long)]
    pub remove: bool,
    /// Print the answer of the API
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// `tidegate subscriptions`.
#[derive(Debug, Args)]
pub struct SubscriptionsArgs {
    /// Only those of this feed
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub feed: Option<FeedName>,
    /// Print the answer of the API
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// `tidegate readers`.
#[derive(Debug, Args)]
pub struct ReadersArgs {
    /// Print the answer of the API
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// `tidegate add-list`.
#[derive(Debug, Args)]
pub struct AddListArgs {
    /// The list
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Let the list say where all of its feeds stand, also those that have a place already
    #[arg(long)]
    pub rearrange: bool,
    /// Print the answer of the API
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub gateway: GatewayArgs,
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

pub(super) fn name(text: &str) -> Result<FeedName, String> {
    FeedName::new(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_are_json_or_text() {
        for (typed, value) in [
            ("url=https://e.org/?a=b", json!("https://e.org/?a=b")),
            ("complete=true", json!(true)),
            ("items=500", json!(500)),
            ("title=\"500\"", json!("500")),
            ("min_interval=1h", json!("1h")),
            ("ignore=[\"media:keywords\"]", json!(["media:keywords"])),
            ("user_agent=", json!(null)),
        ] {
            let key = typed.split('=').next().unwrap().to_owned();
            assert_eq!(setting(typed), Ok((key, value)), "{typed}");
        }
        assert!(setting("complete").is_err());
    }
}
