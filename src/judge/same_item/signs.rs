//! Why an entry is a known item: what the two have in common, and how much that says.

/// Why an entry is a known item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Basis {
    SameId,
    /// A native id that the item had before.
    FormerId,
    /// Signs that weigh enough, and more than those of any other pair.
    Signs(Signs),
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
        matches!(self, Self::Signs(Signs { title, .. }) if title > 0)
    }

    /// The evidence in words.
    pub fn describe(self) -> String {
        match self {
            Self::SameId => "the same id".to_owned(),
            Self::FormerId => "an id that it had before".to_owned(),
            Self::Signs(signs) => signs.describe(),
        }
    }
}

/// In what way two addresses are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressSign {
    /// The last part of the path, which is a name.
    Name,
    /// A long number in it.
    Number,
    /// The whole link.
    Link,
    /// The id or link but for its query.
    Path,
    /// The id but for scheme and host.
    Hostless,
}

/// What an entry and an item have in common besides the id, by kind, each with its weight; 0 where they
/// have not. A title and the part of an address that was made of it are one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Signs {
    pub title: u8,
    /// Much of the title, no number of which is another one.
    pub wording: u8,
    pub date: u8,
    pub text: u8,
    pub address: Option<AddressSign>,
    pub address_weight: u8,
    /// The same title, text or date in a row of others that kept their order.
    pub row: u8,
    /// The place between the same neighbours.
    pub place: u8,
    /// What contradicts.
    pub against: u8,
}

impl Signs {
    /// How much all of it says.
    pub fn weight(&self) -> i32 {
        let Self { title, wording, date, text, address_weight, row, place, against, .. } = *self;
        let all = [title, wording, date, text, address_weight, row, place];
        all.into_iter().map(i32::from).sum::<i32>() - i32::from(against)
    }

    fn describe(&self) -> String {
        let address = self.address.map(|address| match address {
            AddressSign::Name => "address name",
            AddressSign::Number => "number in the address",
            AddressSign::Link => "link",
            AddressSign::Path => "address but for its query",
            AddressSign::Hostless => "id but for scheme and host",
        });
        let words = [
            (self.title > 0).then_some("title"),
            (self.wording > 0).then_some("wording"),
            (self.date > 0).then_some("date"),
            (self.text > 0).then_some("text"),
            address,
        ];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        let same = match words.split_last() {
            Some((last, [])) => format!("the same {last}"),
            Some((last, rest)) => format!("the same {} and {last}", rest.join(", ")),
            None => "nothing".to_owned(),
        };
        match (self.row > 0, self.place > 0) {
            (true, _) => format!("{same} in the same order as others"),
            (_, true) => format!("{same} between the same neighbours"),
            _ => same,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_basis_names_its_signs() {
        let signs = Signs { title: 2, date: 2, ..Signs::default() };
        assert_eq!(Basis::Signs(signs).describe(), "the same title and date");
        let address = Some(AddressSign::Hostless);
        let signs = Signs { text: 2, address, address_weight: 3, against: 1, ..signs };
        let said = "the same title, date, text and id but for scheme and host";
        assert_eq!(Basis::Signs(signs).describe(), said);
        assert_eq!(signs.weight(), 8);
        let signs = Signs { title: 2, row: 2, ..Signs::default() };
        assert_eq!(Basis::Signs(signs).describe(), "the same title in the same order as others");
    }
}
