//! The list as it is written.

use super::OpmlQuery;
use crate::followable;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use tidegate_core::model::{
    EndpointId, FeedName, FeedRecord, ListPlace, OUTLINE_SUP, OutlineLabel, ShownAddress, SupId,
    SyncId, Time, Version, listed, shown_text,
};
use tidegate_core::short_hash::{ID_BYTES, base32};
use tidegate_core::sync::history_of_091;
use tidegate_core::sync_markup::sx091;
use tidegate_core::xml;
use tidegate_core::xml::ns::{OUTLINE, OUTLINE_PREFIX, SSE_091};

/// The prefix of sharing markup.
const PREFIX: &str = "sx";

/// A feed in the list.
pub(super) struct ListedFeed {
    pub(super) record: Arc<FeedRecord>,
    pub(super) address: String,
    pub(super) site: Option<String>,
    /// The id by which its updates are announced.
    pub(super) sup: Option<SupId>,
}

/// When the list last changed.
pub(super) fn until(entries: &[ListedFeed]) -> Option<Time> {
    entries.iter().filter_map(|entry| entry.record.enrolment.changed()).max()
}

/// The list of these feeds, whose names rise.
pub(super) fn write(
    entries: &[ListedFeed],
    opml_query: OpmlQuery,
    endpoint: &EndpointId,
    whole: &str,
) -> String {
    let mut opml =
        String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<opml version=\"2.0\"");
    xml::push_attribute(&mut opml, &format!("xmlns:{PREFIX}"), SSE_091);
    if entries.iter().any(|entry| entry.sup.is_some()) {
        xml::push_attribute(&mut opml, &format!("xmlns:{OUTLINE_PREFIX}"), OUTLINE);
    }
    opml.push_str(">\n<head>\n<title>Tidegate</title>\n");
    let until = until(entries);
    if let Some(until) = until {
        // Writing to a string cannot fail.
        let _ = writeln!(opml, "<dateModified>{}</dateModified>", until.rfc822());
    }
    let _ = write!(opml, "<{PREFIX}:sharing");
    for (name, time) in [("since", opml_query.since), ("until", until)] {
        if let Some(time) = time {
            xml::push_attribute(&mut opml, name, &time.rfc822());
        }
    }
    opml.push_str(" version=\"0.91\"");
    if opml_query.since.is_some() {
        let _ = write!(opml, "><{PREFIX}:related");
        xml::push_attribute(&mut opml, "link", whole);
        let _ = write!(opml, " type=\"complete\"/></{PREFIX}:sharing>");
    } else {
        opml.push_str("/>");
    }
    opml.push_str("\n</head>\n<body>\n");
    let shown = |entry: &&ListedFeed| {
        opml_query.since.is_none_or(|since| entry.record.enrolment.changed() >= Some(since))
    };
    let shown: Vec<&ListedFeed> = entries.iter().filter(shown).collect();
    let mut body = OutlineBody { opml, upstream: opml_query.upstream, endpoint, open: Vec::new() };
    let by_name: HashMap<&FeedName, &ListedFeed> =
        shown.iter().map(|entry| (&entry.record.name, *entry)).collect();
    let living = shown.iter().map(|entry| &*entry.record).filter(|record| !record.is_unlisted());
    for (record, place) in listed(living) {
        if let Some(entry) = by_name.get(&record.name) {
            body.feed(entry, place);
        }
    }
    body.close(0);
    for record in shown.iter().map(|entry| &*entry.record) {
        body.tombstones(record);
    }
    body.opml.push_str("</body>\n</opml>\n");
    body.opml
}

/// The outlines, as far as they are written.
struct OutlineBody<'a> {
    opml: String,
    upstream: bool,
    endpoint: &'a EndpointId,
    /// The positions of the outlines that are open.
    open: Vec<u32>,
}

impl OutlineBody<'_> {
    fn close(&mut self, depth: usize) {
        while self.open.len() > depth {
            self.open.pop();
            self.opml.push_str("</outline>\n");
        }
    }

    /// Adds the start tag of an outline with the attributes that it has.
    fn start<'t>(&mut self, attributes: impl IntoIterator<Item = (&'t str, Option<&'t str>)>) {
        self.opml.push_str("<outline");
        for (name, value) in attributes {
            value.into_iter().for_each(|value| xml::push_attribute(&mut self.opml, name, value));
        }
        self.opml.push('>');
    }

    /// Adds a feed, within the folders around it; it stays open for those in it.
    fn feed(&mut self, entry: &ListedFeed, place: Option<&ListPlace>) {
        let folders = place.map(|place| place.folders.as_slice()).unwrap_or_default();
        let around = folders.iter().zip(&self.open);
        let around = around.take_while(|(folder, open)| folder.position == **open).count();
        self.close(around);
        for folder in folders.iter().skip(around) {
            let shown = |text: &Option<String>| text.as_deref().map(|text| shown_text(text, None));
            let label = &folder.label;
            let label = OutlineLabel {
                text: shown(&label.text).or(shown(&label.title)).or(Some(String::new())),
                title: shown(&label.title),
                description: shown(&label.description),
                category: shown(&label.category),
                language: shown(&label.language),
            };
            self.start(attributes_of(&label));
            self.opml.push('\n');
            self.open.push(folder.position);
        }
        self.outline(entry, place);
        match place {
            Some(place) => self.open.push(place.position),
            None => self.opml.push_str("</outline>\n"),
        }
    }

    /// Adds the start tag of a feed and what it shares.
    fn outline(
        &mut self,
        ListedFeed { record, address, site, sup }: &ListedFeed,
        place: Option<&ListPlace>,
    ) {
        let label = record.shown_label(place);
        let is_feed = followable(address).is_some();
        // What the reader's list says of the page goes before what the feed does. Where a feed names no
        // page, its id stands in, which may be the address of the feed.
        let own = place.and_then(|place| place.site.as_deref()).and_then(followable);
        let site = own.or_else(|| site.as_deref().and_then(followable));
        let site = site.map(|site| ShownAddress::new(site, None));
        // Who follows the SUP document knows by it which feed an id means.
        let of_sup = format!("{OUTLINE_PREFIX}:{OUTLINE_SUP}");
        let addresses = [
            ("xmlUrl", Some(address.as_str()).filter(|_| is_feed)),
            ("htmlUrl", site.as_ref().and_then(ShownAddress::link)),
            (&*of_sup, sup.as_ref().map(SupId::as_str)),
        ];
        let kind = [("type", Some("rss").filter(|_| is_feed))];
        self.start(kind.into_iter().chain(attributes_of(&label)).chain(addresses));
        self.share(record, place.map_or(0, |place| place.number), false);
    }

    /// Adds what is left of a feed that was removed, or of places that it has no more: its name.
    fn tombstones(&mut self, record: &FeedRecord) {
        // A tombstone is one by its sharing markup only.
        if record.enrolment.history.is_empty() {
            return;
        }
        for number in record.enrolment.numbers() {
            if record.is_unlisted() || !record.enrolment.has_number(number) {
                self.start([("text", Some(record.name.as_str()))]);
                self.share(record, number, true);
                self.opml.push_str("</outline>\n");
            }
        }
    }

    /// Adds what an outline shares.
    fn share(&mut self, record: &FeedRecord, number: u32, deleted: bool) {
        let mut history = record.enrolment.history.iter().cloned();
        let Some(last) = history.next() else { return };
        let Some(id) = id(&record.name, number, self.upstream, self.endpoint) else { return };
        let updates = record.enrolment.version;
        let history = history_of_091(updates, last, history.collect());
        let version = Version { id, updates, deleted, noconflicts: None, history, data: () };
        let version = (&version, false);
        sx091::sync_element::<_, ()>(&mut self.opml, PREFIX, None, version, &[], &mut |_, _| {});
    }
}

/// What an outline is called, as its attributes say it.
fn attributes_of(label: &OutlineLabel) -> [(&str, Option<&str>); 5] {
    [
        ("text", label.text.as_deref()),
        ("title", label.title.as_deref()),
        ("description", label.description.as_deref()),
        ("category", label.category.as_deref()),
        ("language", label.language.as_deref()),
    ]
}

/// The id of a subscription: the same as long as the feed has its name, and no other gateway's. `number`:
/// which of the feed's places it is.
fn id(name: &FeedName, number: u32, upstream: bool, endpoint: &EndpointId) -> Option<SyncId> {
    let mut hash = Sha256::new();
    hash.update(if upstream { "upstream" } else { "subscription" });
    // No name holds a NUL, so two pairs never hash the same bytes.
    hash.update([0]);
    hash.update(name.as_str());
    if number > 0 {
        hash.update([0]);
        hash.update(number.to_be_bytes());
    }
    SyncId::new(&format!("{endpoint}.{}", base32(hash, ID_BYTES))).ok()
}
