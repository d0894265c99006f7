//! `sx:sync` with its history and conflicts as XML (SSE 1.0 sections 2.4 to 2.6).

use super::Dialect;
use crate::model::{Extra, SyncExtras, Update, Version};
use crate::xml::ns;
use crate::xml::push_attribute as attribute;
use std::fmt::Write;

/// The namespace of a dialect (READINGS 1, row 1).
pub const fn namespace(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sse => ns::SSE,
        Dialect::FeedSync => ns::FEED_SYNC,
        Dialect::Sse091 => ns::SSE_091,
    }
}

/// Adds the `sx:sync` element of a version.
///
/// `prefix` is bound to the dialect's namespace around it, or by the element itself where `declare`
/// gives the namespace. `conflicts` adds the items that stand in `sx:conflicts`; `None` where there
/// are none, because an empty `sx:conflicts` is never written (READINGS 1, row 21). Times are
/// whole seconds of UTC, which both dialects take (row 35).
///
/// `extras` is what is said beyond SSE (section 2.1.8).
pub fn sync_element<D>(
    out: &mut String,
    prefix: &str,
    declare: Option<&str>,
    version: &Version<D>,
    extras: Option<&SyncExtras>,
    conflicts: Option<&mut dyn FnMut(&mut String)>,
) {
    let _ = write!(out, "<{prefix}:sync");
    if let Some(namespace) = declare {
        attribute(out, &format!("xmlns:{prefix}"), namespace);
    }
    attribute(out, "id", version.id.as_str());
    let _ = write!(out, " updates=\"{}\"", version.updates.value());
    if version.deleted {
        out.push_str(" deleted=\"true\"");
    }
    if let Some(noconflicts) = version.noconflicts {
        let _ = write!(out, " noconflicts=\"{noconflicts}\"");
    }
    let extra = extras.map(|extras| &extras.sync);
    push_attributes(out, extra);
    out.push('>');
    for update in version.history.iter() {
        history_element(out, prefix, update, extras.and_then(|extras| extras.for_update(update)));
    }
    out.push_str(extra.map_or("", |extra| &extra.elements));
    if let Some(conflicts) = conflicts {
        let _ = write!(out, "<{prefix}:conflicts>");
        conflicts(out);
        let _ = write!(out, "</{prefix}:conflicts>");
    }
    let _ = write!(out, "</{prefix}:sync>");
}

/// Attributes of others. Their namespaces get prefixes of ours, which nothing around or within uses.
fn push_attributes(out: &mut String, extra: Option<&Extra>) {
    let attributes = extra.map(|extra| &extra.attributes[..]).unwrap_or_default();
    for ((namespace, name, value), number) in attributes.iter().zip(1..) {
        match namespace.as_deref() {
            None => attribute(out, name, value),
            Some(ns::XML) => attribute(out, &format!("xml:{name}"), value),
            Some(namespace) => {
                attribute(out, &format!("xmlns:sxe{number}"), namespace);
                attribute(out, &format!("sxe{number}:{name}"), value);
            }
        }
    }
}

fn history_element(out: &mut String, prefix: &str, update: &Update, extra: Option<&Extra>) {
    let _ = write!(out, "<{prefix}:history sequence=\"{}\"", update.sequence.value());
    if let Some(when) = update.stamp.when() {
        let _ = write!(out, " when=\"{when}\"");
    }
    if let Some(by) = update.stamp.by() {
        attribute(out, "by", by.as_str());
    }
    push_attributes(out, extra);
    match extra.map(|extra| extra.elements.as_str()).filter(|elements| !elements.is_empty()) {
        Some(elements) => {
            let _ = write!(out, ">{elements}</{prefix}:history>");
        }
        None => out.push_str("/>"),
    }
}
