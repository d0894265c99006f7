//! What a store has of the configuration that was applied to it last.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tidegate_core::model::FeedName;

/// The address of each site of a configuration (`[[origin]]`) by its name: where the feeds of it are that requests made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedOrigins(pub BTreeMap<FeedName, String>);
