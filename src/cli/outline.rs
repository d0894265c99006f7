//! `tidegate merge` of two OPML lists with SSE 0.91 (sections 3.2 and 4.4): LOCAL's document with the
//! outlines of both.

use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};
use tidegate_core::model::{EndpointId, Shared, Stamp, SyncId, Version};
use tidegate_core::sync::{
    By091, Canonical, OutlineItem091, Outlines, PlacedOutline, create, in_order, merge_outlines,
};
use tidegate_core::sync_markup::Dialect;
use tidegate_core::sync_markup::sx091;
use tidegate_core::xml;
use tidegate_core::xml::ns::SSE_091;
use tidegate_format::parse;
use tidegate_format::parse::opml::{Outline, OutlineList, read};
use tidegate_format::pull::Side;

/// How far into a document its element is looked for, in bytes.
const SNIFFED: usize = 4096;
/// What the ids of outlines without `sx:sync` begin with, while they are merged; none is written.
const PLAIN: &str = "outline-without-sync.";

/// Whether a document seems to be a list.
pub(super) fn is_list(bytes: &[u8]) -> bool {
    let head = bytes.get(..SNIFFED).unwrap_or(bytes).to_ascii_lowercase();
    memchr::memmem::find(&head, b"<opml").is_some()
}

/// What an outline says, with markup from one of the documents.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OutlineText {
    /// Its attributes; `None` for what a list kept of a conflict, which is its markup alone.
    attributes: Option<Vec<(String, String)>>,
    markup: String,
    /// The prefixes that it uses.
    needs: Vec<(String, String)>,
    /// Whether it bore `conflict="true"`, as what is kept of it does (SSE 0.91 section 5.2).
    conflict: bool,
}

impl Canonical for OutlineText {
    fn canonical(&self) -> &[u8] {
        self.markup.as_bytes()
    }
}

type OutlineVersion = Version<PlacedOutline<OutlineText>>;

/// Merges the list `incoming` into `local`, whatever charset each is in.
pub(super) fn merged_bytes(local: &[u8], incoming: &[u8]) -> Result<String, (Side, String)> {
    let text = |bytes, side| {
        let decoded = parse::characters(bytes, None, &parse::Limits::default());
        decoded.map_err(|error| (side, error.to_string()))
    };
    let (ours, theirs) = (text(local, Side::Local)?, text(incoming, Side::Incoming)?);
    let sum = merged(&ours.text, &theirs.text)?;
    let declared = sum.trim_start().strip_prefix("<?xml").and_then(|rest| rest.split_once("?>"));
    Ok(match declared {
        // It is written as UTF-8 now.
        Some((_, rest)) if ours.encoding != "UTF-8" => {
            format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{rest}")
        }
        _ => sum,
    })
}

/// Merges the list `incoming` into `local`. An error names its side and says its line.
pub(super) fn merged(local: &str, incoming: &str) -> Result<String, (Side, String)> {
    let ours = listed(local).map_err(|error| (Side::Local, error))?;
    let theirs = listed(incoming).map_err(|error| (Side::Incoming, error))?;
    let mut outlines: Outlines<OutlineText> = BTreeMap::new();
    for item in items(&ours, local).map_err(|error| (Side::Local, error))? {
        outlines.insert(item.item.winner.id.clone(), item);
    }
    let new = items(&theirs, incoming).map_err(|error| (Side::Incoming, error))?;
    if !new.is_empty() && new.iter().all(|item| is_plain(id(item))) {
        let said = "line 1: nothing in it is shared: no outline has sx:sync";
        return Err((Side::Incoming, said.to_owned()));
    }
    let new = sharing(new, &outlines);
    let scope = PrefixScope::new(&ours, local);
    if !merge_outlines(&mut outlines, new) {
        return Ok(local.to_owned());
    }
    let (before, after) = around(&ours, local).map_err(|error| (Side::Local, error))?;
    Ok(format!("{before}{}\n{after}", scope.body(&outlines)))
}

fn listed(text: &str) -> Result<OutlineList, String> {
    let list = read(text)?;
    match &list.invalid {
        Some(problem) => Err(format!("line {}: {}", problem.line, problem.message)),
        None => Ok(list),
    }
}

/// LOCAL's text in front of its outlines and behind them.
fn around(list: &OutlineList, text: &str) -> Result<(String, String), String> {
    let (before, after) = (text.get(..list.body.start), text.get(list.body.end..));
    let (Some(before), Some(after)) = (before, after) else {
        return Err("the list has no body".to_owned());
    };
    if let Some(open) = before.strip_suffix("/>") {
        // The body is an empty element: what follows it is all that there is.
        let behind = text.get(list.body.start..).unwrap_or_default();
        return Ok((format!("{}>", open.trim_end()), format!("</body>{behind}")));
    }
    if after.is_empty() {
        return Err("the list has no body, or it does not end".to_owned());
    }
    Ok((before.trim_end().to_owned(), after.to_owned()))
}

/// The outlines of a list as items, those without `sx:sync` under ids of their paths.
fn items(list: &OutlineList, text: &str) -> Result<Vec<OutlineItem091<OutlineText>>, String> {
    let mut ids: Vec<SyncId> = Vec::with_capacity(list.outlines.len());
    let mut lines: HashMap<SyncId, usize> = HashMap::new();
    let mut positions: HashMap<Option<usize>, u32> = HashMap::new();
    let mut items = Vec::with_capacity(list.outlines.len());
    for outline in &list.outlines {
        let parent = outline.parent.and_then(|number| ids.get(number)).cloned();
        let id = match &outline.sync {
            Some(sync) => sync.item.winner.id.clone(),
            None => plain_id(outline, parent.as_ref(), &lines)?,
        };
        if let Some(first) = lines.insert(id.clone(), outline.line) {
            let line = outline.line;
            return Err(format!("line {line}: the sync id {id:?} is that of line {first} again"));
        }
        ids.push(id.clone());
        let place = positions.entry(outline.parent).or_default();
        let position = *place;
        *place = place.saturating_add(1);
        let data = PlacedOutline { parent, position, data: outline_text(outline, list, text) };
        let sync = outline.sync.clone();
        let By091 { item, conflict } = sync.map_or_else(|| unshared(id), Ok::<_, String>)?;
        let lost = |lost: &Version<String>| {
            let (markup, needs) = (lost.data.clone(), needs(&lost.data, list));
            let data = OutlineText { attributes: None, markup, needs, conflict: false };
            lost.with(PlacedOutline { parent: None, position: 0, data })
        };
        let conflicts = item.conflicts.iter().map(lost).collect();
        items.push(By091 { item: Shared { winner: item.winner.with(data), conflicts }, conflict });
    }
    Ok(items)
}

fn outline_text(outline: &Outline, list: &OutlineList, text: &str) -> OutlineText {
    let pieces = outline.other.iter().filter_map(|place| text.get(place.clone()));
    let markup: String = pieces.collect();
    let names = outline.attributes.iter().map(|(name, _)| format!(" {name}"));
    let used: String = names.chain([markup.clone()]).collect();
    let (attributes, needs) = (Some(outline.attributes.clone()), needs(&used, list));
    let conflict = outline.sync.as_ref().is_some_and(|sync| sync.conflict);
    OutlineText { attributes, markup, needs, conflict }
}

/// The prefixes that a piece of markup seems to use, with what they are bound to.
fn needs(markup: &str, list: &OutlineList) -> Vec<(String, String)> {
    let used = |prefix: &str| {
        let named = [format!("<{prefix}:"), format!(" {prefix}:")];
        !prefix.is_empty() && named.iter().any(|named| markup.contains(named))
    };
    list.namespaces.iter().filter(|(prefix, _)| used(prefix)).cloned().collect()
}

/// An id that both lists give an outline of the same text in the same folder.
fn plain_id(
    outline: &Outline,
    parent: Option<&SyncId>,
    taken: &HashMap<SyncId, usize>,
) -> Result<SyncId, String> {
    let parts = [
        parent.map_or("", SyncId::as_str),
        outline.text().unwrap_or_default(),
        outline.attribute("xmlUrl").unwrap_or_default(),
    ];
    // More than there are outlines, so one is free.
    for ordinal in 0..=taken.len() {
        let digest = Sha256::digest(format!("{}\0{ordinal}", parts.join("\0")));
        let id = format!("{PLAIN}{}", data_encoding::HEXLOWER.encode(&digest));
        let id = SyncId::new(&id).map_err(|error| error.to_string())?;
        if !taken.contains_key(&id) {
            return Ok(id);
        }
    }
    Err(format!("line {}: the outline cannot be told from others", outline.line))
}

fn unshared(id: SyncId) -> Result<By091<String>, String> {
    let by = Stamp::By(EndpointId::new(PLAIN).map_err(|error| error.to_string())?);
    Ok(By091 { item: create(id, String::new(), by, None), conflict: false })
}

fn is_plain(id: &SyncId) -> bool {
    id.as_str().starts_with(PLAIN)
}

const fn id(item: &OutlineItem091<OutlineText>) -> &SyncId {
    &item.item.winner.id
}

/// What takes part in sharing: outlines with `sx:sync`, and the folders around them.
fn sharing(
    items: Vec<OutlineItem091<OutlineText>>,
    local: &Outlines<OutlineText>,
) -> Vec<OutlineItem091<OutlineText>> {
    let parents: HashMap<&SyncId, Option<&SyncId>> =
        items.iter().map(|item| (id(item), item.outline().parent.as_ref())).collect();
    let mut wanted: HashSet<SyncId> = HashSet::new();
    for item in items.iter().filter(|item| !is_plain(id(item))) {
        let mut next = Some(id(item));
        while let Some(id) = next.filter(|id| wanted.insert((*id).clone())) {
            next = parents.get(id).copied().flatten();
        }
    }
    let kept = |item: &OutlineItem091<OutlineText>| {
        wanted.contains(id(item)) && !(is_plain(id(item)) && local.contains_key(id(item)))
    };
    items.into_iter().filter(kept).collect()
}

/// What prefixes mean in LOCAL.
struct PrefixScope {
    bound: Vec<(String, String)>,
    prefix: String,
    declare: Option<&'static str>,
}

impl PrefixScope {
    fn new(list: &OutlineList, text: &str) -> Self {
        let head = text.get(..list.body.start).unwrap_or_default();
        // What is declared further inside is not in scope everywhere.
        let outside = |(prefix, _): &&(String, String)| head.contains(&format!("xmlns:{prefix}"));
        let bound: Vec<_> = list.namespaces.iter().filter(outside).cloned().collect();
        let ours = bound
            .iter()
            .find(|(prefix, uri)| !prefix.is_empty() && Dialect::of(uri) == Some(Dialect::Sse091));
        match ours {
            Some((prefix, _)) => Self { prefix: prefix.clone(), bound, declare: None },
            None => Self { prefix: "sx".to_owned(), bound, declare: Some(SSE_091) },
        }
    }

    /// Declares what LOCAL does not.
    fn declare(&self, out: &mut String, needs: &[(String, String)]) {
        for (prefix, uri) in needs.iter().filter(|need| !self.bound.contains(need)) {
            xml::push_attribute(out, &format!("xmlns:{prefix}"), uri);
        }
    }

    /// The outlines, each on a line of its own.
    fn body(&self, outlines: &Outlines<OutlineText>) -> String {
        let mut out = String::new();
        let mut open = 0;
        for (depth, item) in in_order(outlines) {
            self.close(&mut out, &mut open, depth);
            out.push('\n');
            out.push_str(&"  ".repeat(depth + 1));
            let By091 { item, conflict } = item;
            self.outline(&mut out, (&item.winner, *conflict), &item.conflicts);
            open = depth + 1;
        }
        self.close(&mut out, &mut open, 0);
        out
    }

    fn close(&self, out: &mut String, open: &mut usize, depth: usize) {
        while *open > depth {
            *open -= 1;
            out.push_str("</outline>");
        }
    }

    /// The start tag of an outline, marked as contested or not, and all in it but other outlines.
    fn outline(
        &self,
        out: &mut String,
        (version, conflict): (&OutlineVersion, bool),
        conflicts: &[OutlineVersion],
    ) {
        let OutlineText { attributes, markup, needs, .. } = &version.data.data;
        out.push_str("<outline");
        self.declare(out, needs);
        for (name, value) in attributes.iter().flatten() {
            xml::push_attribute(out, name, value);
        }
        out.push('>');
        if !is_plain(&version.id) {
            let mut kept = |out: &mut String, lost: &OutlineVersion| {
                let said = &lost.data.data;
                if said.attributes.is_none() {
                    self.declare(out, &said.needs);
                    out.push('>');
                    return out.push_str(&said.markup);
                }
                out.push('>');
                self.outline(out, (lost, said.conflict), &[]);
                out.push_str("</outline>");
            };
            let version = (version, conflict);
            sx091::sync_element(out, &self.prefix, self.declare, version, conflicts, &mut kept);
        }
        out.push_str(markup);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sync(id: &str, version: u32, rest: &str, history: &str) -> String {
        format!(
            "<s:sync id='{id}' version='{version}'{rest}><s:history {history}</s:history></s:sync>"
        )
    }

    fn list(outlines: &str) -> String {
        format!(
            "<?xml version='1.0'?>\n<opml version='2.0' xmlns:s='https://www.microsoft.com/schemas/rss/sse'>\n\
             <head><title>Ours</title></head>\n<body>{outlines}</body>\n</opml>\n"
        )
    }

    /// Texts with their depths, `!` for a conflict and `x` for what is deleted.
    fn shown(text: &str) -> String {
        let list = read(text).unwrap();
        assert!(list.problems.is_empty(), "{:?} in {text}", list.problems);
        roxmltree::Document::parse(text).unwrap();
        let lines = list.outlines.iter().map(|outline| {
            let mark = match outline.sync.as_ref() {
                None => "?",
                Some(sync) if sync.conflict => "!",
                Some(sync) if sync.item.winner.deleted => "x",
                Some(_) => "",
            };
            let depth = list.folder(outline).len();
            format!("{}{}{mark}", "-".repeat(depth), outline.text().unwrap_or_default())
        });
        lines.collect::<Vec<_>>().join(" ")
    }

    fn feed(name: &str, inner: &str) -> String {
        format!("<outline text='{name}' xmlUrl='http://{name}/'>{inner}</outline>")
    }

    #[test]
    fn both_lists_come_together_in_the_first_ones_document() {
        let first = "by='A'>";
        let ours = list(&format!(
            "<outline text='Mine'/>{}<outline text='F'>{}</outline>",
            feed("a", &sync("1", 1, "", first)),
            feed("b", &sync("2", 1, "", first)),
        ));
        let second = "when='Mon, 23 May 2005 09:43:33 GMT' by='B'><s:update by='A'/>";
        let theirs = list(&format!(
            "<outline text='Theirs'/>{}<outline text='F'>{}{}</outline>",
            feed("z", &sync("1", 2, "", second)),
            feed("b", &sync("2", 1, "", first)),
            feed("c", &sync("3", 1, "", first)),
        ));
        let sum = merged(&ours, &theirs).unwrap();
        assert_eq!(shown(&sum), "Mine? z F? -b -c");
        assert!(sum.starts_with("<?xml version='1.0'?>\n<opml"), "{sum}");
        assert!(sum.contains("<title>Ours</title>"), "{sum}");
        assert_eq!(merged(&sum, &theirs).unwrap(), sum, "nothing is new any more");
        assert_eq!(merged(&ours, &ours).unwrap(), ours, "byte for byte");
        let other = merged(&theirs, &ours).unwrap();
        assert!(shown(&other).contains("F? -b -c"), "{other}");
        let third = "when='Tue, 24 May 2005 09:43:33 GMT' by='B'>\
            <s:update when='Mon, 23 May 2005 09:43:33 GMT' by='B'/><s:update by='A'/>";
        // A tombstone comes along and takes the address with it.
        let gone = list(&format!(
            "<outline text='a'>{}</outline>",
            sync("1", 3, " deleted='true'", third)
        ));
        assert_eq!(shown(&merged(&sum, &gone).unwrap()), "ax Mine? F? -b -c");
    }

    #[test]
    fn what_loses_is_kept_in_the_conflict() {
        let edit =
            |by: &str| format!("when='Mon, 23 May 2005 09:43:33 GMT' by='{by}'><s:update by='O'/>");
        let ours = list(&feed("a", &sync("1", 2, "", &edit("A"))));
        let theirs = list(&feed("b", &sync("1", 2, "", &edit("B"))));
        let sum = merged(&ours, &theirs).unwrap();
        assert_eq!(shown(&sum), "b!");
        assert!(sum.contains("<s:conflict version=\"2\"") && sum.contains("text=\"a\""), "{sum}");
        assert_eq!(shown(&merged(&theirs, &ours).unwrap()), "b!");
        // What loses stays marked where it was contested itself.
        let marked = list(&feed("a", &sync("1", 2, " conflict='true'", &edit("A"))));
        let sum = merged(&marked, &theirs).unwrap();
        assert_eq!(sum.matches("conflict=\"true\"").count(), 2, "{sum}");
        // Another prefix for the same namespace, and one that only the other list declares.
        let foreign =
            theirs.replace("<s:", "<q:").replace("</s:", "</q:").replace("xmlns:s", "xmlns:q");
        let foreign = foreign.replace("xmlUrl", "n:x='1' xmlUrl");
        let foreign = foreign.replace("<opml", "<opml xmlns:n='urn:n'");
        let sum = merged(&ours, &foreign).unwrap();
        assert!(sum.contains("xmlns:n=\"urn:n\"") && shown(&sum) == "b!", "{sum}");
        // Folders put into each other do not vanish.
        let folder = |name: &str, id: &str, version, by: &str, inner: &str| {
            let history = match version {
                1 => "by='O'>".to_owned(),
                _ => format!("when='Mon, 23 May 2005 09:43:33 GMT' by='{by}'><s:update by='O'/>"),
            };
            format!("<outline text='{name}'>{}{inner}</outline>", sync(id, version, "", &history))
        };
        let ours = list(&folder("Q", "2", 1, "", &folder("P", "1", 2, "A", "")));
        let theirs = list(&folder("P", "1", 1, "", &folder("Q", "2", 2, "B", "")));
        let sum = merged(&ours, &theirs).unwrap();
        assert_eq!(shown(&sum), "P! -Q");
        assert_eq!(shown(&merged(&theirs, &ours).unwrap()), "P! -Q");
    }

    #[test]
    fn bad_lists_are_named() {
        let good = list(&feed("a", &sync("1", 1, "", "by='A'>")));
        let twice = list(&format!("{0}\n{0}", feed("a", &sync("1", 1, "", "by='A'>"))));
        let refused = |ours: &str, theirs: &str, wrong: Side| {
            let (side, said) = merged(ours, theirs).unwrap_err();
            assert_eq!(side, wrong, "{said}");
            said
        };
        let said = refused(&good, &twice, Side::Incoming);
        assert!(said.contains("line 5") && said.contains("line 4"), "{said}");
        let said = refused(&list(&feed("a", &sync("1", 0, "", "by='A'>"))), &good, Side::Local);
        assert!(said.starts_with("line 4: an sx:sync is not taken"), "{said}");
        let plain = list(&feed("a", ""));
        assert!(refused(&good, &plain, Side::Incoming).contains("no outline has sx:sync"));
        assert_eq!(shown(&merged(&plain, &good).unwrap()), "a a?");
        let empty = "<opml><head/><body/></opml>";
        assert_eq!(shown(&merged(empty, &good).unwrap()), "a");
        assert!(is_list(empty.as_bytes()) && !is_list(b"<rss/>"));
    }
}
