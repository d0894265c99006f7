//! What can be typed about the items of a feed.

use super::client::{GatewayArgs, name};
use clap::Args;
use tidegate_core::model::{FeedName, SyncId};

/// A command about an item.
#[derive(Debug, Args)]
pub struct ItemArgs {
    /// The name of the feed
    #[arg(value_name = "NAME", value_parser = name)]
    pub name: FeedName,
    /// The sync id of the item
    #[arg(value_name = "SYNC_ID", value_parser = sync_id)]
    pub id: SyncId,
    /// Print the answer of the API
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// `tidegate resolve`.
#[derive(Debug, Args)]
pub struct ResolveArgs {
    /// The name of the feed
    #[arg(value_name = "NAME", value_parser = name)]
    pub name: FeedName,
    /// The sync id of the item
    #[arg(value_name = "SYNC_ID", value_parser = sync_id, required_unless_present = "all")]
    pub id: Option<SyncId>,
    /// Of all items with conflicts keep the winner
    #[arg(long, conflicts_with = "id")]
    pub all: bool,
    /// The version to keep: the winner, or the number of a conflict as `conflicts --json` has it
    #[arg(long, value_name = "VERSION", default_value = "winner", value_parser = kept, conflicts_with = "all")]
    pub keep: KeptVersionArg,
    /// Print the answers of the API, one a line
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

/// Which version of an item in conflict is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptVersionArg {
    Winner,
    Conflict(u32),
}

fn kept(text: &str) -> Result<KeptVersionArg, String> {
    match text {
        "winner" => Ok(KeptVersionArg::Winner),
        number => {
            let number =
                number.parse().map_err(|_| "it is \"winner\" or a number, from 0".to_owned());
            number.map(KeptVersionArg::Conflict)
        }
    }
}

/// `tidegate redact`.
#[derive(Debug, Args)]
pub struct RedactArgs {
    #[command(flatten)]
    pub item: ItemArgs,
    /// What is shown as the reason
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}

fn sync_id(text: &str) -> Result<SyncId, String> {
    SyncId::new(text).map_err(|error| error.to_string())
}
