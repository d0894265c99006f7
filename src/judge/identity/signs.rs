//! Why an entry is a known item: the signs that the two have in common.

/// Why an entry is a known item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Basis {
    /// The same native id.
    SameId,
    /// A native id that the item had before.
    FormerId,
    /// Two kinds of sign or more.
    Signs(Signs),
    /// The same title in a row of others that kept their order.
    Sequence,
    /// The same dates of many, in the same places.
    Dates,
}

impl Basis {
    /// Whether the item goes by another native id from now on.
    pub const fn is_rename(self) -> bool {
        !matches!(self, Self::SameId)
    }

    /// Whether the ids differ in scheme and host alone.
    pub const fn is_same_but_for_host(self) -> bool {
        matches!(self, Self::Signs(Signs { address: Some(AddressSign::Hostless), .. }))
    }

    /// Whether the addresses differ in their query alone.
    pub const fn is_same_but_for_query(self) -> bool {
        matches!(self, Self::Signs(Signs { address: Some(AddressSign::Path), .. }))
    }

    /// Whether the titles are the same.
    pub const fn has_title(self) -> bool {
        matches!(self, Self::Signs(Signs { title: true, .. }))
    }

    /// The evidence in words.
    pub fn describe(self) -> String {
        match self {
            Self::SameId => "the same id".to_owned(),
            Self::FormerId => "an id that it had before".to_owned(),
            Self::Signs(signs) => signs.describe(),
            Self::Sequence => "the same title in the same order as others".to_owned(),
            Self::Dates => "the same date in the same place, as many others".to_owned(),
        }
    }
}

/// In what way two addresses are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressSign {
    /// The last part of the path, which is a name.
    Name,
    /// The whole link.
    Link,
    /// The id or link but for its query.
    Path,
    /// The id but for scheme and host.
    Hostless,
}

/// What an entry and an item have in common besides the id, by kind. Each kind is independent of the
/// others: a title and the part of an address that was made of it are one sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Signs {
    /// The title, which no other post bears.
    pub title: bool,
    /// Much of the title, no number of which is another one.
    pub wording: bool,
    /// The date to the second; or the day, which no other bears.
    pub date: bool,
    /// A text that no other bears.
    pub text: bool,
    /// An address that no other bears.
    pub address: Option<AddressSign>,
    /// The sound, film or file that belongs to it.
    pub sound: bool,
}

impl Signs {
    /// How many kinds of sign there are.
    pub fn kinds(&self) -> usize {
        let Self { title, wording, date, text, address, sound } = *self;
        let kinds = [title, wording, date, text, address.is_some(), sound];
        kinds.into_iter().filter(|kind| *kind).count()
    }

    /// The signs in words.
    fn describe(&self) -> String {
        let address = self.address.map(|address| match address {
            AddressSign::Name => "address name",
            AddressSign::Link => "link",
            AddressSign::Path => "address but for its query",
            AddressSign::Hostless => "id but for scheme and host",
        });
        let words = [
            self.title.then_some("title"),
            self.wording.then_some("wording"),
            self.date.then_some("date"),
            self.text.then_some("text"),
            self.sound.then_some("enclosure"),
            // Last, since it has a condition.
            address,
        ];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        match words.split_last() {
            Some((last, [])) => format!("the same {last}"),
            Some((last, rest)) => format!("the same {} and {last}", rest.join(", ")),
            None => "nothing".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_basis_names_its_signs() {
        let signs = Signs { title: true, date: true, ..Signs::default() };
        assert_eq!(Basis::Signs(signs).describe(), "the same title and date");
        let signs = Signs { text: true, address: Some(AddressSign::Hostless), ..signs };
        assert_eq!(
            Basis::Signs(signs).describe(),
            "the same title, date, text and id but for scheme and host"
        );
        assert_eq!(signs.kinds(), 4);
    }
}
