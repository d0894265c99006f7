//! One item: the publisher's bytes with `sx:sync`, the published id and what they inherited.

use super::base::{self, Added, Bases};
use super::collection::ShownVersion;
use super::convert::{self, Target};
use super::scope::{Prefixes, Scope, borrow};
use super::{Dialect, kept, tombstone};
use std::borrow::Cow;
use tidegate_core::model::{Family, Item, Markup, Shared, SyncExtras, Time, Version};
use tidegate_core::sync::to_091;
use tidegate_core::sync_markup::{sx, sx091};
use tidegate_core::xml::{self, push_attribute, tag};

/// What all entries of a document have in common.
#[derive(Debug)]
pub struct Entries<'a> {
    /// What they are converted to, where they must be.
    pub target: Target<'a>,
    /// The prefixes of our elements.
    pub prefixes: &'a Prefixes,
    /// What a base can be made of, where the publisher names none.
    pub bases: Bases<'a>,
    /// The feed's title.
    pub feed_title: &'a str,
    /// The language that the document around says for all, where its publisher did not say it as
    /// `xml:lang`.
    pub language: Option<&'a str>,
    /// Whether all references are written as absolute addresses.
    pub absolute: bool,
}

/// The text of an entry cut where it is spliced.
struct Parts<'a> {
    /// The name of its element.
    name: &'a str,
    /// The attributes of its start tag.
    attributes: &'a str,
    /// What stands between its tags, and where that begins; `None` in an empty-element tag.
    inner: Option<(&'a str, usize)>,
}

impl<'a> Parts<'a> {
    /// `None` where the slots do not fit the text.
    fn of(markup: &'a Markup) -> Option<Self> {
        let xml = markup.xml.as_str();
        let slots = &markup.slots;
        let name =
            xml.get(..slots.attributes)?.strip_prefix('<').filter(|name| !name.is_empty())?;
        match slots.inner {
            Some(start) => Some(Self {
                name,
                attributes: xml.get(slots.attributes..start)?.strip_suffix('>')?,
                inner: Some((xml.get(start..)?, start)),
            }),
            None => {
                let attributes = xml.get(slots.attributes..)?.strip_suffix("/>")?;
                Some(Self { name, attributes, inner: None })
            }
        }
    }
}

impl Entries<'_> {
    /// Adds an item with these conflicts.
    pub fn push(
        &self,
        out: &mut String,
        item: &Item,
        conflicts: &[Version<Markup>],
        scope: &Scope<'_>,
    ) {
        self.push_version(out, ShownVersion::new(item, conflicts), scope);
    }

    /// Adds a version.
    pub fn push_version(&self, out: &mut String, shown: ShownVersion<'_>, scope: &Scope<'_>) {
        let version = shown.version;
        let seen = version.history.topmost().stamp.when();
        let markup = if version.deleted && shown.published_id.is_some() {
            Cow::Owned(tombstone::shell(version, &self.target, self.feed_title, shown.is_redacted))
        } else {
            self.converted(&version.data, seen, shown.published_id)
        };
        let kept = || convert::kept_id(&version.data, self.target.family, version.id.as_str());
        let id = shown.published_id.map_or_else(|| kept().into(), Cow::Borrowed);
        self.splice(out, (&version.data, markup, seen), (Some(shown), &id), scope);
    }

    /// Adds an entry as it came, without sync markup. `known`: what it is known by, and its date.
    pub fn push_plain(
        &self,
        out: &mut String,
        data: &Markup,
        (id, date): (&str, Option<Time>),
        scope: &Scope<'_>,
    ) {
        let markup = self.converted(data, date, None);
        let id = convert::kept_id(data, self.target.family, id);
        self.splice(out, (data, markup, date), (None, &id), scope);
    }

    /// What an entry says in the format of the document.
    fn converted<'m>(
        &self,
        data: &'m Markup,
        seen: Option<Time>,
        published_id: Option<&str>,
    ) -> Cow<'m, Markup> {
        let base = || self.bases.base(data);
        let other = match convert::markup(data, &self.target, seen, base) {
            Cow::Borrowed(markup) if self.absolute => convert::absolute(markup, &base()),
            Cow::Borrowed(markup) if published_id.is_none() => kept::moved(markup, &self.target),
            Cow::Borrowed(_) => None,
            Cow::Owned(markup) => Some(markup),
        };
        other.map_or(Cow::Borrowed(data), Cow::Owned)
    }

    /// Adds what `data` says, as it is written in the document, with the sync markup of a version and an id.
    fn splice(
        &self,
        out: &mut String,
        (data, markup, seen): (&Markup, Cow<'_, Markup>, Option<Time>),
        shown: (Option<ShownVersion<'_>>, &str),
        scope: &Scope<'_>,
    ) {
        let mut markup = markup;
        if Parts::of(&markup).is_none() {
            // Offsets that do not fit their text.
            markup = Cow::Owned(convert::write_card(data, &self.target, seen));
        }
        let attributes = Parts::of(&markup).map_or("", |parts| parts.attributes);
        let Added { entry, inside } = self.bases.given(&markup, attributes, scope.base.as_deref());
        if let Some((places, base)) = inside {
            markup = Cow::Owned(base::with_bases(&markup, &places, &base));
        }
        if let Some(parts) = Parts::of(&markup) {
            self.splice_with(out, &markup, &parts, shown, (scope, entry.as_deref()));
        }
    }

    /// The same with the base that the entry is given.
    fn splice_with(
        &self,
        out: &mut String,
        markup: &Markup,
        parts: &Parts<'_>,
        (shown, id): (Option<ShownVersion<'_>>, &str),
        (scope, base): (&Scope<'_>, Option<&str>),
    ) {
        out.push('<');
        out.push_str(parts.name);
        self.push_inherited(out, markup, parts, (scope, base));
        out.push('>');
        if let Some(shown) = shown {
            self.push_sync(out, markup, parts, shown, (scope, base));
        }
        self.push_inner(out, markup, parts, id);
        if parts.inner.is_none() {
            out.push_str("</");
            out.push_str(parts.name);
            out.push('>');
        }
    }

    fn push_sync(
        &self,
        out: &mut String,
        markup: &Markup,
        parts: &Parts<'_>,
        shown: ShownVersion<'_>,
        (scope, base): (&Scope<'_>, Option<&str>),
    ) {
        let prefix = self.prefixes.sharing.as_str();
        let namespace = self.prefixes.sharing_namespace;
        let bound = binding(prefix, markup, parts, scope);
        let declare = (bound.as_deref() != Some(namespace)).then_some(namespace);
        // The list is flat: a version in conflict has no conflicts (SSE 1.0 section 3.3).
        let mut conflict = |out: &mut String, version: &Version<Markup>| {
            let inside = self.inside(markup, parts, (scope, base));
            let shown = shown.conflict(version);
            self.push_version(out, shown, &inside);
        };
        push_sync(
            out,
            self.prefixes.dialect,
            (prefix, declare),
            (shown.version, shown.extras),
            (shown.conflicts, shown.is_contested),
            &mut conflict,
        );
    }

    /// Adds the attributes of the root: what it inherited and `scope` does not give it, then its
    /// own. An attribute that it has already is never added.
    fn push_inherited(
        &self,
        out: &mut String,
        markup: &Markup,
        parts: &Parts<'_>,
        (scope, base): (&Scope<'_>, Option<&str>),
    ) {
        let context = &markup.context;
        for (prefix, namespace) in borrow(&context.namespaces) {
            let same = scope.namespace(prefix).unwrap_or("") == namespace;
            // XML binds the prefix `xml` itself, and lets no other be bound to nothing.
            let bindable = prefix != "xml" && (prefix.is_empty() || !namespace.is_empty());
            if !same && bindable && tag::declared(parts.attributes, prefix).is_none() {
                xml::push_namespace(out, prefix, namespace);
            }
        }
        if is_unnamed(markup, parts) && !scope.default_namespace().is_empty() {
            out.push_str(" xmlns=\"\"");
        }

        let lang = context.lang.as_deref().or(self.language);
        if lang != scope.lang && tag::find(parts.attributes, "xml:lang").is_none() {
            push_attribute(out, "xml:lang", lang.unwrap_or_default());
        }
        if let Some(base) = base {
            push_attribute(out, "xml:base", base);
        }
        let own = tag::find(parts.attributes, "xml:base");
        let moved = own.filter(|_| context.base.as_deref() != scope.base.as_deref());
        match moved.or_else(|| base::relative_at_the_top(parts.attributes, scope.base.as_deref())) {
            None => out.push_str(parts.attributes),
            Some(own) => {
                // Relative to a base that is not around it any more.
                let before = parts.attributes.get(..own.range.start).unwrap_or_default();
                let after = parts.attributes.get(own.range.end..).unwrap_or_default();
                out.push_str(before);
                xml::push_value(out, &self.bases.own(markup, own.value));
                out.push_str(after);
            }
        }
    }

    /// Adds everything behind the start tag, with the published id; with its own where that is empty.
    fn push_inner(&self, out: &mut String, markup: &Markup, parts: &Parts<'_>, published: &str) {
        if published.is_empty() {
            out.push_str(parts.inner.map_or("", |(inner, _)| inner));
            return;
        }
        let Some((inner, start)) = parts.inner else {
            push_id(out, self.target.family, parts.name, published);
            return;
        };
        let Some(id) = IdElement::of(markup, start) else {
            if self.target.family == Family::Rss {
                self.push_identifier(out, markup, published);
            }
            push_id(out, self.target.family, parts.name, published);
            out.push_str(inner);
            return;
        };
        out.push_str(id.before);
        let content = xml::plain(id.content);
        if content == published {
            out.push_str(id.element);
        } else {
            let renamed = content.trim() != published;
            let is_permalink = self.target.family == Family::Rss
                && tag::find(id.attributes(), "isPermaLink")
                    .is_none_or(|written| !written.value.trim().eq_ignore_ascii_case("false"));
            if renamed && is_permalink {
                id.push_open_as_identifier(out);
            } else {
                out.push_str(id.open);
            }
            xml::push_text(out, published);
            out.push_str(id.close);
            let link = markup.card.link.as_deref().filter(|link| *link == content.trim());
            if let Some(link) = link.filter(|_| renamed && is_permalink) {
                push_link_unless_there(out, markup, parts, link);
            }
        }
        out.push_str(id.after);
    }

    /// Adds the `dc:identifier` of an item that has no `guid`, as `atom:id`. Readers who know items by
    /// their `dc:identifier` (SimplePie, FreshRSS) prefer a `guid` to it, and would take those that get
    /// one here for new; `atom:id` goes before both. Others go by the `guid`, which is `rdf:about`.
    fn push_identifier(&self, out: &mut String, markup: &Markup, published: &str) {
        let Some(prefix) = &self.prefixes.atom else { return };
        let Some(identifier) = convert::identifier(markup).filter(|id| id != published) else {
            return;
        };
        xml::push_element(out, &format!("{prefix}:id"), &identifier);
    }

    /// The scope inside an entry, for the entries in its `sx:conflicts`.
    fn inside<'s>(
        &'s self,
        markup: &'s Markup,
        parts: &Parts<'s>,
        (scope, base): (&Scope<'s>, Option<&'s str>),
    ) -> Scope<'s> {
        let mut inside = scope.clone();
        if is_unnamed(markup, parts) {
            inside.namespaces.push(("", ""));
        }
        inside.namespaces.extend(borrow(&markup.context.namespaces));
        let own = tag::attributes(parts.attributes);
        let own = own.filter_map(|own| Some((xml::declared_prefix(own.name)?, own.value)));
        inside.namespaces.extend(own);
        inside.namespaces.push((&self.prefixes.sharing, self.prefixes.sharing_namespace));
        if let Some(own) = tag::find(parts.attributes, "xml:base") {
            inside.base = Some(Cow::Owned(self.bases.own(markup, own.value)));
        } else if let Some(base) = base {
            inside.base = Some(Cow::Borrowed(base));
        }
        inside.lang = match tag::find(parts.attributes, "xml:lang") {
            Some(own) => Some(own.value),
            None => markup.context.lang.as_deref().or(self.language),
        };
        inside
    }
}

/// Whether an entry names no default namespace, and inherits none.
fn is_unnamed(markup: &Markup, parts: &Parts<'_>) -> bool {
    let is_inherited = markup.context.namespaces.iter().any(|(prefix, _)| prefix.is_empty());
    !is_inherited && tag::declared(parts.attributes, "").is_none()
}

/// Whether something is in conflict with an item, kept or not.
pub fn is_contested(item: &Item) -> bool {
    item.sse091 == Some(true) || !item.shared.conflicts.is_empty()
}

/// Adds the `sx:sync` of a version in a dialect. `place`: the prefix, and the namespace where it must
/// be declared; `conflicts`: those that are shown, and whether there are any at all, which SSE 0.91
/// says without them; `conflict` adds a version as the item that stands in `sx:conflicts`.
pub fn push_sync(
    out: &mut String,
    dialect: Dialect,
    (prefix, declare): (&str, Option<&str>),
    (version, extras): (&Version<Markup>, Option<&SyncExtras>),
    (conflicts, is_contested): (&[Version<Markup>], bool),
    conflict: &mut dyn FnMut(&mut String, &Version<Markup>),
) {
    if dialect == Dialect::Sse091 {
        let conflicts = conflicts.iter().map(borrowed).collect();
        let mut item = to_091(Shared { winner: borrowed(version), conflicts }, |lost| lost.data);
        item.conflict |= is_contested;
        sx091::sync_element(out, prefix, declare, &item, &mut |out, kept| {
            out.push('>');
            conflict(out, kept.data);
        });
        return;
    }
    let mut nested = |out: &mut String| {
        for version in conflicts {
            conflict(out, version);
        }
    };
    let nested: Option<&mut dyn FnMut(&mut String)> =
        if conflicts.is_empty() { None } else { Some(&mut nested) };
    sx::sync_element(out, prefix, declare, version, extras, nested);
}

/// A version that has itself as its data, so that none of it is copied but the history.
pub fn borrowed(version: &Version<Markup>) -> Version<&Version<Markup>> {
    Version {
        id: version.id.clone(),
        updates: version.updates,
        deleted: version.deleted,
        noconflicts: version.noconflicts,
        history: version.history.clone(),
        data: version,
    }
}

/// The element that bears the native id, and what stands around it inside its entry.
struct IdElement<'a> {
    before: &'a str,
    element: &'a str,
    open: &'a str,
    content: &'a str,
    close: &'a str,
    after: &'a str,
}

impl<'a> IdElement<'a> {
    /// `None` where the entry, whose content begins at `start`, has none.
    fn of(markup: &'a Markup, start: usize) -> Option<Self> {
        let xml = markup.xml.as_str();
        let element = markup.slots.id_element.clone()?;
        let id = markup.slots.id.clone()?;
        Some(Self {
            before: xml.get(start..element.start)?,
            element: xml.get(element.clone())?,
            open: xml.get(element.start..id.start)?,
            content: xml.get(id.clone())?,
            close: xml.get(id.end..element.end)?,
            after: xml.get(element.end..)?,
        })
    }

    /// What stands behind the name in the start tag.
    fn attributes(&self) -> &'a str {
        let end = self.open.find(|c: char| c.is_ascii_whitespace() || c == '>');
        end.and_then(|end| self.open.get(end..)).unwrap_or_default()
    }

    /// Adds the start tag of a `guid` that is no permalink any more: the address that it shows from
    /// now on is not the item's.
    fn push_open_as_identifier(&self, out: &mut String) {
        let attributes = self.attributes();
        let name = self.open.strip_suffix(attributes).unwrap_or_default();
        out.push_str(name);
        if let Some(written) = tag::find(attributes, "isPermaLink") {
            out.push_str(attributes.get(..written.range.start).unwrap_or_default());
            out.push_str("false");
            out.push_str(attributes.get(written.range.end..).unwrap_or_default());
        } else {
            out.push_str(" isPermaLink=\"false\"");
            out.push_str(attributes);
        }
    }
}

/// Adds an id element where the entry has none.
fn push_id(out: &mut String, family: Family, entry: &str, published: &str) {
    match family {
        Family::Atom => push_element(out, entry, "id", "", published),
        Family::Rss => push_element(out, entry, "guid", " isPermaLink=\"false\"", published),
    }
}

/// Adds a link to an item whose only address was its `guid`. A `link` anywhere in the text counts
/// as one, in a comment too: then the item goes without, which does no harm.
fn push_link_unless_there(out: &mut String, markup: &Markup, parts: &Parts<'_>, link: &str) {
    let prefix = tag::prefix_of(parts.name);
    if !markup.xml.contains(&format!("<{prefix}link")) {
        push_element(out, parts.name, "link", "", link);
    }
}

/// Adds an element of the same namespace as the element `sibling`.
fn push_element(out: &mut String, sibling: &str, name: &str, attributes: &str, content: &str) {
    let prefix = tag::prefix_of(sibling);
    for piece in ["<", prefix, name, attributes, ">"] {
        out.push_str(piece);
    }
    xml::push_text(out, content);
    for piece in ["</", prefix, name, ">"] {
        out.push_str(piece);
    }
}

/// The namespace that a prefix is bound to inside an entry.
fn binding<'a>(
    prefix: &str,
    markup: &'a Markup,
    parts: &Parts<'a>,
    scope: &'a Scope<'_>,
) -> Option<Cow<'a, str>> {
    if let Some(own) = tag::declared(parts.attributes, prefix) {
        return Some(own);
    }
    let inherited = borrow(&markup.context.namespaces).find(|(bound, _)| *bound == prefix);
    let found = inherited.map(|(_, namespace)| namespace).or_else(|| scope.namespace(prefix));
    found.map(Cow::Borrowed)
}
