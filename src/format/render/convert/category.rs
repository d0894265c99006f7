//! Categories and tags: each once, however many there are.

use std::collections::{HashMap, HashSet};

/// A category (RFC 4287 section 4.2.2).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Category {
    /// What it is.
    pub term: String,
    /// Of what scheme.
    pub scheme: Option<String>,
    /// What to show instead of the term.
    pub label: Option<String>,
}

impl Category {
    /// What people read.
    pub fn shown(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.term)
    }
}

/// A scheme, and a term or a label of it.
type Named = (Option<String>, String);

/// The categories of an entry that say something, in its order. One that only shows the text of another
/// of its scheme is that other's: a converted feed has both.
#[derive(Debug, Default)]
pub(super) struct Categories {
    /// What was taken over by a later one leaves its place empty.
    found: Vec<Option<Category>>,
    known: HashSet<Category>,
    shown: HashSet<Named>,
    /// Where those without a label stand.
    bare: HashMap<Named, usize>,
}

impl Categories {
    /// Adds one that says something and was not named yet.
    pub(super) fn add(&mut self, new: Category) {
        let new = Category {
            term: new.term.trim().to_owned(),
            label: new.label.filter(|label| !label.trim().is_empty() && *label != new.term),
            ..new
        };
        let shown = (new.scheme.clone(), new.shown().to_owned());
        let is_bare = new.label.is_none();
        if shown.1.is_empty()
            || (is_bare && self.shown.contains(&shown))
            || self.known.contains(&new)
        {
            return;
        }
        if is_bare {
            self.bare.insert(shown.clone(), self.found.len());
        } else if let Some(bare) = self.bare.remove(&shown).and_then(|at| self.found.get_mut(at)) {
            *bare = None;
        }
        self.shown.insert(shown);
        self.known.insert(new.clone());
        self.found.push(Some(new));
    }

    /// What is left.
    pub(super) fn into_vec(self) -> Vec<Category> {
        self.found.into_iter().flatten().collect()
    }
}

/// The tags that say something, in their order, each once.
pub fn tags<T: AsRef<str>>(tags: impl IntoIterator<Item = T>) -> Vec<String> {
    let mut known = HashSet::new();
    let tags = tags.into_iter().map(|tag| tag.as_ref().trim().to_owned());
    tags.filter(|tag| !tag.is_empty() && known.insert(tag.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rule, each category compared with each other.
    fn compared(all: &[Category]) -> Vec<Category> {
        let shows = |one: &Category, other: &Category| {
            one.label.is_none() && one.scheme == other.scheme && one.term == other.shown()
        };
        let mut found: Vec<Category> = Vec::new();
        for new in all {
            let is_known = found.iter().any(|known| known == new || shows(new, known));
            if !new.shown().is_empty() && !is_known {
                found.retain(|known| !shows(known, new));
                found.push(new.clone());
            }
        }
        found
    }

    proptest! {
        #[test]
        fn each_category_is_there_once(
            all in proptest::collection::vec((0..4u8, 0..2u8, 0..5u8), 0..12),
        ) {
            let name = |n: u8| (b'a' + n - 1) as char;
            let all: Vec<Category> = all
                .into_iter()
                .map(|(term, scheme, label)| Category {
                    term: if term == 0 { String::new() } else { name(term).to_string() },
                    scheme: (scheme > 0).then(|| "urn:x".to_owned()),
                    label: (label > 0 && label != term).then(|| name(label).to_string()),
                })
                .collect();
            let mut categories = Categories::default();
            all.iter().for_each(|one| categories.add(one.clone()));
            prop_assert_eq!(categories.into_vec(), compared(&all));
        }
    }

    #[test]
    fn tags_are_there_once() {
        assert_eq!(tags([" a", "", "b", "a", " "]), ["a", "b"]);
    }
}
