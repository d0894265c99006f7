//! `sx:sync` with its history and conflicts (SSE 1.0 sections 2.4 to 2.6), as XML.

use super::escape;
use crate::model::{Update, Version};
use std::fmt::Write;

/// Adds the `sx:sync` of a version.
///
/// `declare` is the namespace to bind `prefix` to here, where something around has bound it to
/// another; `conflicts` adds what stands in `sx:conflicts`, and nothing where there are none: an
/// empty `sx:conflicts` is never written (READINGS 1, row 21).
pub fn push<D>(
    out: &mut String,
    prefix: &str,
    declare: Option<&str>,
    version: &Version<D>,
    conflicts: Option<&mut dyn FnMut(&mut String)>,
) {
    let _ = write!(out, "<{prefix}:sync");
    if let Some(namespace) = declare {
        let _ = write!(out, " xmlns:{prefix}=\"{namespace}\"");
    }
    escape::push_attribute(out, "id", version.id.as_str());
    let _ = write!(out, " updates=\"{}\"", version.updates.value());
    if version.deleted {
        out.push_str(" deleted=\"true\"");
    }
    if let Some(noconflicts) = version.noconflicts {
        let _ = write!(out, " noconflicts=\"{noconflicts}\"");
    }
    out.push('>');
    for update in version.history.iter() {
        push_update(out, prefix, update);
    }
    if let Some(conflicts) = conflicts {
        let _ = write!(out, "<{prefix}:conflicts>");
        conflicts(out);
        let _ = write!(out, "</{prefix}:conflicts>");
    }
    let _ = write!(out, "</{prefix}:sync>");
}

fn push_update(out: &mut String, prefix: &str, update: &Update) {
    let _ = write!(out, "<{prefix}:history sequence=\"{}\"", update.sequence.value());
    if let Some(when) = update.stamp.when() {
        let _ = write!(out, " when=\"{when}\"");
    }
    if let Some(by) = update.stamp.by() {
        escape::push_attribute(out, "by", by.as_str());
    }
    out.push_str("/>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Count, EndpointId, History, Stamp, SyncId, Time};

    fn version() -> Version<()> {
        let both = Stamp::Both {
            when: Time::from_unix(1_116_675_813),
            by: EndpointId::new("JEO<2000>").unwrap(),
        };
        let first = Stamp::By(EndpointId::new("REO\"1750").unwrap());
        let mut history = History::new(Update { sequence: Count::ONE, stamp: first });
        history.push(Update { sequence: Count::new(2).unwrap(), stamp: both });
        Version {
            id: SyncId::new("a&b").unwrap(),
            updates: Count::new(2).unwrap(),
            deleted: false,
            noconflicts: None,
            history,
            data: (),
        }
    }

    #[test]
    fn is_written_as_the_specification_shows_it() {
        let mut out = String::new();
        push(&mut out, "sx", None, &version(), None);
        assert_eq!(
            out,
            "<sx:sync id=\"a&amp;b\" updates=\"2\">\
             <sx:history sequence=\"2\" when=\"2005-05-21T11:43:33Z\" by=\"JEO&lt;2000&gt;\"/>\
             <sx:history sequence=\"1\" by=\"REO&quot;1750\"/></sx:sync>"
        );
    }

    #[test]
    fn flags_stand_only_where_they_say_something() {
        let mut version = version();
        version.deleted = true;
        version.noconflicts = Some(false);
        let mut out = String::new();
        push(&mut out, "sx1", Some("urn:sse"), &version, Some(&mut |out| out.push_str("<item/>")));
        assert!(out.starts_with(
            "<sx1:sync xmlns:sx1=\"urn:sse\" id=\"a&amp;b\" updates=\"2\" deleted=\"true\" \
             noconflicts=\"false\">"
        ));
        assert!(out.ends_with("<sx1:conflicts><item/></sx1:conflicts></sx1:sync>"));
    }
}
