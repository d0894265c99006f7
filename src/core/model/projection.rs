//! The canonical projection of an entry: all that a reader would see of it, read when it is first asked for.
//!
//! Most entries of a document are as they were in the last one, so that nobody asks.

use super::{Entry, Field};
use crate::xml::doc::{Doc, DocElement, NodeId};
use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, OnceLock};

/// Reads the fields of an entry from the tree of its document.
pub type ReadFields = fn(DocElement<'_, '_>) -> Vec<Field<'static>>;

/// The fields of an entry, or where they are.
#[derive(Debug, Clone)]
pub struct Projection<'a>(FieldSource<'a>);

#[derive(Debug, Clone)]
enum FieldSource<'a> {
    Read(Vec<Field<'a>>),
    InDocument {
        doc: Arc<Doc<'a>>,
        entry: NodeId,
        read: ReadFields,
        known: OnceLock<Vec<Field<'static>>>,
    },
}

impl<'a> Projection<'a> {
    /// Those of an element of a document.
    pub const fn in_document(doc: Arc<Doc<'a>>, entry: NodeId, read: ReadFields) -> Self {
        Self(FieldSource::InDocument { doc, entry, read, known: OnceLock::new() })
    }

    /// The fields, in document order.
    pub fn fields(&self) -> &[Field<'_>] {
        match &self.0 {
            FieldSource::Read(fields) => fields,
            FieldSource::InDocument { doc, entry, read, known } => {
                known.get_or_init(|| doc.element(*entry).map(read).unwrap_or_default())
            }
        }
    }
}

impl<'a> From<Vec<Field<'a>>> for Projection<'a> {
    fn from(fields: Vec<Field<'a>>) -> Self {
        Self(FieldSource::Read(fields))
    }
}

impl PartialEq for Projection<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.fields() == other.fields()
    }
}

impl Eq for Projection<'_> {}

impl Serialize for Projection<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.fields().serialize(serializer)
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
        self.projection.fields()
    }
}
