//! Random values for tests of whatever is stored: each is made of what its own deserializer asks for.

use proptest::prelude::*;
use serde::de::value::{Error, MapDeserializer, SeqDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, VariantAccess,
    Visitor,
};
use std::fmt::Debug;

pub(crate) fn any_specimen<T: DeserializeOwned + Debug>() -> impl Strategy<Value = T> {
    any::<u64>().prop_map(specimen)
}

/// The value of a type that a seed stands for: the same in every run.
pub(crate) fn specimen<T: DeserializeOwned>(seed: u64) -> T {
    T::deserialize(Choices { seed, field: "" }).unwrap()
}

/// Chooses what a value consists of, at random.
struct Choices {
    seed: u64,
    /// The field that the value is for.
    field: &'static str,
}

impl Choices {
    /// SplitMix64.
    fn roll(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.roll() % limit as u64) as usize
    }

    /// What any name, id and secret may be; longer and of all kinds where a document is meant.
    fn text(&mut self) -> String {
        let (characters, length) = match self.field {
            "xml" | "text" | "markup" => ("aé ☃<𝄞&\n0", self.below(400)),
            _ => ("abcxyz0189", 1 + self.below(12)),
        };
        let characters: Vec<char> = characters.chars().collect();
        let text: String = (0..length).map(|_| characters[self.below(characters.len())]).collect();
        if self.field == "callback" { format!("https://reader.example/{text}") } else { text }
    }

    /// Those of a part of the value.
    fn part(&mut self, field: &'static str) -> Self {
        Self { seed: self.roll(), field }
    }
}

impl IntoDeserializer<'_, Error> for Choices {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Methods that choose numbers. Those of 32 and of 64 bits are positive, as counts and spans of time are.
macro_rules! numbers {
    ($($method:ident $visit:ident $dice:ident $number:expr;)+) => {
        $(
            fn $method<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
                let $dice = &mut self;
                visitor.$visit($number)
            }
        )+
    };
}

impl<'de> Deserializer<'de> for Choices {
    type Error = Error;

    numbers! {
        deserialize_bool visit_bool dice dice.below(2) == 1;
        deserialize_u8 visit_u8 dice dice.roll() as u8;
        deserialize_u16 visit_u16 dice dice.roll() as u16;
        deserialize_u32 visit_u32 dice 1 + (dice.roll() >> 33) as u32 % 0x7fff_ffff;
        deserialize_u64 visit_u64 dice 1 + (dice.roll() >> 1) % 0x7fff_ffff_ffff_ffff;
        deserialize_u128 visit_u128 dice u128::from(dice.roll()) << 64 | u128::from(dice.roll());
        deserialize_i64 visit_i64 dice dice.roll() as i64;
        deserialize_str visit_string dice dice.text();
        deserialize_string visit_string dice dice.text();
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(serde::de::Error::custom("nothing that is stored says itself what it is"))
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        if self.below(2) == 0 { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        let count = self.below(4);
        self.deserialize_tuple(count, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        let entries = (0..self.below(4)).map(|_| (self.part(self.field), self.part(self.field)));
        visitor.visit_map(MapDeserializer::new(entries))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        mut self,
        count: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_seq(SeqDeserializer::new((0..count).map(|_| self.part(self.field))))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_seq(SeqDeserializer::new(fields.iter().map(|field| self.part(field))))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let variant = self.below(variants.len()) as u32;
        visitor.visit_enum(Variant(variant, self))
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 f32 f64 char bytes byte_buf unit unit_struct tuple_struct identifier ignored_any
    }
}

/// The number of a variant, and what it has.
struct Variant(u32, Choices);

impl<'de> EnumAccess<'de> for Variant {
    type Error = Error;
    type Variant = Choices;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Choices), Error> {
        let number = IntoDeserializer::<Error>::into_deserializer(self.0);
        Ok((seed.deserialize(number)?, self.1))
    }
}

impl<'de> VariantAccess<'de> for Choices {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, count: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_tuple(count, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_struct("", fields, visitor)
    }
}
