//! How values of crates that know nothing of the API's description (OpenAPI) are written in it: a field that holds one
//! refers to its description here (`#[schema(value_type = schema::Blame)]`).

pub use tidegate_core::model::{FeedName, SyncId, Time};

use serde::Serialize;
use serde_json::Value;
use tidegate_core::model::EventKind;
use tidegate_net::fetch::FetchBlame;
use utoipa::openapi::schema::{ObjectBuilder, Type};

/// Types that stand for a value: each is named in the description as it is here, with its comment.
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

/// A text.
pub fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// One of these words.
pub fn words<T: Serialize>(words: impl IntoIterator<Item = T>) -> ObjectBuilder {
    let words = words.into_iter().map(|word| serde_json::to_value(word).unwrap_or_default());
    text().enum_values(Some(words))
}

/// An object that has the numbers that this value has.
pub fn numbers(value: &impl Serialize) -> ObjectBuilder {
    let number = || ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
    let value = serde_json::to_value(value).unwrap_or_default();
    let names = value.as_object().into_iter().flat_map(|object| object.keys());
    let object = ObjectBuilder::new().schema_type(Type::Object);
    names.fold(object, |object, name| object.property(name, number()).required(name))
}

describe! {
    /// Who has to do something about a failure.
    pub Blame: words([
        FetchBlame::Network,
        FetchBlame::Upstream,
        FetchBlame::Operator,
        FetchBlame::Gateway,
    ]);
    /// How many events of each kind.
    pub EventNumbers: numbers(&Value::from_iter(EventKind::ALL.map(|kind| (kind.name(), 0))));
}
