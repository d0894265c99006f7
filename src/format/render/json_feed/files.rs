//! The files and images of an entry: its enclosures, and what Media RSS and the podcasts' module say.

use crate::render::convert::{Reading, Text};
use crate::render::media::of_address;
use serde::Serialize;
use tidegate_core::xml::address::is_address;
use tidegate_core::xml::ns::{ITUNES, MEDIA};
use tidegate_core::xml::tree::Element;

/// The most attachments of one entry.
const ATTACHMENT_LIMIT: usize = 100;
/// How deep elements of Media RSS are looked for: in a group, and within a content.
const DEPTH_LIMIT: usize = 3;

/// What an entry has beside its text.
#[derive(Debug, Default)]
pub struct Files {
    /// The address of its main image.
    pub image: Option<String>,
    /// `media:description`, which stands in where there is no text.
    pub description: Option<Text>,
    /// Its files.
    pub attachments: Vec<Attachment>,
}

/// An attachment (JSON Feed 1.1, "Attachments").
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Attachment {
    url: String,
    mime_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_in_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_in_seconds: Option<u64>,
}

impl Attachment {
    fn is_played(&self) -> bool {
        ["audio/", "video/"].iter().any(|kind| self.mime_type.starts_with(kind))
    }
}

/// What Media RSS and the podcasts' module say, in order.
#[derive(Default)]
struct MediaElements<'a> {
    thumbnails: Vec<&'a str>,
    contents: Vec<&'a Element>,
    descriptions: Vec<&'a Element>,
    image: Option<&'a str>,
    duration: Option<u64>,
}

impl<'a> MediaElements<'a> {
    fn look(&mut self, element: &'a Element, depth: usize) {
        if element.namespace == MEDIA {
            match element.name.as_str() {
                "thumbnail" => self.thumbnails.extend(element.attribute("url")),
                "content" => self.contents.push(element),
                "description" => self.descriptions.push(element),
                _ => {}
            }
            if depth < DEPTH_LIMIT {
                element.elements().for_each(|child| self.look(child, depth + 1));
            }
        } else if element.namespace == ITUNES {
            match element.name.as_str() {
                "image" => self.image = self.image.or_else(|| element.attribute("href")),
                "duration" => self.duration = self.duration.or_else(|| seconds(&element.content())),
                _ => {}
            }
        }
    }
}

impl Files {
    /// Of an entry.
    pub fn of(entry: &Reading) -> Self {
        let mut said = MediaElements::default();
        entry.foreign.iter().for_each(|element| said.look(element, 0));
        let mut attachments: Vec<Attachment> = Vec::new();
        let enclosed = entry.enclosures.iter().map(|enclosure| {
            let length = enclosure.length.as_deref().and_then(number);
            Attachment {
                url: enclosure.address.clone(),
                mime_type: enclosure.media_type().to_owned(),
                title: enclosure.title.clone(),
                size_in_bytes: length.filter(|length| *length > 0),
                duration_in_seconds: None,
            }
        });
        let contents = said.contents.iter().filter_map(|content| {
            let url = content.attribute("url")?;
            let media = content.attribute("type").filter(|media| media.contains('/'));
            let title = content.elements().find(|child| child.name == "title");
            Some(Attachment {
                url: url.to_owned(),
                mime_type: media.unwrap_or_else(|| of_address(url)).to_owned(),
                title: title.and_then(Element::words),
                size_in_bytes: content.attribute("fileSize").and_then(number),
                duration_in_seconds: content.attribute("duration").and_then(seconds),
            })
        });
        enclosed.chain(contents).for_each(|file| add(&mut attachments, file));
        // The episode's own length, where there is one file to play.
        let mut played = attachments.iter_mut().filter(|attachment| attachment.is_played());
        if let (Some(only), None) = (played.next(), played.next()) {
            only.duration_in_seconds = only.duration_in_seconds.or(said.duration);
        }
        let pictures = said.contents.iter().filter(|content| is_image(content));
        let enclosed = entry.enclosures.iter().filter(|one| one.media_type().starts_with("image/"));
        let mut images = said
            .thumbnails
            .iter()
            .copied()
            .chain(said.image)
            .chain(pictures.filter_map(|picture| picture.attribute("url")))
            .chain(enclosed.map(|enclosure| enclosure.address.as_str()));
        let image = images.find(|address| is_address(address)).map(ToOwned::to_owned);
        let description = said.descriptions.iter().find_map(|description| {
            let is_html = description.attribute("type") == Some("html");
            description.words().map(if is_html { Text::Html } else { Text::Plain })
        });
        Self { image, description, attachments }
    }
}

/// Adds a file, or what is known of it in addition.
fn add(attachments: &mut Vec<Attachment>, new: Attachment) {
    if let Some(known) = attachments.iter_mut().find(|known| known.url == new.url) {
        known.title = known.title.take().or(new.title);
        known.size_in_bytes = known.size_in_bytes.or(new.size_in_bytes);
        known.duration_in_seconds = known.duration_in_seconds.or(new.duration_in_seconds);
    } else if is_address(&new.url) && attachments.len() < ATTACHMENT_LIMIT {
        attachments.push(new);
    }
}

fn is_image(content: &Element) -> bool {
    let media = content.attribute("type");
    content.attribute("medium") == Some("image")
        || media.is_some_and(|media| media.starts_with("image/"))
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// A duration as `H:MM:SS`, `M:SS` or seconds; a fraction of a second is left out.
fn seconds(text: &str) -> Option<u64> {
    let parts: Vec<&str> = text.trim().split(':').collect();
    if parts.len() > 3 {
        return None;
    }
    parts.iter().try_fold(0_u64, |sum, part| {
        let whole = part.trim().split('.').next().unwrap_or_default();
        sum.checked_mul(60)?.checked_add(whole.parse().ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_seconds() {
        for (text, read) in [
            ("1:02:03", Some(3723)),
            ("62:03", Some(3723)),
            (" 3723 ", Some(3723)),
            ("3723.9", Some(3723)),
            ("1:2:3:4", None),
            ("soon", None),
            ("", None),
            ("99999999999999999999:0", None),
        ] {
            assert_eq!(seconds(text), read, "{text:?}");
        }
    }
}
