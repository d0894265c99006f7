//! What can be typed about the gateway that runs: `tidegate feed`, `item`, `list` and `reader`.

use crate::app::GatewayOptions;
use clap::{Args, Subcommand};
use serde_json::Value;
use std::path::PathBuf;
use tidegate_core::model::{FeedName, SyncId};

/// Which feeds and which items can be listed, in the words of the API.
const SHOWN_FEEDS: [&str; 8] =
    ["all", "problems", "failing", "held", "conflicts", "gaps", "paused", "gone"];
const SHOWN_ITEMS: [&str; 8] =
    ["all", "current", "missing", "retired", "deleted", "edited", "renamed", "conflicts"];

/// What is asked of a gateway that runs, and told it.
#[derive(Debug, Subcommand)]
pub enum ClientCommand {
    /// Ask about the feeds of a gateway that runs, and change them
    Feed(AskArgs<FeedCommand>),
    /// Ask about the items of a feed, and decide about them
    Item(AskArgs<ItemCommand>),
    /// List who listens to a gateway
    List(AskArgs<ListCommand>),
    /// Ask about the readers of private feeds
    Reader(AskArgs<ReaderCommand>),
}

/// A group of commands, and which gateway they are for.
#[derive(Debug, Args)]
pub struct AskArgs<C: Subcommand> {
    #[command(subcommand)]
    pub command: C,
    /// Print the answer of the API, or those of several, one a line
    #[arg(long, global = true)]
    pub json: bool,
    #[command(flatten)]
    pub gateway: GatewayOptions,
}

/// `tidegate feed`.
#[derive(Debug, Subcommand)]
pub enum FeedCommand {
    /// List the feeds, with state, items and next poll
    List {
        /// Only feeds that the overview shows under this word
        #[arg(long, value_name = "WORD", value_parser = SHOWN_FEEDS)]
        show: Option<String>,
        /// Only feeds with this text in title, name, address or folder
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// The most feeds that are listed
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: Option<u32>,
    },
    /// Show what is known of a feed, and what happened to it
    Show(FeedArg),
    /// Add the feed of a site, or of its address
    Add {
        /// The address of a site or of its feed
        #[arg(value_name = "URL")]
        url: String,
        /// Its name here, for good [default: made of its address]
        #[arg(long, value_name = "NAME", value_parser = name)]
        name: Option<FeedName>,
        /// Only say what is there
        #[arg(long)]
        look: bool,
    },
    /// Remove a feed for good; its address answers 410 from then on
    Remove {
        #[command(flatten)]
        feed: FeedArg,
        /// Remove its items and their history too
        #[arg(long)]
        purge: bool,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Poll feeds now, and say what came
    Poll(FeedsArg),
    /// Serve feeds as they are, and poll them no more
    Pause(FeedsArg),
    /// Poll paused feeds again
    Resume(FeedsArg),
    /// Publish a held document, or go on without it
    Hold {
        #[command(flatten)]
        feed: FeedArg,
        /// Publish what the held document says, or go on without it
        #[arg(value_name = "ACTION", value_parser = ["release", "drop"])]
        action: String,
    },
    /// Change what a feed is polled for and how, key by key
    Edit {
        #[command(flatten)]
        feed: FeedArg,
        /// A key of the feed and its value, as text or JSON; without a value it goes back to its default
        #[arg(value_name = "KEY=VALUE", value_parser = setting, required = true)]
        settings: Vec<(String, Value)>,
    },
    /// Read the publisher's older documents once, or stop that
    Backfill {
        #[command(flatten)]
        feed: FeedArg,
        /// Stop it
        #[arg(long)]
        stop: bool,
    },
    /// Say how deliveries to a feed's webhook go, set it, or end it
    Webhook {
        #[command(flatten)]
        feed: FeedArg,
        /// Deliver the feed's changes to this address
        #[arg(long, value_name = "URL", conflicts_with = "remove")]
        url: Option<String>,
        /// A file with the secret that signs deliveries [default: one is made, and printed once]
        #[arg(long, value_name = "FILE", requires = "url")]
        secret_file: Option<PathBuf>,
        /// End the deliveries
        #[arg(long)]
        remove: bool,
    },
}

/// `tidegate item`.
#[derive(Debug, Subcommand)]
pub enum ItemCommand {
    /// List the items of a feed
    List {
        #[command(flatten)]
        feed: FeedArg,
        /// Only these
        #[arg(long, value_name = "WORD", value_parser = SHOWN_ITEMS)]
        show: Option<String>,
        /// Only items with this text in their titles or ids
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// Which page of 50
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        page: u32,
    },
    /// Show what is known of an item, with its versions
    Show(ItemArg),
    /// List the items of a feed that have conflicts
    Conflicts(FeedArg),
    /// Resolve the conflicts of an item, or of all items of a feed
    Resolve {
        #[command(flatten)]
        feed: FeedArg,
        /// The sync id of the item
        #[arg(value_name = "SYNC_ID", value_parser = sync_id, required_unless_present = "all")]
        id: Option<SyncId>,
        /// Of all items with conflicts keep the winner
        #[arg(long, conflicts_with = "id")]
        all: bool,
        /// The version to keep: the winner, or the number of a conflict as `item conflicts --json` has it
        #[arg(long, value_name = "VERSION", default_value = "winner", value_parser = kept, conflicts_with = "all")]
        keep: Value,
    },
    /// Delete an item: one of a local feed, or one that its publisher does not list any more
    Delete(ItemArg),
    /// Restore a deleted item of a local feed
    Restore(ItemArg),
    /// Take the text of an item out of everything that is kept, for good
    Redact {
        #[command(flatten)]
        item: ItemArg,
        /// What is shown as the reason
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

/// `tidegate list`.
#[derive(Debug, Subcommand)]
pub enum ListCommand {
    /// List who subscribed to the hub, and what went wrong
    Subscriptions {
        /// Only those of this feed
        #[arg(long, value_name = "NAME", value_parser = name)]
        feed: Option<FeedName>,
    },
}

/// `tidegate reader`.
#[derive(Debug, Subcommand)]
pub enum ReaderCommand {
    /// List the readers of private feeds, and what each may read
    List,
    /// Print a token by chance, for a reader or for administration; no gateway is asked
    Token,
}

/// A feed.
#[derive(Debug, Args)]
pub struct FeedArg {
    /// The name of the feed
    #[arg(value_name = "NAME", value_parser = name)]
    pub name: FeedName,
}

/// Feeds.
#[derive(Debug, Args)]
pub struct FeedsArg {
    /// The names of the feeds
    #[arg(value_name = "NAME", value_parser = name, required = true)]
    pub names: Vec<FeedName>,
}

/// An item.
#[derive(Debug, Args)]
pub struct ItemArg {
    #[command(flatten)]
    pub feed: FeedArg,
    /// The sync id of the item
    #[arg(value_name = "SYNC_ID", value_parser = sync_id)]
    pub id: SyncId,
}

/// The version of an item in conflict that is kept, as the API takes it.
fn kept(text: &str) -> Result<Value, String> {
    match text {
        "winner" => Ok(text.into()),
        number => {
            let number = number.parse::<u32>();
            number.map(Value::from).map_err(|_| "it is \"winner\" or a number, from 0".to_owned())
        }
    }
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

fn name(text: &str) -> Result<FeedName, String> {
    FeedName::new(text).map_err(|error| error.to_string())
}

fn sync_id(text: &str) -> Result<SyncId, String> {
    SyncId::new(text).map_err(|error| error.to_string())
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
