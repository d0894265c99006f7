//! Lists that are searched, filtered and shown page by page: their queries, and the links between pages.

use super::{Problem, Query};
use maud::{Markup, html};
use serde::Serialize;
use utoipa::ToSchema;

/// How many entries a page shows.
pub(super) const PAGE: usize = 50;
/// The longest text that is searched for, in characters; the rest is cut off.
const SEARCH_LIMIT: usize = 100;

/// What is searched for (`?q=`), in lower case; empty for nothing.
pub(super) fn search(query: &Query) -> Result<String, Problem> {
    let text = query.get("q")?.unwrap_or_default().trim();
    Ok(text.chars().take(SEARCH_LIMIT).collect::<String>().to_lowercase())
}

/// Which page is asked for (`?page=`), from 1.
pub(super) fn page(query: &Query) -> Result<usize, Problem> {
    let page = |value: &str| value.parse().ok().filter(|page| *page > 0);
    Ok(query.parse("page", "page is a number from 1", page)?.unwrap_or(1))
}

/// A word of a list, for a query or a form, and what people call it.
pub(super) trait NamedChoice: Copy + PartialEq + 'static {
    /// All that there are, in the order to show them.
    const ALL: &'static [Self];

    /// Its value in an address or a form.
    fn name(self) -> &'static str;

    /// What people read.
    fn label(self) -> &'static str;

    /// The choice of a name.
    fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|choice| choice.name() == name)
    }

    /// The button of a form that chooses it (`do`).
    fn button(self) -> Markup {
        html! { button name="do" value=(self.name()) { (self.label()) } }
    }
}

/// Defines choices: each with its name and its label.
macro_rules! choices {
    ($(#[$about:meta])* $seen:vis enum $type:ident {
        $($(#[$of_one:meta])* $choice:ident = $name:literal, $label:literal;)+
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $seen enum $type { $($(#[$of_one])* $choice,)+ }

        impl $crate::paging::NamedChoice for $type {
            const ALL: &'static [Self] = &[$(Self::$choice,)+];

            fn name(self) -> &'static str {
                match self { $(Self::$choice => $name,)+ }
            }

            fn label(self) -> &'static str {
                match self { $(Self::$choice => $label,)+ }
            }
        }
    };
}
pub(super) use choices;

/// The choice that a key names.
pub(super) fn choice<T: NamedChoice + Default>(query: &Query, key: &str) -> Result<T, Problem> {
    let names: Vec<&str> = T::ALL.iter().map(|choice| choice.name()).collect();
    let wanted = format!("{key} is one of {}", names.join(", "));
    Ok(query.parse(key, &wanted, T::find)?.unwrap_or_default())
}

/// The name of a choice in an address, where it is not the usual one.
pub(super) fn unusual<T: NamedChoice + Default>(choice: T) -> &'static str {
    if choice == T::default() { "" } else { choice.name() }
}

/// The choices of a form's field, one of them chosen; `more`: what stands behind the label of each.
pub(super) fn select<T: NamedChoice>(
    field: &str,
    label: &str,
    chosen: T,
    more: impl Fn(T) -> String,
) -> Markup {
    html! {
        label { span { (label) }
            select name=(field) { @for choice in T::ALL {
                option value=(choice.name()) selected[*choice == chosen] {
                    (choice.label()) (more(*choice))
                }
            } } }
    }
}

/// The form that searches a list; `hint`: what is searched in; `choices`: its further fields.
pub(super) fn search_form(action: &str, search: &str, hint: &str, choices: &Markup) -> Markup {
    html! {
        form.search role="search" action=(action) method="get" {
            label { span { "Search" }
                input type="search" name="q" value=(search) placeholder=(hint); }
            (choices)
            button type="submit" { "Show" }
        }
    }
}

/// The address of a page of a list; values that are empty are left out.
pub(super) fn address(path: &str, pairs: &[(&str, &str)], page: usize) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
    if page > 1 {
        query.append_pair("page", &page.to_string());
    }
    match query.finish() {
        query if query.is_empty() => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

/// Where a page is in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct PagePlace {
    /// How many entries all pages have together.
    matches: usize,
    /// Which page it is, and how many there are.
    #[schema(minimum = 1)]
    page: usize,
    #[schema(minimum = 1)]
    pages: usize,
}

impl PagePlace {
    /// The place of a page that was asked for; the last page where it is behind that.
    fn new(matches: usize, wanted: usize) -> Self {
        let pages = matches.div_ceil(PAGE).max(1);
        Self { matches, page: wanted.clamp(1, pages), pages }
    }

    /// The entries of the page that was asked for, and where that is among all.
    pub(super) fn cut<T>(all: Vec<T>, wanted: usize) -> (impl Iterator<Item = T>, Self) {
        let place = Self::new(all.len(), wanted);
        (all.into_iter().skip(place.skipped()).take(PAGE), place)
    }

    /// How many entries are before this page.
    const fn skipped(&self) -> usize {
        (self.page - 1) * PAGE
    }

    /// The links to other pages; nothing where there are none. `what`: what is listed, in the plural.
    pub(super) fn links(&self, what: &str, address: impl Fn(usize) -> String) -> Markup {
        let last = self.matches.min(self.skipped() + PAGE);
        html! {
            @if self.pages > 1 {
                nav.pages aria-label={ "Pages of " (what) } {
                    @if self.page > 1 {
                        a href=(address(1)) { "First" }
                        a rel="prev" href=(address(self.page - 1)) { "Previous" }
                    }
                    span { (self.skipped() + 1) " to " (last) " of " (self.matches) " " (what) }
                    @if self.page < self.pages {
                        a rel="next" href=(address(self.page + 1)) { "Next" }
                        a href=(address(self.pages)) { "Last" }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_behind_the_last_one_is_the_last_one() {
        for (matches, asked, page, pages, skipped) in [
            (0, 1, 1, 1, 0),
            (0, 9, 1, 1, 0),
            (50, 2, 1, 1, 0),
            (51, 2, 2, 2, 50),
            (51, 9, 2, 2, 50),
        ] {
            let place = PagePlace::new(matches, asked);
            assert_eq!((place.page, place.pages, place.skipped()), (page, pages, skipped));
        }
        let links = PagePlace::new(101, 2).links("feeds", |page| format!("/?page={page}"));
        let links = links.into_string();
        for part in
            ["51 to 100 of 101 feeds", "rel=\"prev\" href=\"/?page=1\"", "href=\"/?page=3\""]
        {
            assert!(links.contains(part), "{links}");
        }
        assert_eq!(PagePlace::new(50, 1).links("feeds", |_| String::new()).into_string(), "");
        // An address names what is not usual.
        assert_eq!(address("/", &[("q", ""), ("show", "")], 1), "/");
        assert_eq!(address("/x", &[("q", "a&b"), ("show", "")], 3), "/x?q=a%26b&page=3");
    }
}
