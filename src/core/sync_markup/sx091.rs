//! `sx:sync` of SSE 0.91 as XML (its sections 2.3 to 2.5 and 5).

use crate::model::Stamp;
use crate::sync::{Conflict091, Item091};
use crate::xml::push_attribute as attribute;
use std::fmt::Write;

/// Adds the `sx:sync` element of an item. `declare` gives the namespace where the prefix is not
/// bound to it around. `kept` is called inside the start tag of each `sx:conflict`: it adds the
/// declarations that the content needs, the `>` and the content.
pub fn sync_element<D, C>(
    out: &mut String,
    prefix: &str,
    declare: Option<&str>,
    item: &Item091<D, C>,
    kept: &mut dyn FnMut(&mut String, &Conflict091<C>),
) {
    let _ = write!(out, "<{prefix}:sync");
    if let Some(namespace) = declare {
        attribute(out, &format!("xmlns:{prefix}"), namespace);
    }
    attribute(out, "id", item.id.as_str());
    let version = item.version.value();
    let (deleted, conflict) = (item.deleted, item.conflict);
    let _ = write!(out, " version=\"{version}\" deleted=\"{deleted}\" conflict=\"{conflict}\"");
    let _ = write!(out, "><{prefix}:history");
    stamp(out, &item.last);
    out.push('>');
    for update in &item.updates {
        let _ = write!(out, "<{prefix}:update");
        stamp(out, update);
        out.push_str("/>");
    }
    let _ = write!(out, "</{prefix}:history>");
    if !item.conflicts.is_empty() {
        let _ = write!(out, "<{prefix}:conflicts>");
        for conflict in &item.conflicts {
            let _ = write!(out, "<{prefix}:conflict version=\"{}\"", conflict.version.value());
            stamp(out, &conflict.edit);
            kept(out, conflict);
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
