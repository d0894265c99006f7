//! `sx:sync` of SSE 0.91 as XML (its sections 2.3 to 2.5 and 5).

use crate::model::{Stamp, Version};
use crate::sync::updates_of_091;
use crate::xml::push_attribute as attribute;
use std::fmt::Write;

/// Adds the `sx:sync` element of a version with those that are in conflict with it. `conflict`: its
/// attribute. `declare` gives the namespace where the prefix is not bound to it around. `kept` is
/// called inside the start tag of each `sx:conflict`: it adds the declarations that the content needs,
/// the `>` and the content.
pub fn sync_element<D, C>(
    out: &mut String,
    prefix: &str,
    declare: Option<&str>,
    (version, conflict): (&Version<D>, bool),
    conflicts: &[Version<C>],
    kept: &mut dyn FnMut(&mut String, &Version<C>),
) {
    let _ = write!(out, "<{prefix}:sync");
    if let Some(namespace) = declare {
        attribute(out, &format!("xmlns:{prefix}"), namespace);
    }
    attribute(out, "id", version.id.as_str());
    let (updates, deleted) = (version.updates.value(), version.deleted);
    let _ = write!(out, " version=\"{updates}\" deleted=\"{deleted}\" conflict=\"{conflict}\"");
    let _ = write!(out, "><{prefix}:history");
    stamp(out, &version.history.topmost().stamp);
    out.push('>');
    for update in updates_of_091(version) {
        let _ = write!(out, "<{prefix}:update");
        stamp(out, update);
        out.push_str("/>");
    }
    let _ = write!(out, "</{prefix}:history>");
    if !conflicts.is_empty() {
        let _ = write!(out, "<{prefix}:conflicts>");
        for lost in conflicts {
            let _ = write!(out, "<{prefix}:conflict version=\"{}\"", lost.updates.value());
            stamp(out, &lost.history.topmost().stamp);
            kept(out, lost);
            let _ = write!(out, "</{prefix}:conflict>");
        }
        let _ = write!(out, "</{prefix}:conflicts>");
    }
    let _ = write!(out, "</{prefix}:sync>");
}

/// `when` in the form of RFC 822 with a year of four digits, and `by`.
fn stamp(out: &mut String, stamp: &Stamp) {
    if let Some(when) = stamp.when() {
        attribute(out, "when", &when.rfc822());
    }
    if let Some(by) = stamp.by() {
        attribute(out, "by", by.as_str());
    }
}
