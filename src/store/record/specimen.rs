//! Random values for tests of whatever is stored: each is made of what its own deserializer asks for.

use proptest::prelude::*;
use serde::de::value::Error;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};
use std::fmt::Debug;

/// Any value of a type.
pub(crate) fn any_specimen<T: DeserializeOwned + Debug>() -> impl Strategy<Value = T> {
    any::<u64>().prop_map(specimen)
}

/// The value of a type that a seed stands for: the same in every run.
pub(crate) fn specimen<T: DeserializeOwned>(seed: u64) -> T {
    let mut dice = seed;
    T::deserialize(Choices { dice: &mut dice, field: "" }).unwrap()
}

/// Chooses what a value consists of, at random.
struct Choices<'a> {
    dice: &'a mut u64,
    /// The field that the value is for.
    field: &'static str,
}

impl Choices<'_> {
    /// SplitMix64.
    fn roll(&mut self) -> u64 {
        *self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*self.dice ^ (*self.dice >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
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

    fn some(self, fields: &'static [&'static str], left: usize) -> Several<Self> {
        Several { of: self, fields, left }
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

impl<'de> Deserializer<'de> for Choices<'_> {
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
        visitor.visit_seq(self.some(&[], count))
    }

    fn deserialize_map<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        let count = self.below(4);
        visitor.visit_map(self.some(&[], count))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        count: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_seq(self.some(&[], count))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_seq(self.some(fields, fields.len()))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let variant = self.below(variants.len());
        visitor.visit_enum(self.some(&[], variant))
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 f32 f64 char bytes byte_buf unit unit_struct tuple_struct identifier ignored_any
    }
}

/// The parts of a value, one after the other; of an enum: the number of its variant.
struct Several<C> {
    of: C,
    fields: &'static [&'static str],
    left: usize,
}

impl<'a> Several<Choices<'a>> {
    fn choices(&mut self) -> Choices<'_> {
        let place = self.fields.len().saturating_sub(self.left);
        let field = self.fields.get(place).copied().unwrap_or(self.of.field);
        self.left = self.left.saturating_sub(1);
        Choices { dice: self.of.dice, field }
    }
}

impl<'de> SeqAccess<'de> for Several<Choices<'_>> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        seed.deserialize(self.choices()).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> MapAccess<'de> for Several<Choices<'_>> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(self.choices())
    }
}

impl<'a, 'de> EnumAccess<'de> for Several<Choices<'a>> {
    type Error = Error;
    type Variant = Choices<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Choices<'a>), Error> {
        let variant = u32::try_from(self.left).unwrap();
        let variant = IntoDeserializer::<Error>::into_deserializer(variant);
        Ok((seed.deserialize(variant)?, self.of))
    }
}

impl<'de> VariantAccess<'de> for Choices<'_> {
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
