//! OpenAPI descriptions of values from crates that do not depend on it. Fields refer to them by `#[schema(value_type =
//! schema::Blame)]`.

pub use tidegate_core::model::{FeedName, SyncId, Time};

use serde::Serialize;
use serde_json::Value;
use tidegate_core::model::EventKind;
use tidegate_net::fetch::FetchBlame;
use utoipa::openapi::schema::{ObjectBuilder, Type};

/// Declares types that stand for a value in the description, each with its name and comment.
#[macro_export]
macro_rules! describe {
    ($($(#[doc = $about:literal])* $visible:vis $name:ident: $schema:expr;)*) => { $(
        $(#[doc = $about])*
        $visible struct $name;

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                $schema.description(Some(concat!($($about),*).trim())).into()
            }
        }

        impl utoipa::ToSchema for $name {}
    )* };
}

/// Returns the schema of a string.
pub fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// Returns the schema of one of these words.
pub fn words<T: Serialize>(words: impl IntoIterator<Item = T>) -> ObjectBuilder {
    let words = words.into_iter().map(|word| serde_json::to_value(word).unwrap_or_default());
    text().enum_values(Some(words))
}

/// Returns the schema of an object with the same keys as `value`, all of them numbers.
pub fn numbers(value: &impl Serialize) -> ObjectBuilder {
    let number = || ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
    let value = serde_json::to_value(value).unwrap_or_default();
    let names = value.as_object().into_iter().flat_map(|object| object.keys());
    let object = ObjectBuilder::new().schema_type(Type::Object);
    names.fold(object, |object, name| object.property(name, number()).required(name))
}

describe! {
    /// Who must act on a failure.
    pub Blame: words([
        FetchBlame::Network,
        FetchBlame::Upstream,
        FetchBlame::Operator,
        FetchBlame::Gateway,
    ]);
    /// The number of events of each kind.
    pub EventNumbers: numbers(&Value::from_iter(EventKind::ALL.map(|kind| (kind.name(), 0))));
}
