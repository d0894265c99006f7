//! One item: the publisher's bytes with `sx:sync`, the published id and what they inherited.

use super::base::{self, Added};
use super::collection::{EnclosingFeed, ShownVersion};
use super::convert::{self, Target};
use super::scope::{Prefixes, Scope, borrow};
use super::{Dialect, kept};
use std::borrow::Cow;
use std::fmt::Write;
use tidegate_core::model::{Family, Item, Markup, Time, Version};
use tidegate_core::sync_markup::{sx, sx091};
use tidegate_core::xml::{self, cut, push_attribute, tag};

/// What all entries of a document have in common.
#[derive(Debug)]
pub struct Entries<'a> {
    /// What they are converted to, where they must be.
    pub target: Target<'a>,
    /// The prefixes of our elements.
    pub prefixes: &'a Prefixes,
    /// The document around them, of which a base can be made where the publisher names none.
    pub around: EnclosingFeed<'a>,
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
    /// Adds a version.
    pub fn push_version(&self, out: &mut String, shown: ShownVersion<'_>, scope: &Scope<'_>) {
        let version = shown.version;
        let seen = version.history.topmost().stamp.when();
        let markup = match shown.shell(&self.target, self.around.title) {
            Some(shell) => Cow::Owned(shell),
            None => self.converted(&version.data, seen, shown.published_id),
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
        let base = || self.around.bases.base(data);
        let other = match convert::markup(data, &self.target, seen, base) {
            Cow::Borrowed(markup) if self.absolute => convert::absolute(markup, &base()),
            Cow::Borrowed(markup) if published_id.is_none() => {
                kept::move_to_namespace(markup, &self.target)
            }
            Cow::Borrowed(_) => None,
            Cow::Owned(markup) => Some(markup),
        };
        other.map_or(Cow::Borrowed(data), Cow::Owned)
    }

    /// Adds what `data` says, as it is written in the document, with the sync markup of a version
    /// and an id.
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
        let Added { entry, inside } =
            self.around.bases.given(&markup, attributes, scope.base.as_deref());
        if let Some((places, base)) = inside {
            markup = Cow::Owned(base::with_bases(&markup, &places, &base));
        }
        if let Some(parts) = Parts::of(&markup) {
            let base = entry.as_deref();
            let entry = SplicedEntry { entries: self, markup: &markup, parts, scope, base };
            entry.push(out, shown);
        }
    }
}

/// An entry in the place that it has in a document.
struct SplicedEntry<'s> {
    entries: &'s Entries<'s>,
    markup: &'s Markup,
    parts: Parts<'s>,
    scope: &'s Scope<'s>,
    /// The base that it is given.
    base: Option<&'s str>,
}

impl<'s> SplicedEntry<'s> {
    fn push(&self, out: &mut String, (shown, id): (Option<ShownVersion<'_>>, &str)) {
        out.push('<');
        out.push_str(self.parts.name);
        self.push_inherited(out);
        out.push('>');
        if let Some(shown) = shown {
            self.push_sync(out, shown);
        }
        self.push_inner(out, id);
        if self.parts.inner.is_none() {
            out.push_str("</");
            out.push_str(self.parts.name);
            out.push('>');
        }
    }

    fn push_sync(&self, out: &mut String, shown: ShownVersion<'_>) {
        let prefixes = self.entries.prefixes;
        let (prefix, namespace) = (prefixes.sharing.as_str(), prefixes.sharing_namespace);
        let declare = (self.binding(prefix).as_deref() != Some(namespace)).then_some(namespace);
        // The list is flat: a version in conflict has no conflicts (SSE 1.0 section 3.3).
        let mut conflict = |out: &mut String, version: &Version<Markup>| {
            self.entries.push_version(out, shown.conflict(version), &self.inside());
        };
        push_sync(out, prefixes.dialect, (prefix, declare), &shown, &mut conflict);
    }

    /// Its own attribute of a name.
    fn attribute(&self, name: &str) -> Option<tag::TagAttribute<'s>> {
        tag::find(self.parts.attributes, name)
    }

    /// Adds the attributes of the root: what it inherited and the scope does not give it, then its
    /// own. An attribute that it has already is never added.
    fn push_inherited(&self, out: &mut String) {
        let (context, attributes, scope) =
            (&self.markup.context, self.parts.attributes, self.scope);
        for (prefix, namespace) in borrow(&context.namespaces) {
            let same = scope.namespace(prefix).unwrap_or("") == namespace;
            // XML binds the prefix `xml` itself, and lets no other be bound to nothing.
            let bindable = prefix != "xml" && (prefix.is_empty() || !namespace.is_empty());
            if !same && bindable && tag::declared(attributes, prefix).is_none() {
                xml::push_namespace(out, prefix, namespace);
            }
        }
        if self.is_unnamed() && !scope.default_namespace().is_empty() {
            out.push_str(" xmlns=\"\"");
        }
        let lang = context.lang.as_deref().or(self.entries.language);
        if lang != scope.lang && self.attribute("xml:lang").is_none() {
            push_attribute(out, "xml:lang", lang.unwrap_or_default());
        }
        if let Some(base) = self.base {
            push_attribute(out, "xml:base", base);
        }
        let own = self.attribute("xml:base");
        let moved = own.filter(|_| context.base.as_deref() != scope.base.as_deref());
        match moved.or_else(|| base::relative_at_the_top(attributes, scope.base.as_deref())) {
            None => out.push_str(attributes),
            Some(own) => {
                // Relative to a base that is not around it any more.
                out.push_str(cut(attributes, 0..own.range.start));
                xml::push_value(out, &self.entries.around.bases.own(self.markup, own.value));
                out.push_str(cut(attributes, own.range.end..attributes.len()));
            }
        }
    }

    /// Adds everything behind the start tag, with the published id; with its own where that is
    /// empty.
    fn push_inner(&self, out: &mut String, published: &str) {
        if published.is_empty() {
            out.push_str(self.parts.inner.map_or("", |(inner, _)| inner));
            return;
        }
        let is_rss = self.entries.target.family == Family::Rss;
        let Some((inner, start)) = self.parts.inner else {
            return self.push_id(out, published);
        };
        let Some(id) = IdElement::of(self.markup, start) else {
            if is_rss {
                self.push_identifier(out, published);
            }
            self.push_id(out, published);
            out.push_str(inner);
            return;
        };
        out.push_str(id.before);
        let content = xml::plain(id.content);
        if content == published {
            out.push_str(id.element);
        } else {
            let renamed = content.trim() != published;
            let is_permalink = is_rss
                && tag::find(id.attributes(), "isPermaLink")
                    .is_none_or(|written| !written.value.trim().eq_ignore_ascii_case("false"));
            if renamed && is_permalink {
                id.push_open_as_identifier(out);
            } else {
                out.push_str(id.open);
            }
            xml::push_text(out, published);
            out.push_str(id.close);
            let link = self.markup.card.link.as_deref().filter(|link| *link == content.trim());
            // A `link` anywhere in the text counts as one, in a comment too: then the item goes
            // without, which does no harm.
            let written = format!("<{}", self.named("link"));
            let has_link = !(renamed && is_permalink) || self.markup.xml.contains(&written);
            if let Some(link) = link.filter(|_| !has_link) {
                xml::push_element(out, &self.named("link"), link);
            }
        }
        out.push_str(id.after);
    }

    /// Adds the `dc:identifier` of an item that has no `guid`, as `atom:id`. Readers who know items
    /// by their `dc:identifier` (SimplePie, FreshRSS) prefer a `guid` to it, and would take those
    /// that get one here for new; `atom:id` goes before both. Others go by the `guid`, which is
    /// `rdf:about`.
    fn push_identifier(&self, out: &mut String, published: &str) {
        let identifier = convert::identifier(self.markup).filter(|id| id != published);
        if let (Some(prefix), Some(identifier)) = (&self.entries.prefixes.atom, identifier) {
            xml::push_element(out, &format!("{prefix}:id"), &identifier);
        }
    }

    /// Adds an id element where the entry has none.
    fn push_id(&self, out: &mut String, published: &str) {
        match self.entries.target.family {
            Family::Atom => xml::push_element(out, &self.named("id"), published),
            Family::Rss => {
                let name = self.named("guid");
                let _ = write!(out, "<{name} isPermaLink=\"false\">");
                xml::push_text(out, published);
                let _ = write!(out, "</{name}>");
            }
        }
    }

    /// The name of an element of the entry's own namespace.
    fn named(&self, local: &str) -> String {
        format!("{}{local}", tag::prefix_of(self.parts.name))
    }

    /// The scope inside an entry, for the entries in its `sx:conflicts`.
    fn inside(&self) -> Scope<'s> {
        let Self { entries, markup, parts, scope, base } = self;
        let mut inside = (*scope).clone();
        if self.is_unnamed() {
            inside.namespaces.push(("", ""));
        }
        inside.namespaces.extend(borrow(&markup.context.namespaces));
        let own = tag::attributes(parts.attributes);
        let own = own.filter_map(|own| Some((xml::declared_prefix(own.name)?, own.value)));
        inside.namespaces.extend(own);
        inside.namespaces.push((&entries.prefixes.sharing, entries.prefixes.sharing_namespace));
        if let Some(own) = self.attribute("xml:base") {
            inside.base = Some(Cow::Owned(entries.around.bases.own(markup, own.value)));
        } else if let Some(base) = base {
            inside.base = Some(Cow::Borrowed(base));
        }
        inside.lang = match self.attribute("xml:lang") {
            Some(own) => Some(own.value),
            None => markup.context.lang.as_deref().or(entries.language),
        };
        inside
    }

    /// Whether it names no default namespace, and inherits none.
    fn is_unnamed(&self) -> bool {
        let mut inherited = borrow(&self.markup.context.namespaces);
        !inherited.any(|(prefix, _)| prefix.is_empty())
            && tag::declared(self.parts.attributes, "").is_none()
    }

    /// The namespace that a prefix is bound to inside it.
    fn binding(&self, prefix: &str) -> Option<Cow<'s, str>> {
        let mut inherited = borrow(&self.markup.context.namespaces);
        let inherited = inherited.find(|(bound, _)| *bound == prefix);
        let around = || inherited.map(|(_, name)| name).or_else(|| self.scope.namespace(prefix));
        tag::declared(self.parts.attributes, prefix).or_else(|| around().map(Cow::Borrowed))
    }
}

/// Whether something is in conflict with an item, kept or not.
pub fn is_contested(item: &Item) -> bool {
    item.sse091 == Some(true) || !item.shared.conflicts.is_empty()
}

/// Adds the `sx:sync` of a version in a dialect, with the prefix, and the namespace where that must
/// be declared. That there are conflicts which are not shown, SSE 0.91 alone says. `conflict` adds
/// a version as the item that stands in
/// `sx:conflicts`.
pub fn push_sync(
    out: &mut String,
    dialect: Dialect,
    (prefix, declare): (&str, Option<&str>),
    shown: &ShownVersion<'_>,
    conflict: &mut dyn FnMut(&mut String, &Version<Markup>),
) {
    let ShownVersion { version, conflicts, extras, .. } = *shown;
    if dialect == Dialect::Sse091 {
        let winner = (version, shown.is_contested || !conflicts.is_empty());
        sx091::sync_element(out, prefix, declare, winner, conflicts, &mut |out, lost| {
            out.push('>');
            conflict(out, lost);
        });
        return;
    }
    let mut nested = |out: &mut String| conflicts.iter().for_each(|lost| conflict(out, lost));
    let nested: Option<&mut dyn FnMut(&mut String)> =
        if conflicts.is_empty() { None } else { Some(&mut nested) };
    sx::sync_element(out, prefix, declare, version, extras, nested);
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
