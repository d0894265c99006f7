//! The origins of the configuration that was applied last.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tidegate_core::model::FeedName;

/// The address of each `[[origin]]` by its name: its feeds that requests have created are below this address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedOrigins(pub BTreeMap<FeedName, String>);
