//! The rule `images`, and what addresses of pictures are compared by.

use super::NewsRule;
use super::addresses::{FOLLOWED_ATTRIBUTES, looks_like_address};
use super::field::{FieldKind, element_name};
use crate::rules::Rule;
use tidegate_core::model::{Field, NoiseClass};
use tidegate_core::xml::plain_address::plain_link;

pub(super) const RULE: NewsRule = NewsRule {
    rule: Rule { name: "images", sentence: "preview images, which publishers rotate" },
    class: NoiseClass::Images,
    is_noise: |field, value| match field.kind {
        FieldKind::Element => looks_like_address(value) && is_image(value),
        FieldKind::Attribute(name) => {
            PREVIEWS.iter().any(|part| field.name.contains(part))
                || FOLLOWED_ATTRIBUTES.contains(&name) && is_image(value)
        }
        _ => false,
    },
};

const PREVIEWS: [&str; 4] = ["thumbnail", "image", "logo", "icon"];
/// Endings of addresses of images.
const IMAGES: [&str; 8] = [".jpg", ".jpeg", ".png", ".gif", ".webp", ".svg", ".avif", ".ico"];

/// Whether an address is that of a picture, by its ending.
pub(crate) fn is_image(address: &str) -> bool {
    let path = address.split(['?', '#', '|']).next().unwrap_or(address);
    IMAGES.iter().any(|end| {
        let at = path.len().checked_sub(end.len());
        at.and_then(|at| path.get(at..)).is_some_and(|own| own.eq_ignore_ascii_case(end))
    })
}

/// Whether the address that is one of an entry's `fields` is that of a picture, by the element that
/// it is an attribute of: `img`, or one that says so beside it.
pub(super) fn is_of_picture(fields: &[Field<'_>], at: usize) -> bool {
    let element = |field: &Field<'_>| field.path.rsplit_once('@').map(|(element, _)| element.len());
    let Some(field) = fields.get(at) else { return false };
    let Some((own, name)) = field.path.rsplit_once('@') else { return false };
    if name == "src" && is_named(own, "img") {
        return true;
    }
    let is_file = is_named(own, "media:content") || own == "enclosure" || own == "link[enclosure]";
    // An element has an attribute but once: where its name comes again, another begins.
    let is_beside = |other: &&Field<'_>| {
        element(other) == Some(own.len()) && other.path.starts_with(own) && other.path != field.path
    };
    let before = fields.get(..at).unwrap_or_default().iter().rev().take_while(is_beside);
    let behind = fields.get(at + 1..).unwrap_or_default().iter().take_while(is_beside);
    is_file
        && before.chain(behind).any(|other| {
            let says = other.path.get(own.len() + 1..).unwrap_or_default();
            (says == "type" && other.value.starts_with("image/"))
                || (says == "medium" && other.value == "image")
        })
}

fn is_named(element: &str, name: &str) -> bool {
    let last = element_name(element);
    last == name || last.rsplit([':', '}']).next() == Some(name)
}

/// The last parts of a picture's path that say which picture it is; before them stand the host and
/// what it calls the place where it keeps pictures.
const PICTURE_PARTS: usize = 2;

/// The address of a picture without the host, and without the path but for its last parts.
pub(super) fn picture_address(value: &str) -> String {
    let plain = plain_link(value);
    let path_end = plain.find(['?', '#']).unwrap_or(plain.len());
    let (path, rest) = plain.split_at(path_end);
    let Some((_, path)) = path.split_once('/') else { return plain };
    let from = path.rmatch_indices('/').nth(PICTURE_PARTS - 1).map_or(0, |(at, _)| at + 1);
    format!("{}{rest}", path.get(from..).unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn pictures_without_an_ending() {
        let picture = |fields: &[(&str, &str)], at: usize| {
            let field = |(path, value): &(&str, &str)| Field {
                path: Cow::Owned((*path).to_owned()),
                value: Cow::Owned((*value).to_owned()),
            };
            is_of_picture(&fields.iter().map(field).collect::<Vec<_>>(), at)
        };
        let image = ("enclosure@type", "image/jpeg");
        assert!(picture(&[("enclosure@url", "a"), ("enclosure@length", "1"), image], 0));
        assert!(picture(&[image, ("enclosure@url", "a")], 1));
        assert!(!picture(&[("enclosure@url", "a"), ("enclosure@type", "audio/mpeg")], 0));
        let (url, medium) = ("media:group/media:content@url", "media:group/media:content@medium");
        assert!(picture(&[(url, "a"), (medium, "image")], 0));
        assert!(!picture(&[(url, "a"), (medium, "video"), (url, "b"), (medium, "image")], 0));
        assert!(picture(&[(url, "a"), (medium, "video"), (url, "b"), (medium, "image")], 2));
        assert!(picture(&[("{http://www.w3.org/1999/xhtml}img@src", "a")], 0));
        assert!(!picture(&[("link[alternate]@href", "a"), ("link[alternate]@type", "image/x")], 0));

        let address = picture_address;
        assert_eq!(address("https://a.example/cdn/1/media/abc?w=1"), "media/abc?w=1");
        assert_eq!(address("//b.example/media/abc/?w=1"), "media/abc?w=1");
        assert_ne!(address("//b.example/media/abd?w=1"), address("//b.example/media/abc?w=1"));
        assert_eq!(address("https://b.example/abc"), "abc");
    }
}
