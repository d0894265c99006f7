//! The canonical projection of an entry: all that a reader would see of it, read when it is first asked for.
//!
//! Most entries of a document are as they were in the last one, so that nobody asks.

use super::{Context, Entry, Field, Format};
use serde::de::Deserializer;
use serde::ser::{Error, Serializer};
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// Reads the projection of an entry of a format from its markup and what that inherits.
pub type ReadProjection = fn(&str, &Context, Format) -> Vec<Field<'static>>;

/// The fields of an entry, or how they are read.
#[derive(Debug, Clone)]
pub struct Projection<'a>(ReadFields<'a>);

#[derive(Debug, Clone)]
enum ReadFields<'a> {
    Known(Vec<Field<'a>>),
    OnDemand { format: Format, read: ReadProjection, known: OnceLock<Vec<Field<'static>>> },
}

impl<'a> Projection<'a> {
    /// One that `read` makes of the entry's markup when it is first asked for.
    pub const fn on_demand(format: Format, read: ReadProjection) -> Self {
        Self(ReadFields::OnDemand { format, read, known: OnceLock::new() })
    }

    /// The fields, where they were asked for.
    fn known(&self) -> Option<&[Field<'a>]> {
        match &self.0 {
            ReadFields::Known(fields) => Some(fields),
            ReadFields::OnDemand { known, .. } => known.get().map(Vec::as_slice),
        }
    }
}

impl<'a> From<Vec<Field<'a>>> for Projection<'a> {
    fn from(fields: Vec<Field<'a>>) -> Self {
        Self(ReadFields::Known(fields))
    }
}

impl PartialEq for Projection<'_> {
    /// What nobody asked for yet follows from the markup, which the entry compares.
    fn eq(&self, other: &Self) -> bool {
        match (self.known(), other.known()) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        }
    }
}

impl Eq for Projection<'_> {}

impl Serialize for Projection<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(fields) = self.known() else {
            return Err(S::Error::custom(
                "an entry is kept out of its document only with its fields",
            ));
        };
        fields.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Projection<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

impl Entry<'_> {
    /// The canonical projection, in document order, dates included (the comparison leaves them out).
    pub fn fields(&self) -> &[Field<'_>] {
        match &self.projection.0 {
            ReadFields::Known(fields) => fields,
            ReadFields::OnDemand { format, read, known } => {
                known.get_or_init(|| read(&self.markup, &self.context, *format))
            }
        }
    }
}
