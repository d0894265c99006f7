//! Ids of items and endpoints that other programs may refuse.

use std::collections::HashSet;
use tidegate_core::model::{EndpointId, Incoming, Warning};

/// Ids that are no Namespace Specific Strings (SSE 1.0 sections 2.1.1 and 2.4). They are taken all the same,
/// for they are compared as they stand.
#[derive(Default)]
pub(super) struct OddIds {
    first: Option<(usize, String)>,
    seen: HashSet<String>,
}

/// The most of them that are told apart.
const TOLD_APART: usize = 1000;
/// The most characters of one that are shown.
const SHOWN: usize = 80;

impl OddIds {
    /// Takes note of the ids of an item that begins at the byte `at`.
    pub fn note(&mut self, incoming: &Incoming, at: usize) {
        let conflicts = incoming.conflicts.iter().map(|conflict| &conflict.history);
        let histories = conflicts.chain([&incoming.version.history]);
        let by = histories.flat_map(|history| history.iter()).filter_map(|u| u.stamp.by());
        let ids = by.map(EndpointId::as_str).chain([incoming.id().as_str()]);
        for id in ids.filter(|id| !is_nss(id)) {
            self.first.get_or_insert_with(|| (at, id.chars().take(SHOWN).collect()));
            if self.seen.len() < TOLD_APART && !self.seen.contains(id) {
                self.seen.insert(id.to_owned());
            }
        }
    }

    pub fn warning(self) -> Option<Warning> {
        let (offset, id) = self.first?;
        let others = match self.seen.len() {
            0 | 1 => String::new(),
            n => format!(", the first of {n}"),
        };
        let message = format!(
            "the id {id:?} of an item or an endpoint is no Namespace Specific String of RFC 2141, as \
             SSE wants it{others}; it is taken as it stands, and other programs may refuse it"
        );
        Some(Warning { offset, message })
    }
}

/// Whether a text has the syntax of a Namespace Specific String (RFC 2141 section 2.2).
fn is_nss(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    !bytes.is_empty()
        && bytes.iter().enumerate().all(|(at, byte)| match byte {
            b'%' => is_hex(at + 1) && is_hex(at + 2),
            byte => byte.is_ascii_alphanumeric() || b"()+,-.:=@;$_!*'/?#".contains(byte),
        })
}
